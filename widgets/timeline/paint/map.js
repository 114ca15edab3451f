// The picture of the minimap: how busy the busiest stream was, the cells above it, faults through it.

import { timelineDeviceBusy } from "./beside.js";

export const TIMELINE_MAP_HIGH = 34; // pixels, as in the style sheet
const TIMELINE_MAP_CELLS = 6; // pixels for the cells
const TIMELINE_MAP_EVERY_MS = 250;

/** Paints it as often as it is worth: it grows by less than a pixel at a time. */
export class TimelineMapPicture {
  #painted = -Infinity;
  #key = "";

  /** Paint `view` over `span`, if it is another picture than the last and that is a while ago. */
  paint(pen, view, span, width, colours, now) {
    const { state, ring, strips } = view;
    const key = [ring.version, strips.cells.length, state.marks.length, width, colours.bg, colours.muted, ...span].join(" ");
    const isDue = now - this.#painted >= TIMELINE_MAP_EVERY_MS || view.drag?.map;
    if (key === this.#key || !isDue) return false;
    [this.#key, this.#painted] = [key, now];
    timelineMapPaint(pen, view, span, width, colours);
    return true;
  }

  /** Forget what was painted: the canvas was emptied. */
  forget() {
    this.#key = "";
    this.#painted = -Infinity;
  }
}

function timelineMapPaint(pen, view, [from, to], width, colours) {
  const { state, strips, now } = view;
  const x = (at) => ((at - from) / (to - from)) * width;
  pen.clearRect(0, 0, width, TIMELINE_MAP_HIGH);
  const high = TIMELINE_MAP_HIGH - TIMELINE_MAP_CELLS - 2;
  const busy = timelineDeviceBusy(view, null, [from, to], Math.ceil(width));
  pen.fillStyle = colours.muted;
  busy.forEach((share, i) => {
    if (share) pen.fillRect(i, TIMELINE_MAP_HIGH - Math.max(1, share * high), 1, Math.max(1, share * high));
  });
  for (const [, start, end, ended] of strips.cells) {
    if ((end ?? now) < from || start > to) continue;
    pen.fillStyle = ended === "failed" ? colours.bad : colours.accent;
    pen.fillRect(x(start), 1, Math.max(1, x(end ?? now) - x(start) - 0.5), TIMELINE_MAP_CELLS - 2);
  }
  pen.fillStyle = colours.bad;
  for (const [at, , kind] of state.marks) if (kind === "fault") pen.fillRect(Math.round(x(at)), 0, 1.5, TIMELINE_MAP_HIGH);
}
