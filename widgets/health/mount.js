// The health strip on a page.

import { patch } from "../shared/dom.js";
import { drawHealth, healthView } from "./draw.js";
import { healthTracks } from "./tracks.js";

/** Draw the strip into `root`; see `standalone.js`. */
export function mountHealth(root, bus) {
  const window = root.ownerDocument.defaultView;
  const view = healthView();
  let packed = null; // a DataView
  let state = null;
  let frame = 0;

  function paint() {
    frame = 0;
    patch(root, drawHealth(state, view));
  }

  function redraw() {
    if (!frame) frame = window.requestAnimationFrame(paint);
  }

  const unwatch = ["stale", "cursor", "selection"].map((key) =>
    bus.watch(key, (value) => {
      view[key] = value;
      redraw();
    }),
  );
  view.cursor = bus.get("cursor");
  view.selection = bus.get("selection");
  paint();
  return {
    columns(next) {
      packed = next;
    },
    take(next) {
      state = next;
      view.tracks = healthTracks(packed, next.sources) ?? view.tracks;
      if (view.tracks?.length !== next.sources.length) view.tracks = null;
      redraw();
    },
    unmount() {
      for (const end of unwatch) end();
      window.cancelAnimationFrame(frame);
    },
  };
}
