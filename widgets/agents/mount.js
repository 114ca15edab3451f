// The graphs of agents on a page.

import { mountDrawn } from "../shared/dom.js";
import { drawAgents, agentsView } from "./draw.js";

/** Draw the graphs into `root`; see `standalone.js`. */
export function mountAgents(root, bus) {
  return mountDrawn(root, bus, agentsView(), drawAgents);
}
