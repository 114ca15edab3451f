// How devices reach each other, live. State: {lab, devices, rows, islands, measured, stale, closed}, as
// `accel_lab/views/topology/state.py` says.

import { standalone } from "../shared/standalone.js";
import { toHtml } from "../shared/dom.js";
import { drawTopology, topologyView } from "./draw.js";
import { mountTopology } from "./mount.js";

/** The whole view as an HTML string. */
export function html(state, view = {}) {
  return toHtml(...drawTopology(state, { ...topologyView(), ...view }));
}

export default standalone(mountTopology);
