// The supervision feed, live. State: {rows, lab, devices, closed, older?, forgotten?, acts?, faults?, asked?},
// as JSON in bytes; `supervision_rows.js` says what a row is.

import { standalone } from "./standalone.js";
import { toHtml } from "./dom.js";
import { drawSupervision, feedView } from "./supervision_draw.js";
import { mountSupervision } from "./supervision_mount.js";

/** The whole view as an HTML string. */
export function html(state, view = {}) {
  return toHtml(...drawSupervision(state, { ...feedView(), ...view }));
}

export default standalone(mountSupervision);
