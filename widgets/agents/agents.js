// The graphs of a system's agents, live. State: {lab, agents, closed}; an agent is {name, state, …, width,
// height, nodes, edges}, as `accel_lab/views/agents/state.py` says.

import { standalone } from "../shared/standalone.js";
import { toHtml } from "../shared/dom.js";
import { agentsView, drawAgents } from "./draw.js";
import { mountAgents } from "./mount.js";

/** The whole view as an HTML string. */
export function html(state, view = {}) {
  return toHtml(...drawAgents(state, { ...agentsView(), ...view }));
}

export default standalone(mountAgents);
