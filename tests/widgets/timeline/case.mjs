// A timeline without a page: the state of `timeline_case.json`, whose last moment is 1001.5.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { Bus } from "../../../widgets/shared/bus.js";
import { TimelineModel } from "../../../widgets/timeline/model.js";

export const CASE = JSON.parse(readFileSync(new URL("../../views/timeline_case.json", import.meta.url), "utf8"));
export const NOW = 1001.5;
export const WIDTH = 600;
export const ROWS = [57, 83, 129, 155]; // the middle of each lane
export const HEADING = 34; // of the first device

/** What `Tally.pack` would send: slices as [start, end, seq, work]. */
export function packed(first, slices, shift = 0) {
  const numbers = [first, slices.length, ...[0, 1, 2, 3].flatMap((k) => slices.map((slice) => slice[k]))];
  const bytes = new ArrayBuffer(numbers.length * 8 + shift);
  const view = new DataView(bytes, shift);
  numbers.forEach((number, i) => view.setFloat64(i * 8, number, true));
  return view;
}

/** A timeline and all that it hears: `clock.ms` passes when a test says so. */
export class Timeline {
  bus = new Bus();
  clock = { ms: 5000 };
  model = new TimelineModel(this.bus, () => this.clock.ms);

  constructor(more = {}) {
    this.model.columns(new DataView(Float64Array.from(CASE.columns).buffer));
    this.model.take({ ...CASE.state, ...more }, NOW);
  }

  /** What a page of this width would hand to the parts. */
  look(more = {}) {
    return { ...this.model.look(), width: WIDTH, top: 0, ...more };
  }

  /** Apply what a part makes of a view and of what happened. */
  act(part, ...happened) {
    const change = part(this.look(), ...happened);
    if (change) this.model.apply(change);
    return change;
  }
}

/** The range of a view that stands still and shows this. */
export function free(from, to) {
  return { mode: "free", length: 10, free: [from, to], chosen: false };
}

/** Assert that numbers agree to a nanosecond of wall time. */
export function near(actual, expected) {
  const [a, b] = [actual, expected].map((value) => [value].flat());
  assert.ok(a.length === b.length && a.every((value, i) => Math.abs(value - b[i]) < 1e-6), `${a} is not ${b}`);
}
