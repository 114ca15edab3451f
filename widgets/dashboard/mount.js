// The list of systems on a page: what clicks and new states do to it.

import { drawDashboard } from "./draw.js";
import { patch } from "../shared/dom.js";

/** Draw the list into `root`; see `standalone.js`. */
export function mountDashboard(root, bus) {
  let state = null;
  let stale = null;

  const paint = () => patch(root, drawDashboard(state, stale));

  root.addEventListener("click", (event) => {
    const key = event.target.closest?.("[data-system]")?.dataset.system;
    if (key) bus.command({ do: "choose", system: key });
  });
  const unwatch = bus.watch("stale", (seconds) => {
    stale = seconds;
    paint();
  });
  paint();
  return {
    take(next) {
      state = next;
      paint();
    },
    unmount: unwatch,
  };
}
