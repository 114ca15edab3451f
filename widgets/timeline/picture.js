// What is drawn of a view (`TimelineModel.look`), and when.

import { timelineCellTold, timelineDescribe, timelineGaugeTold, timelineRelatedInWords, timelineWaitTold } from "./told.js";
import { timelineHeight } from "./lanes.js";
import { timelineHandle, timelineMapSpan } from "./time/minimap.js";
import { timelineRelated } from "./paint/arrows.js";
import { timelineShown } from "./time/range.js";
import { timelinePicked, timelineUnder } from "./slices.js";

const TIMELINE_TALLEST = 440; // pixels of lanes before they scroll
const TIMELINE_QUIET_MS = 1000; // from one picture to the next while nothing but the axis moves

/** What is pointed at, unless something is dragged. */
export function timelineHovered(view) {
  return view.pointer && !view.drag && view.state ? timelineUnder(view, view.pointer) : null;
}

/** What `timelineDraw` draws of a view in which `hovered` is pointed at. */
export function timelineDrawing(view, hovered, id) {
  const { lanes, range, active } = view;
  return { ...view, mode: range.mode, shown: timelineShown(view), mapSpan: timelineMapSpan(view), handle: timelineHandle(view), active: active ?? lanes.find((lane) => lane.row !== null)?.row ?? null, detail: timelineTold(view, hovered), id };
}

/** What is said of what is pointed at, else of what is picked: {what, text}, or null. */
function timelineTold(view, hovered) {
  if (hovered?.mark) {
    const [, device, kind, what] = hovered.mark;
    return { what, text: `${kind} · ${device}` };
  }
  if (hovered?.cell) return timelineCellTold(hovered.cell, view.now);
  if (hovered?.wait) return timelineWaitTold(hovered.wait, view.now);
  if (hovered?.gauge) return timelineGaugeTold(view, hovered.gauge);
  const slice = hovered?.slice ?? timelinePicked(view);
  if (!slice) return null;
  const { what, text } = timelineDescribe(view.state, slice, view.now);
  return { what, text: [text, timelineRelatedInWords(view.state, slice)].filter(Boolean).join(" · ") };
}

/** What `timelinePaint` paints of a view on a sheet of this width, scrolled to `top`. */
export function timelineScene(view, hovered, { width, top }) {
  return { ...view, window: timelineShown(view), activeRow: view.active, hovered, related: view.state ? timelineRelated(view) : [], width, height: timelineSheetHeight(view), top };
}

/** How high the picture is; what is higher scrolls. */
export function timelineSheetHeight({ lanes }) {
  return Math.min(TIMELINE_TALLEST, timelineHeight(lanes));
}

/** Give a canvas the pixels that it needs at this size; whether it changed, and so is empty now. */
export function timelineFit(sheet, width, height, ratio) {
  const [wide, high] = [width, height].map((pixels) => Math.round(pixels * ratio));
  if (sheet.width === wide && sheet.height === high) return false;
  sheet.width = wide;
  sheet.height = high;
  sheet.style.blockSize = `${height}px`;
  return true;
}

/** Whether a view moves by itself and is due, `age` milliseconds after its last picture. */
export function timelineIsDue(view, age) {
  const { state, range, held, stale } = view;
  const moves = state && !state.closed && state.at === undefined && !held && stale === null;
  if (!moves || (range.mode === "free" && !state.running.length)) return false;
  return age >= TIMELINE_QUIET_MS || !timelineIsQuiet(view);
}

/** Whether nothing moves but the axis. */
function timelineIsQuiet(view) {
  const { state, ring, range } = view;
  const [from] = timelineShown(view);
  return range.mode === "follow" && !state.running.length && state.marks.every(([at]) => at < from) && ring.tracks.every((track) => track.from(from) === track.tail);
}

/** Calls `paint` once a frame of a window at most, however often it is asked. */
export class TimelineFrames {
  #window;
  #paint;
  #frame = 0;
  #painted = 0; // ms of performance.now()

  constructor(window, paint) {
    this.#window = window;
    this.#paint = paint;
  }

  /** How many milliseconds ago the last picture was begun. */
  get age() { return this.#window.performance.now() - this.#painted; }

  /** Paint with the next frame. */
  ask() {
    if (!this.#frame) this.#frame = this.#window.requestAnimationFrame(() => this.#run());
  }

  /** Paint at once. */
  now() {
    this.cancel();
    this.#run();
  }

  cancel() {
    this.#window.cancelAnimationFrame(this.#frame);
  }

  #run() {
    this.#frame = 0;
    this.#painted = this.#window.performance.now();
    this.#paint();
  }
}
