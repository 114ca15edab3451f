// The trainers of a system, live. State: {lab, runs, closed}; a run is {name, step, at, rate, took, curve, ranks, …},
// as `accel_lab/views/training/state.py` says.

import { standalone } from "../shared/standalone.js";
import { toHtml } from "../shared/dom.js";
import { drawTraining, trainingView } from "./draw.js";
import { mountTraining } from "./mount.js";

/** The whole view as an HTML string. */
export function html(state, view = {}) {
  return toHtml(...drawTraining(state, { ...trainingView(), ...view }));
}

export default standalone(mountTraining);
