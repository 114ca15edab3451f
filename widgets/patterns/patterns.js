// The patterns of a system, live. State: {lab, patterns, closed}; a pattern is {name, kind, state, waiting,
// running, answered, …}, as `accel_lab/views/patterns/state.py` says.

import { standalone } from "../shared/standalone.js";
import { toHtml } from "../shared/dom.js";
import { drawPatterns, patternsView } from "./draw.js";
import { mountPatterns } from "./mount.js";

/** The whole view as an HTML string. */
export function html(state, view = {}) {
  return toHtml(...drawPatterns(state, { ...patternsView(), ...view }));
}

export default standalone(mountPatterns);
