// The bar above a lab on a page: what it shows of the bus, and what its buttons do to that.

import { patch } from "../shared/dom.js";
import { drawLabBar, labBarView } from "./draw.js";

const LAB_PASSED_ON = new Set(["Tab", "Escape", "Shift", "Control", "Alt", "Meta"]); // JupyterLab may have these
const LAB_SHOWN = ["selection", "span", "paused", "stale", "closed", "replay"];

/** Have JupyterLab hear no key that is for `root`: it would run, delete or leave the cell. */
export function keepKeys(root) {
  const keep = (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey && !LAB_PASSED_ON.has(event.key)) event.stopPropagation();
  };
  for (const type of ["keydown", "keypress", "keyup"]) root.addEventListener(type, keep);
}

/** Draw the bar at the end of `root`: `{take(state), unmount()}`. */
export function mountLabBar(root, bus) {
  const page = root.ownerDocument;
  const window = page.defaultView;
  const bar = page.createElement("div");
  bar.className = "al-lab-bar";
  root.append(bar);
  let state = null;
  let frame = 0;

  function paint() {
    frame = 0;
    bar.toggleAttribute("data-replay", Boolean(bus.get("replay")));
    patch(bar, drawLabBar(state, labBarView(bus)));
  }

  function redraw() {
    if (!frame) frame = window.requestAnimationFrame(paint);
  }

  bar.addEventListener("click", (event) => {
    const { do: deed, key } = event.target.closest("[data-do]")?.dataset ?? {};
    if (deed === "pause") bus.set("paused", !bus.get("paused"));
    if (deed === "live") bus.set("moment", null);
    if (deed === "live") bus.command({ do: "part", part: "journal", message: { do: "live" } });
    if (deed === "crash") bus.command({ do: "crash" });
    if (deed === "clear") bus.set(key, null);
  });
  keepKeys(bar);
  const unwatch = LAB_SHOWN.map((key) => bus.watch(key, redraw));
  paint();
  return {
    take(next) {
      state = next;
      redraw();
    },
    unmount() {
      for (const stop of unwatch) stop();
      window.cancelAnimationFrame(frame);
    },
  };
}
