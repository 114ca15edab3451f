// What a timeline on a page knows: the state and the slices, what is shown of them, and what now is.

import { timelineLanes } from "./lanes.js";
import { TIMELINE_RANGE, timelineAll, timelineWithMoment } from "./time/range.js";
import { TimelineRing } from "./ring.js";
import { timelineExtent, timelinePicked } from "./slices.js";
import { TimelineStrips } from "./strips.js";

const TIMELINE_SHARED = ["cursor", "span", "selection", "kernel"]; // with the page's other views, on its bus

/** Holds it; `clock` returns milliseconds that pass, as `performance.now()` does. */
export class TimelineModel {
  #bus;
  #clock;
  #packed = null;
  #word = { stamp: 0, heard: 0 }; // the kernel's last word, and when it came by `clock`
  #held = null; // now, while the view is paused
  #own = {
    state: null,
    ring: new TimelineRing(),
    strips: new TimelineStrips(),
    lanes: [],
    range: TIMELINE_RANGE,
    active: null, // the row that has the keyboard's attention
    picked: null, // see `slices.js`
    pointer: null, // {x, y} over the picture
    drag: null, // {x, window, brush, moved}
    said: "",
    tabled: false, // whether the table is open
  };

  constructor(bus, clock) {
    this.#bus = bus;
    this.#clock = clock;
  }

  /** All of it, at this moment; who can measure the page adds `width` and `top` (pixels scrolled). */
  look() {
    const { state, ring } = this.#own;
    const now = this.#now();
    const [cursor, span, selection, kernel, stale] = [...TIMELINE_SHARED, "stale"].map((key) => this.#bus.get(key));
    return { ...this.#own, now, held: this.#held !== null, closed: Boolean(state?.closed), extent: timelineExtent({ state, ring, now }), cursor, span, selection, kernel, stale };
  }

  /** Take a change. Returns whether it is to be drawn; what others are told by the bus is drawn for that. */
  apply(change) {
    const own = Object.keys(change).filter((name) => name in this.#own);
    for (const name of own) this.#own[name] = change[name];
    for (const name of TIMELINE_SHARED) if (name in change) this.#bus.set(name, change[name]);
    return own.some((name) => name !== "drag");
  }

  /** Keep what `Tally.pack` packed until the state that belongs to it is here. */
  columns(packed) {
    this.#packed = packed;
  }

  /** Take a new state, and the slices that came with it. */
  take(state, stamp) {
    const own = this.#own;
    const isFirst = own.state === null;
    own.state = state;
    this.hear(stamp);
    if (this.#packed) own.ring.add(this.#packed, state.works);
    own.strips.take(state, this.#packed);
    own.lanes = timelineLanes(state, own.strips);
    this.#learnCell(state);
    if (state.closed && (isFirst || own.range.mode === "follow")) own.range = timelineAll(own);
  }

  /** Say on the page which cell has sent the picked slice, once that is known. */
  #learnCell({ related, works, rows }) {
    const kernel = this.#bus.get("kernel");
    const picked = timelinePicked(this.#own);
    if (!related || related.cell === null || !kernel || kernel.cells.length || !picked) return;
    const [row, name] = works[picked.work];
    if (name === kernel.name && rows[row].device === related.of[0] && picked.seq === related.of[1]) this.#bus.set("kernel", { name, cells: [related.cell] });
  }

  /** Note the kernel's word of what time it is. */
  hear(stamp) {
    this.#word = { stamp, heard: this.#clock() };
  }

  /** Have now stand still, or go on. */
  pause(paused) {
    this.#held = paused ? this.#now() : null;
  }

  /** Bring a moment that another part chose into sight. Returns whether that changes what is shown. */
  showMoment(moment) {
    if (this.#own.state === null) return false;
    const { range } = this.#own;
    const next = timelineWithMoment(this.look(), moment);
    this.apply({ range: next });
    return next.mode !== range.mode || next.free !== range.free;
  }

  #now() {
    const { state } = this.#own;
    if (state?.at !== undefined) return state.at;
    if (this.#held !== null) return this.#held;
    const passed = state?.closed ? 0 : (this.#clock() - this.#word.heard) / 1000;
    return this.#word.stamp + Math.min(Math.max(0, passed), this.#bus.get("patience"));
  }
}
