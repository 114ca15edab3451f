// The trainers on a page.

import { patch } from "../shared/dom.js";
import { drawTraining, trainingView } from "./draw.js";

/** Draw the trainers into `root`; see `standalone.js`. */
export function mountTraining(root, bus) {
  const window = root.ownerDocument.defaultView;
  const view = trainingView();
  let state = null;
  let frame = 0;

  function paint() {
    frame = 0;
    patch(root, drawTraining(state, view));
  }

  function redraw() {
    if (!frame) frame = window.requestAnimationFrame(paint);
  }

  const unwatch = bus.watch("stale", (value) => {
    view.stale = value;
    redraw();
  });
  paint();
  return {
    take(next) {
      state = next;
      redraw();
    },
    unmount() {
      unwatch();
      window.cancelAnimationFrame(frame);
    },
  };
}
