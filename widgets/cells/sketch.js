// Two arrays beside each other as plain nodes: lines over each other, or two grids where what differs is outlined.

import { h } from "../shared/dom.js";

const CELLS_WIDE = 600; // units of a line's drawing
const CELLS_HIGH = 90;
const CELLS_MARGIN = 3;

/** Draw what `accel_lab/display/sketch.py` has made of two arrays. */
export function cellsSketch(sketch, before, after, name) {
  const { low, top } = sketch;
  const span = `${cellsNumber(low)} to ${cellsNumber(top)}`;
  const words = `${name} ${before} and ${after}, ${span}`;
  const legend = (kind, text) => h("span", { class: "al-cells-key" }, h("span", { class: `al-cells-swatch al-cells-${kind}`, "aria-hidden": "true" }), text);
  if (sketch.high === 1) {
    return h(
      "figure",
      { class: "al-cells-sketch" },
      h("div", { class: "al-cells-plot", role: "img", "aria-label": words }, h("svg", { viewBox: `0 0 ${CELLS_WIDE} ${CELLS_HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" }, h("path", { class: "al-cells-before", d: cellsPath(sketch.before, low, top) }), h("path", { class: "al-cells-after", d: cellsPath(sketch.after, low, top) }))),
      h("figcaption", {}, legend("before", before), legend("after", after), h("span", { class: "al-muted" }, span)),
    );
  }
  const grid = (values, text, kind) =>
    h(
      "figure",
      { class: "al-cells-sketch" },
      h("figcaption", {}, h("span", { class: "al-muted" }, text)),
      h("svg", { class: "al-cells-grid", viewBox: `0 0 ${sketch.wide * 10} ${sketch.high * 10}`, role: "img", "aria-label": `${name} ${text}, ${span}` }, values.map((value, at) => h("rect", { key: at, class: kind === "after" && value !== sketch.before[at] ? "al-cells-differs" : null, x: (at % sketch.wide) * 10 + 0.5, y: Math.floor(at / sketch.wide) * 10 + 0.5, width: 9, height: 9, "fill-opacity": value === null ? 0 : cellsShare(value, low, top).toFixed(2) }))),
    );
  return h("div", { class: "al-cells-grids" }, grid(sketch.before, before, "before"), grid(sketch.after, after, "after"), h("span", { class: "al-muted al-cells-span" }, `${span}; outlined: differs`));
}

function cellsPath(values, low, top) {
  const x = (at) => (CELLS_MARGIN + (at / Math.max(1, values.length - 1)) * (CELLS_WIDE - 2 * CELLS_MARGIN)).toFixed(1);
  const y = (value) => (CELLS_HIGH - CELLS_MARGIN - (top > low ? (value - low) / (top - low) : 0.5) * (CELLS_HIGH - 2 * CELLS_MARGIN)).toFixed(1);
  let path = "";
  let isDown = false;
  values.forEach((value, at) => {
    if (value !== null) path += isDown ? `L${x(at)} ${y(value)}` : `M${x(at)} ${y(value)}h0`;
    isDown = value !== null;
  });
  return path;
}

function cellsShare(value, low, top) {
  return top > low ? 0.08 + (0.92 * (value - low)) / (top - low) : 0.5;
}

function cellsNumber(value) {
  return String(Number(value.toPrecision(4)));
}
