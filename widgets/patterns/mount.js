// The patterns on a page.

import { mountDrawn } from "../shared/dom.js";
import { drawPatterns, patternsView } from "./draw.js";

/** Draw the patterns into `root`; see `standalone.js`. */
export function mountPatterns(root, bus) {
  return mountDrawn(root, bus, patternsView(), drawPatterns);
}
