// Small drawings in the colour of the text around them. All are decoration: the word is beside them.

import { h } from "./dom.js";

const SHAPES = {
  // States, 12 x 12: each has its own outline, so that they differ without colour.
  running: [["circle", { cx: 6, cy: 6, r: 3.5, fill: "currentColor" }]],
  idle: [["circle", { cx: 6, cy: 6, r: 3.2 }]],
  starting: [["circle", { cx: 6, cy: 6, r: 4, "stroke-dasharray": "2 2.2" }]],
  suspended: [["path", { d: "M9.6 7.4A4.2 4.2 0 1 1 5 1.9a3.4 3.4 0 0 0 4.6 5.5z", fill: "currentColor" }]],
  restarting: [["path", { d: "M10 6a4 4 0 1 1-1.3-2.95" }], ["path", { d: "M9.4 .9v2.5H6.9" }]],
  "half-open": [["circle", { cx: 6, cy: 6, r: 4 }], ["path", { d: "M6 2a4 4 0 0 0 0 8z", fill: "currentColor" }]],
  open: [["circle", { cx: 6, cy: 6, r: 4.6 }], ["path", { d: "M4.3 4.3l3.4 3.4M7.7 4.3l-3.4 3.4" }]],
  stopped: [["rect", { x: 3, y: 3, width: 6, height: 6, fill: "currentColor" }]],
  warn: [["path", { d: "M6 1.6 11 10.4H1z" }], ["path", { d: "M6 4.8v2.6M6 8.8v.1" }]],
  pause: [["path", { d: "M4 2.5v7M8 2.5v7", "stroke-width": 1.8 }]],
  play: [["path", { d: "M3.5 2.2 9.5 6l-6 3.8z", fill: "currentColor" }]],
  record: [["circle", { cx: 6, cy: 6, r: 4, fill: "currentColor" }]],
  clear: [["path", { d: "M3.2 3.2l5.6 5.6M8.8 3.2 3.2 8.8" }]],
  ascending: [["path", { d: "M3 7.6 6 4.4l3 3.2" }]],
  descending: [["path", { d: "M3 4.4 6 7.6l3-3.2" }]],
  // Kinds, 14 x 14.
  system: [["circle", { cx: 7, cy: 3, r: 1.8 }], ["circle", { cx: 2.8, cy: 11, r: 1.8 }], ["circle", { cx: 11.2, cy: 11, r: 1.8 }], ["path", { d: "M6.2 4.6 3.7 9.4M7.8 4.6l2.5 4.8M4.6 11h4.8" }]],
  device: [["rect", { x: 3, y: 3, width: 8, height: 8, rx: 1.2 }], ["rect", { x: 5.4, y: 5.4, width: 3.2, height: 3.2 }], ["path", { d: "M5 3V1M9 3V1M5 13v-2M9 13v-2M3 5H1M3 9H1M13 5h-2M13 9h-2" }]],
  context: [["rect", { x: 1.5, y: 2.5, width: 11, height: 9, rx: 1.4 }], ["path", { d: "M4 5.5 6 7l-2 1.5M7.5 8.8h2.5" }]],
  library: [["path", { d: "M7 1.8 12.4 4.6 7 7.4 1.6 4.6zM1.6 7.2 7 10l5.4-2.8M1.6 9.6 7 12.4l5.4-2.8" }]],
  actor: [["circle", { cx: 7, cy: 7, r: 3.4 }]],
  timeline: [["path", { d: "M1.5 3h6M5 7h7.5M3 11h5" }], ["path", { d: "M1.5 1v12" }]],
  fold: [["path", { d: "M4.5 3 7.5 6l-3 3" }]],
};

/** One drawing by name, `size` units square. */
export function icon(name, size) {
  const shapes = SHAPES[name] ?? SHAPES.actor;
  return h(
    "svg",
    { class: `al-icon al-icon-${name}`, viewBox: `0 0 ${size} ${size}`, width: size, height: size, "aria-hidden": "true" },
    shapes.map(([tag, attrs]) => h(tag, attrs)),
  );
}
