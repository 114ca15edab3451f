// The worlds of a system, live. State: {lab, worlds, closed, past?}; a world is {name, state, epoch, ranks,
// done, failed?, op?, late?, ended?, bus?, healing?}, as `accel_lab/views/collectives/state.py` says.

import { standalone } from "../shared/standalone.js";
import { toHtml } from "../shared/dom.js";
import { collectivesView, drawCollectives } from "./draw.js";
import { mountCollectives } from "./mount.js";

/** The whole view as an HTML string. */
export function html(state, view = {}) {
  return toHtml(...drawCollectives(state, { ...collectivesView(), ...view }));
}

export default standalone(mountCollectives);
