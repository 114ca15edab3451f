// The canvas, live. State: {lab, title, device, state, generation, playing, rate, frame, painted,
// steps, size, measures, controls, closed, film?, problem?, looks_on?}, as JSON in bytes. A measure is
// [name, value], a control {name, low, high, value, choices?}, a film {running, told, failed}; who looks
// on can change nothing. Columns: the picture, red, green and blue of each pixel.

import { standalone } from "../shared/standalone.js";
import { toHtml } from "../shared/dom.js";
import { canvasView, drawCanvasHead, drawCanvasPanel } from "./draw.js";
import { mountCanvas } from "./mount.js";

/** What is around the picture as an HTML string. */
export function html(state, view = {}) {
  const whole = { ...canvasView(), ...view };
  return toHtml(...drawCanvasHead(state, whole), ...drawCanvasPanel(state, whole));
}

export default standalone(mountCanvas);
