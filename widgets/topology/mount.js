// How devices reach each other, on a page.

import { mountDrawn } from "../shared/dom.js";
import { drawTopology, topologyView } from "./draw.js";

/** Draw it into `root`; see `standalone.js`. */
export function mountTopology(root, bus) {
  return mountDrawn(root, bus, topologyView(), drawTopology);
}
