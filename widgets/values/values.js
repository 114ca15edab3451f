// What chosen arrays held, live. State: {lab, series, closed}; a series is {name, device, array, look, at, counts,
// curve, …}, as `accel_lab/views/values/state.py` says.

import { standalone } from "../shared/standalone.js";
import { toHtml } from "../shared/dom.js";
import { drawValues, valuesView } from "./draw.js";
import { mountValues } from "./mount.js";

/** The whole view as an HTML string. */
export function html(state, view = {}) {
  return toHtml(...drawValues(state, { ...valuesView(), ...view }));
}

export default standalone(mountValues);
