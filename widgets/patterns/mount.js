// The patterns on a page.

import { patch } from "../shared/dom.js";
import { drawPatterns, patternsView } from "./draw.js";

/** Draw the patterns into `root`; see `standalone.js`. */
export function mountPatterns(root, bus) {
  const window = root.ownerDocument.defaultView;
  const view = patternsView();
  let state = null;
  let frame = 0;

  function paint() {
    frame = 0;
    patch(root, drawPatterns(state, view));
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
