// What part of time is shown: it follows now, is everything, or stands still where it was put.
//
// `view` is what `TimelineModel.look` returns; each function that changes a range returns a new one.

import { timelinePan, timelineZoom } from "./scale.js";

export const TIMELINE_FOLLOWED_S = 10; // what is shown at first
const TIMELINE_SHORTEST_S = 0.01; // that is followed
const TIMELINE_MARGIN = 0.02; // of what is shown, beside its ends

/**
 * The range of a timeline that was just opened. `mode` is "follow" (the newest `length` seconds),
 * "all" or "free" (`free`, as [from, to]); `chosen` says whether it is free for a moment that was
 * chosen in another part of the page.
 */
export const TIMELINE_RANGE = Object.freeze({ mode: "follow", length: TIMELINE_FOLLOWED_S, free: [0, TIMELINE_FOLLOWED_S], chosen: false });

/** What a view shows: [from, to] in wall seconds. */
export function timelineShown({ range, now, extent }) {
  if (range.mode === "free") return range.free;
  if (range.mode === "all") {
    const [from, to] = extent;
    return [from - (to - from) * TIMELINE_MARGIN, to + (to - from) * TIMELINE_MARGIN];
  }
  const to = now + range.length * TIMELINE_MARGIN;
  return [to - range.length, to];
}

/** The moment at `x` pixels from the left. */
export function timelineTimeAt(view, x) {
  const [from, to] = timelineShown(view);
  return from + (x / view.width) * (to - from);
}

/** Stand still and show `free`. */
export function timelineHold({ range }, free) {
  return { ...range, mode: "free", free, chosen: false };
}

/** Stand still `by` seconds later than what is shown. */
export function timelineMoved(view, by) {
  return timelineHold(view, timelinePan(timelineShown(view), by));
}

/** Stand still with `at` in the middle. */
export function timelineCentred(view, at) {
  const [from, to] = timelineShown(view);
  return timelineMoved(view, at - (from + to) / 2);
}

/** Show everything. */
export function timelineAll({ range }) {
  return { ...range, mode: "all" };
}

/** Follow now with as much in sight as is shown; show everything of what has ended. */
export function timelineFollow(view) {
  const { range, closed } = view;
  const [from, to] = timelineShown(view);
  const length = range.mode === "follow" ? range.length : Math.max(TIMELINE_SHORTEST_S, to - from);
  return { ...range, mode: closed ? "all" : "follow", length, chosen: false };
}

/** Zoom around `at`, else around the middle; what follows keeps its right edge. */
export function timelineZoomed(view, factor, at = null) {
  const [from, to] = timelineShown(view);
  if (view.range.mode === "follow") {
    const [left, right] = timelineZoom([from, to], factor, to);
    return { ...view.range, length: right - left };
  }
  return timelineHold(view, timelineZoom([from, to], factor, at ?? (from + to) / 2));
}

/** Stand still with `moment`, {at}, in sight, in the middle if it was not; go on when it is null. */
export function timelineWithMoment(view, moment) {
  const { range } = view;
  if (!moment) return range.chosen ? timelineFollow(view) : range;
  const [from, to] = timelineShown(view);
  let next = range;
  if (moment.at < from || to < moment.at) next = timelineCentred(view, moment.at);
  else if (range.mode === "follow") next = timelineHold(view, [from, to]);
  return { ...next, chosen: next.mode === "free" };
}
