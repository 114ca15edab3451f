// The canvas on a page.

import { patch } from "../shared/dom.js";
import { canvasIsLost, canvasNumber, canvasView, canvasWord, drawCanvasHead, drawCanvasPanel } from "./draw.js";

const HATCH_MS = 700; // a loss is seen, however quickly it is mended
const SEND_MS = 50; // from one value of a slider to the next

/** Draw the simulation into `root`; see `standalone.js`. */
export function mountCanvas(root, bus) {
  const page = root.ownerDocument;
  const window = page.defaultView;
  const view = canvasView();
  const [head, stage, panel] = ["head", "stage", "panel"].map((name) => {
    const part = page.createElement("div");
    part.className = `al-canvas-${name}`;
    root.append(part);
    return part;
  });
  const picture = page.createElement("canvas");
  picture.className = "al-canvas-picture";
  picture.setAttribute("role", "img");
  const hatch = page.createElement("div");
  hatch.className = "al-canvas-hatch";
  hatch.hidden = true;
  const word = page.createElement("span");
  word.setAttribute("role", "status");
  hatch.append(word);
  stage.append(picture, hatch);
  const pen = picture.getContext("2d");

  let state = null;
  let packed = null; // a DataView
  let painted = 0; // the number of the picture that is shown
  let generation = null;
  let hatched = -Infinity; // until when
  let frame = 0;
  let held = null; // the control that is being moved
  const waiting = new Map(); // control -> the value to send next
  let sending = 0;

  function redraw() {
    if (!frame) frame = window.requestAnimationFrame(paint);
  }

  function paint() {
    frame = 0;
    patch(head, drawCanvasHead(state, view));
    patch(panel, drawCanvasPanel(state));
    for (const input of panel.querySelectorAll("[data-control]")) settle(input);
    if (!state) return;
    paintPicture();
    const now = window.performance.now();
    if (canvasIsLost(state)) hatched = now + HATCH_MS;
    if (now < hatched) word.textContent = `context lost · ${canvasIsLost(state) ? canvasWord(state) : "rebuilt"}`;
    if (hatch.hidden === now < hatched) hatch.hidden = now >= hatched;
  }

  /** Show the newest picture, and say so: the next one comes then. */
  function paintPicture() {
    const [height, width] = state.size;
    if (state.frame === painted || packed?.byteLength !== 3 * height * width) return;
    if (picture.width !== width || picture.height !== height) {
      picture.width = width;
      picture.height = height;
    }
    const image = pen.createImageData(width, height);
    const pixels = image.data;
    for (let to = 0, from = 0; to < pixels.length; to += 4, from += 3) {
      pixels[to] = packed.getUint8(from);
      pixels[to + 1] = packed.getUint8(from + 1);
      pixels[to + 2] = packed.getUint8(from + 2);
      pixels[to + 3] = 255;
    }
    pen.putImageData(image, 0, 0);
    painted = state.frame;
    picture.setAttribute("aria-label", `${state.title}, step ${state.steps}`);
    bus.command({ do: "shown", frame: painted });
  }

  /** Have a control show its value, unless somebody is moving it. */
  function settle(input) {
    const name = input.dataset.control;
    if (name === held || waiting.has(name)) return;
    const { value } = state.controls.find((one) => one.name === name);
    if (Number(input.value) !== value) input.value = value;
  }

  function moved({ target }) {
    const name = target.dataset?.control;
    if (!name) return;
    const value = Number(target.value);
    const told = target.parentElement.querySelector("output");
    if (told) told.textContent = canvasNumber(value);
    waiting.set(name, value);
    if (!sending) sending = window.setTimeout(send, SEND_MS);
  }

  function send() {
    sending = 0;
    for (const [name, value] of waiting) bus.command({ do: "set", name, value });
    waiting.clear();
  }

  function pressed({ target }) {
    const what = target.closest("button")?.dataset.do;
    if (what) bus.command({ do: what });
  }

  panel.addEventListener("click", pressed);
  panel.addEventListener("input", moved);
  panel.addEventListener("pointerdown", ({ target }) => (held = target.dataset?.control ?? null));
  const released = () => (held = null);
  window.addEventListener("pointerup", released);
  const unwatch = bus.watch("stale", (stale) => {
    view.stale = stale;
    redraw();
  });
  paint();
  return {
    columns(next) {
      packed = next;
    },
    take(next) {
      if (generation !== null && next.generation > generation) hatched = window.performance.now() + HATCH_MS;
      generation = next.generation;
      state = next;
      redraw();
    },
    tick() {
      if (!hatch.hidden) redraw();
    },
    unmount() {
      unwatch();
      window.removeEventListener("pointerup", released);
      window.clearTimeout(sending);
      window.cancelAnimationFrame(frame);
    },
  };
}
