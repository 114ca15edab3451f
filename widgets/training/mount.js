// The trainers on a page.

import { mountDrawn } from "../shared/dom.js";
import { drawTraining, trainingView } from "./draw.js";

/** Draw the trainers into `root`; see `standalone.js`. */
export function mountTraining(root, bus) {
  return mountDrawn(root, bus, trainingView(), drawTraining);
}
