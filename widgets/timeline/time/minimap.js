// The minimap: all that is known in one strip, and the part that is shown as a handle on it.

import { h } from "../../shared/dom.js";
import { timelineHold, timelineMoved, timelineShown } from "./range.js";
import { timelineClock, timelineDuration } from "./scale.js";

const TIMELINE_HANDLE_LEAST = 1; // per cent of the strip, so that it can be caught
const TIMELINE_MAP_STEP = 0.2; // of what is shown, for an arrow key

/** What the strip stands for: all that is known, and what is shown beyond that. */
export function timelineMapSpan(view) {
  const [from, to] = timelineShown(view);
  return [Math.min(view.extent[0], from), Math.max(view.extent[1], to)];
}

/** Where the handle is: {left, width} in per cent of the strip. */
export function timelineHandle(view) {
  const [first, last] = timelineMapSpan(view);
  const [from, to] = timelineShown(view);
  const width = Math.max(TIMELINE_HANDLE_LEAST, ((to - from) / (last - first)) * 100);
  return { left: Math.min(100 - width, Math.max(0, ((from - first) / (last - first)) * 100)), width };
}

/** Begin to drag the handle at `x` of `width` pixels; beside it, have it come there first. */
export function timelineMapDown(view, { x, width }) {
  const span = timelineMapSpan(view);
  const { left, width: wide } = timelineHandle(view);
  const at = (x / width) * 100;
  const grabbed = left <= at && at <= left + wide;
  const window = timelineShown(view);
  if (grabbed) return { drag: { map: span, x, window } };
  const moved = timelineMapMoved(span, window, span[0] + (x / width) * (span[1] - span[0]) - (window[0] + window[1]) / 2);
  return { drag: { map: span, x, window: moved }, range: timelineHold(view, moved) };
}

/** Drag it on to `x`. */
export function timelineMapMove(view, { x, width }) {
  const { map, window, x: from } = view.drag;
  return { range: timelineHold(view, timelineMapMoved(map, window, ((x - from) / width) * (map[1] - map[0]))) };
}

/** A window that is `by` seconds later, as far as the span allows. */
function timelineMapMoved([first, last], [from, to], by) {
  const most = Math.max(first - from, last - to); // a window may be as wide as the span
  const moved = Math.max(Math.min(first - from, 0), Math.min(by, most));
  return [from + moved, to + moved];
}

/** What a key does on the handle; null where it is not the minimap's. */
export function timelineMapKey(view, key) {
  const [from, to] = timelineShown(view);
  const steps = { ArrowLeft: -TIMELINE_MAP_STEP, ArrowDown: -TIMELINE_MAP_STEP, ArrowRight: TIMELINE_MAP_STEP, ArrowUp: TIMELINE_MAP_STEP, PageDown: -1, PageUp: 1 };
  return steps[key] === undefined ? null : { range: timelineMoved(view, steps[key] * (to - from)) };
}

/** The strip and its handle as nodes; `view` has `mapSpan` and `handle`, as the functions above say. */
export function timelineMapDraw({ state, shown, mapSpan, handle }) {
  const [from, to] = shown;
  const [first, last] = mapSpan;
  const said = `${timelineDuration(to - from)} from ${timelineClock(from, 0)}, of ${timelineDuration(last - first)}`;
  return h(
    "div",
    { key: "map", class: "timeline-map", hidden: !state },
    h("canvas", { key: "canvas", class: "timeline-map-canvas", "aria-hidden": "true" }),
    h("div", {
      key: "handle", class: "timeline-handle", role: "slider", tabindex: 0, title: "Drag to show another time", "aria-label": "Shown part of the time",
      "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(handle.left + handle.width / 2), "aria-valuetext": said,
      style: `inset-inline-start: ${handle.left.toFixed(2)}%; inline-size: ${handle.width.toFixed(2)}%`,
    }),
  );
}
