// Chosen arrays on a page.

import { patch } from "../shared/dom.js";
import { drawValues, valuesView } from "./draw.js";

/** Draw them into `root`; see `standalone.js`. */
export function mountValues(root, bus) {
  const window = root.ownerDocument.defaultView;
  const view = valuesView();
  let state = null;
  let frame = 0;

  function paint() {
    frame = 0;
    patch(root, drawValues(state, view));
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
