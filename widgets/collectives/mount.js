// The worlds on a page.

import { patch } from "../shared/dom.js";
import { collectivesView, drawCollectives } from "./draw.js";

const COLLECTIVES_PASSED_ON = new Set(["Tab", "Escape", "Shift", "Control", "Alt", "Meta"]); // JupyterLab may have these

/** Draw the worlds into `root`; see `standalone.js`. */
export function mountCollectives(root, bus) {
  const window = root.ownerDocument.defaultView;
  const view = collectivesView();
  let state = null;
  let frame = 0;

  function paint() {
    frame = 0;
    patch(root, drawCollectives(state, view));
  }

  function redraw() {
    if (!frame) frame = window.requestAnimationFrame(paint);
  }

  /** Show a step of a ring, or have every view look at a device, or no longer. */
  function onClick(event) {
    const button = event.target.closest("button[data-world-step]");
    if (button) {
      view.steps = { ...view.steps, [button.dataset.worldStep]: Number(button.dataset.step) };
      redraw();
      return;
    }
    const path = event.target.closest("button[data-path]")?.dataset.path;
    if (path) bus.set("selection", bus.get("selection") === path ? null : path);
  }

  /** Have JupyterLab hear no key: it would run, delete or leave the cell. */
  function onKey(event) {
    if (!event.ctrlKey && !event.metaKey && !event.altKey && !COLLECTIVES_PASSED_ON.has(event.key)) event.stopPropagation();
  }

  root.addEventListener("click", onClick);
  for (const type of ["keydown", "keypress", "keyup"]) root.addEventListener(type, onKey);
  const unwatch = ["stale", "selection"].map((key) =>
    bus.watch(key, (value) => {
      view[key] = value;
      redraw();
    }),
  );
  view.selection = bus.get("selection");
  paint();
  return {
    take(next) {
      state = next;
      redraw();
    },
    unmount() {
      for (const end of unwatch) end();
      window.cancelAnimationFrame(frame);
    },
  };
}
