// The memory of the devices on a page: what the pointer, the keys and new states do to it.

import { patch } from "../shared/dom.js";
import { bufferNumber } from "../shared/format.js";
import { vramDraw, vramStrips, vramView } from "./draw.js";

const VRAM_PASSED_ON = new Set(["Tab", "Escape", "Shift", "Control", "Alt", "Meta"]);
const VRAM_HISTORY_S = 1; // from one drawing of a history that only grows older to the next
const VRAM_DOING = { free: "Freeing", checkpoint: "Checkpointing" };

/** What a key does on a strip: the index of the piece to go to, "choose", or null for nothing. */
export function vramPress(key, at, size) {
  switch (key) {
    case "ArrowRight":
    case "ArrowDown": return Math.min(size - 1, at + 1);
    case "ArrowLeft":
    case "ArrowUp": return Math.max(0, at - 1);
    case "Home": return 0;
    case "End": return size - 1;
    case "Enter":
    case " ": return "choose";
    default: return null;
  }
}

/** Draw the view into `root`; see `standalone.js`. */
export function mountVram(root, bus) {
  const window = root.ownerDocument.defaultView;
  const view = vramView();
  let state = null;
  let frame = 0;

  const blockOf = (key) => root.querySelector(`.vram-block[data-key="${window.CSS.escape(key)}"]`);
  const focused = () => root.getRootNode().activeElement;

  function paint() {
    frame = 0;
    const before = focused()?.closest?.(".vram-strip")?.dataset.strip;
    patch(root, vramDraw(state, view));
    measure();
    // The focused block may be gone: its keys must not fall to the page.
    if (before !== undefined && !root.contains(focused())) {
      const next = root.querySelector(`[data-strip="${window.CSS.escape(before)}"] [tabindex="0"]`) ?? root.querySelector('.vram-strip [tabindex="0"]');
      next?.focus({ preventScroll: true });
    }
  }

  /** Note how wide a strip is: what is too small to be drawn to scale depends on it. */
  function measure() {
    const width = root.querySelector(".vram-strip")?.clientWidth ?? 0;
    if (!width || Math.abs(width - view.width) < 2) return;
    view.width = width;
    redraw();
  }

  function redraw() {
    if (!frame) frame = window.requestAnimationFrame(paint);
  }

  function take(next, stamp) {
    view.now = stamp || view.now;
    if (next.said && next.said !== state?.said) view.said = next.said;
    state = next;
    redraw();
  }

  function find(key) {
    for (const strip of vramStrips(state)) {
      const at = strip.pieces.findIndex(([own]) => own === key);
      if (at >= 0) return { strip, at };
    }
    return null;
  }

  function choose(key) {
    const found = find(key);
    if (!found) return;
    view.chosen = key;
    view.active.set(found.strip.strip, key);
    bus.set("selection", found.strip.path);
    redraw();
  }

  function drop({ device, space, name }) {
    bus.command({ do: "drop", device, space, name });
    view.said = `Dropping object ${name} of ${device}…`;
    redraw();
  }

  function act({ do: deed, device, ids }) {
    const numbers = ids.split(" ").map(Number);
    for (const id of numbers) bus.command({ do: deed, device, id });
    view.said = `${VRAM_DOING[deed]} ${numbers.length === 1 ? "buffer" : "buffers"} ${numbers.map(bufferNumber).join(", ")} of ${device}…`;
    redraw();
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || VRAM_PASSED_ON.has(event.key)) return;
    event.stopPropagation(); // JupyterLab would run, delete or leave the cell
    const key = event.target.closest?.(".vram-block")?.dataset.key;
    const found = event.type === "keydown" && key !== undefined ? find(key) : null;
    const deed = found && vramPress(event.key, found.at, found.strip.pieces.length);
    if (deed === null) return;
    event.preventDefault();
    if (deed === "choose") return choose(key);
    const [next] = found.strip.pieces[deed];
    view.active.set(found.strip.strip, next);
    view.focused = next;
    patch(root, vramDraw(state, view));
    blockOf(next)?.focus({ preventScroll: true });
    blockOf(next)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function onClick(event) {
    const button = event.target.closest("[data-do]");
    const key = event.target.closest("[data-key]")?.dataset.key;
    if (button?.dataset.do === "all") {
      view.all = !view.all;
      redraw();
    } else if (button?.dataset.do === "drop") drop(button.dataset);
    else if (button) act(button.dataset);
    else if (key !== undefined) choose(key);
  }

  function light(how, key) {
    if (key === view[how]) return;
    view[how] = key;
    redraw();
  }

  const keyAt = (event) => event.target.closest?.("[data-key]")?.dataset.key ?? null;
  const onPoint = (event) => light("pointed", event.type === "pointerleave" ? null : keyAt(event));
  const onFocus = (event) => {
    const key = keyAt(event);
    const found = key && event.target.closest(".vram-block") ? find(key) : null;
    if (found) view.active.set(found.strip.strip, key);
    light("focused", key);
  };
  const onBlur = (event) => {
    if (!root.contains(event.relatedTarget)) light("focused", null);
  };

  for (const type of ["keydown", "keypress", "keyup"]) root.addEventListener(type, onKey);
  root.addEventListener("click", onClick);
  root.addEventListener("pointerover", onPoint);
  root.addEventListener("pointerleave", onPoint);
  root.addEventListener("focusin", onFocus);
  root.addEventListener("focusout", onBlur);

  const unwatch = [
    bus.watch("stale", (seconds) => {
      view.stale = seconds;
      redraw();
    }),
    bus.watch("selection", (path) => {
      view.selection = path;
      redraw();
    }),
  ];
  view.selection = bus.get("selection");
  const sized = new window.ResizeObserver(measure);
  sized.observe(root);
  paint();
  return {
    take,
    stamp(at) {
      if (at - view.now < VRAM_HISTORY_S) return;
      view.now = at;
      redraw();
    },
    unmount() {
      sized.disconnect();
      for (const end of unwatch) end();
      window.cancelAnimationFrame(frame);
    },
  };
}
