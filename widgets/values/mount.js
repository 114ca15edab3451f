// Chosen arrays on a page.

import { mountDrawn } from "../shared/dom.js";
import { drawValues, valuesView } from "./draw.js";

/** Draw them into `root`; see `standalone.js`. */
export function mountValues(root, bus) {
  return mountDrawn(root, bus, valuesView(), drawValues);
}
