// The keyboard of a timeline, as functions from a view and a key to a change.
//
// A change has what `TimelineModel.apply` takes, and `focus` (the row that gets the focus) and
// `scrollBy` (pixels), which are the page's.

import { timelineDescribe } from "./told.js";
import { timelinePath } from "./lanes.js";
import { timelineAll, timelineCentred, timelineFollow, timelineMoved, timelineShown, timelineZoomed } from "./time/range.js";
import { timelineNeighbour, timelinePicked } from "./slices.js";

const TIMELINE_STEP = 0.2; // of what is shown, for an arrow key
const TIMELINE_SCROLL = 40; // pixels, for an arrow key
const TIMELINE_PASSED_ON = new Set(["Tab", "Shift", "Control", "Alt", "Meta"]);
const TIMELINE_ZOOMS = { "+": 0.5, "=": 0.5, "-": 2, _: 2 };

/** Whether a key is the page's or the browser's. */
export function timelineIsPassedOn({ key, ctrlKey, metaKey, altKey }) {
  return Boolean(ctrlKey || metaKey || altKey) || TIMELINE_PASSED_ON.has(key);
}

/** What a key changes where `row` has the focus, or the picture if that is null; null when nothing. */
export function timelineKey(view, key, row) {
  return timelineCommonKey(view, key) ?? (row === null ? timelinePlotKey(view, key) : timelineRowKey(view, key, row));
}

function timelineCommonKey(view, key) {
  if (TIMELINE_ZOOMS[key]) return { range: timelineZoomed(view, TIMELINE_ZOOMS[key], view.cursor) };
  switch (key) {
    case "Home": return { range: timelineAll(view) };
    case "End": return { range: timelineFollow(view) };
    case "Escape": return { span: null };
    case "s":
    case "S": return { span: timelineShown(view) };
    default: return null;
  }
}

function timelinePlotKey(view, key) {
  const [from, to] = timelineShown(view);
  const by = (to - from) * TIMELINE_STEP;
  switch (key) {
    case "ArrowLeft": return { range: timelineMoved(view, -by) };
    case "ArrowRight": return { range: timelineMoved(view, by) };
    case "ArrowUp": return { scrollBy: -TIMELINE_SCROLL };
    case "ArrowDown": return { scrollBy: TIMELINE_SCROLL };
    default: return null;
  }
}

function timelineRowKey(view, key, row) {
  const rows = view.lanes.filter((lane) => lane.row !== null).map((lane) => lane.row);
  const go = (by) => timelineActivate(rows[Math.min(rows.length - 1, Math.max(0, rows.indexOf(row) + by))]);
  switch (key) {
    case "ArrowDown": return go(1);
    case "ArrowUp": return go(-1);
    case "ArrowLeft": return timelineStep(view, row, -1);
    case "ArrowRight": return timelineStep(view, row, 1);
    case "Enter":
    case " ": return timelineSelect(view, view.state.rows[row].device);
    default: return null;
  }
}

/** Have a row the keyboard's attention. */
export function timelineActivate(row) {
  return { active: row, focus: row };
}

/** Select a device on the page, or no longer. */
export function timelineSelect({ state, selection }, device) {
  const path = timelinePath(state, device);
  return { selection: selection === path ? null : path };
}

/** Pick the slice before or after the picked one of a row, bring it into sight and say it. */
function timelineStep(view, row, by) {
  const picked = timelineNeighbour(view, row, by);
  if (!picked) return {};
  const slice = timelinePicked({ ...view, picked });
  const [from, to] = timelineShown(view);
  const isSeen = from <= slice.start && slice.start <= to;
  const range = isSeen ? view.range : timelineCentred(view, slice.start);
  const { what, text } = timelineDescribe(view.state, slice, view.now);
  return { picked, range, said: `${what}, ${text}`, cursor: slice.start };
}
