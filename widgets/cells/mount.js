// The cells of a session on a page: the slider asks for a commit when it rests.

import { patch } from "../shared/dom.js";
import { cellsLooks, drawCells } from "./draw.js";

const CELLS_REST_MS = 150; // for so long the slider stays before its place is asked for: to look there may take a while

/** Draw the cells into `root`; see `standalone.js`. */
export function mountCells(root, bus) {
  const window = root.ownerDocument.defaultView;
  const view = cellsLooks();
  let state = null;
  let frame = 0;
  let timer = 0;

  function paint() {
    frame = 0;
    patch(root, drawCells(state, view));
    const slider = root.querySelector(".al-cells-slider");
    const at = String(view.asked ?? state?.position ?? 1);
    if (slider && slider.value !== at) slider.value = at;
  }

  function redraw() {
    if (!frame) frame = window.requestAnimationFrame(paint);
  }

  function ask(position, after = 0) {
    view.asked = Math.min(Math.max(1, position), state.count);
    window.clearTimeout(timer);
    timer = window.setTimeout(() => bus.command({ do: "seek", position: view.asked }), after);
    redraw();
  }

  function onInput(event) {
    if (event.target.closest?.(".al-cells-slider")) ask(Number(event.target.value), CELLS_REST_MS);
  }

  function onClick(event) {
    const button = event.target.closest?.("button[data-step]");
    if (button && state?.count) ask((view.asked ?? state.position) + Number(button.dataset.step));
  }

  function onKey(event) {
    if (event.target.closest?.(".al-cells-slider")) event.stopPropagation(); // JupyterLab would leave the cell
  }

  root.addEventListener("input", onInput);
  root.addEventListener("click", onClick);
  root.addEventListener("keydown", onKey);
  const unwatch = bus.watch("stale", (value) => {
    view.stale = value;
    redraw();
  });
  paint();
  return {
    take(next) {
      state = next;
      if (view.asked === state.position || state.closed) view.asked = null;
      redraw();
    },
    unmount() {
      unwatch();
      window.clearTimeout(timer);
      window.cancelAnimationFrame(frame);
    },
  };
}
