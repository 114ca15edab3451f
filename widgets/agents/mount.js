// The graphs of agents on a page.

import { patch } from "../shared/dom.js";
import { drawAgents, agentsView } from "./draw.js";

/** Draw the graphs into `root`; see `standalone.js`. */
export function mountAgents(root, bus) {
  const window = root.ownerDocument.defaultView;
  const view = agentsView();
  let state = null;
  let frame = 0;

  function paint() {
    frame = 0;
    patch(root, drawAgents(state, view));
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
