// The supervision feed, live. State: {rows, lab, devices, closed, older?, forgotten?, acts?, faults?, asked?},
// as JSON in bytes; `rows.js` says what a row is.

import { standalone } from "../shared/standalone.js";
import { toHtml } from "../shared/dom.js";
import { drawSupervision, feedView } from "./draw.js";
import { mountSupervision } from "./mount.js";

/** The whole view as an HTML string. */
export function html(state, view = {}) {
  return toHtml(...drawSupervision(state, { ...feedView(), ...view }));
}

export default standalone(mountSupervision);
