import assert from "node:assert/strict";
import { test } from "node:test";

import { TIMELINE_RANGE, timelineAll, timelineCentred, timelineFollow, timelineHold, timelineMoved, timelineShown, timelineTimeAt, timelineWithMoment, timelineZoomed } from "../../../widgets/timeline/time/range.js";
import { free, near } from "./case.mjs";

const EXTENT = [1000, 1020];

function view(range = {}, more = {}) {
  return { range: { ...TIMELINE_RANGE, ...range }, now: 1100, extent: EXTENT, closed: false, width: 600, ...more };
}

test("a timeline that was just opened follows now, with ten seconds and a margin", () => {
  near(timelineShown(view()), [1090.2, 1100.2]);
  near(timelineShown(view({}, { now: 1101 })), [1091.2, 1101.2]);
});

test("everything has a margin on both sides", () => {
  near(timelineShown(view({ mode: "all" })), [999.6, 1020.4]);
});

test("what stands still does not move with now", () => {
  const held = view({ ...free(1000, 1004) }, { now: 9999 });
  assert.deepEqual(timelineShown(held), [1000, 1004]);
  near(timelineTimeAt(held, 150), 1001);
});

test("moving what follows stops it there", () => {
  const range = timelineMoved(view(), -2);
  assert.equal(range.mode, "free");
  near(range.free, [1088.2, 1098.2]);
  near(timelineCentred(view(), 1050).free, [1045, 1055]);
});

test("zooming what follows keeps following, at the same right edge", () => {
  const range = timelineZoomed(view(), 0.5, 1091);
  assert.equal(range.mode, "follow");
  assert.equal(range.length, 5);
  near(timelineShown(view(range)), [1095.1, 1100.1]);
});

test("zooming what stands still keeps a moment in its place, else the middle", () => {
  near(timelineZoomed(view(free(1000, 1010)), 0.5, 1002).free, [1001, 1006]);
  near(timelineZoomed(view(free(1000, 1010)), 2).free, [995, 1015]);
  near(timelineZoomed(view({ mode: "all" }), 0.5).free, [1004.8, 1015.2]);
});

test("to follow again is to follow as much as was shown, but not too little", () => {
  const range = timelineFollow(view(free(1000, 1004)));
  assert.equal(range.mode, "follow");
  near(range.length, 4);
  assert.equal(timelineFollow(view(free(1000, 1000.001))).length, 0.01);
  assert.equal(timelineFollow(view({ length: 3 })).length, 3);
});

test("what has ended is shown whole instead of followed", () => {
  assert.equal(timelineFollow(view(free(1000, 1004), { closed: true })).mode, "all");
});

test("a moment out of sight is put in the middle until it is over", () => {
  const shown = timelineWithMoment(view(), { at: 1010 });
  near(shown.free, [1005, 1015]);
  assert.equal(shown.chosen, true);
  const after = timelineWithMoment(view(shown), null);
  assert.equal(after.mode, "follow");
  assert.equal(after.chosen, false);
  near(after.length, 10);
});

test("a moment in sight stops what follows, and moves nothing", () => {
  const followed = timelineWithMoment(view(), { at: 1095 });
  near(followed.free, [1090.2, 1100.2]);
  assert.equal(followed.chosen, true);
  const all = timelineWithMoment(view({ mode: "all" }), { at: 1010 });
  assert.equal(all.mode, "all");
  assert.equal(all.chosen, false);
});

test("the end of a moment leaves alone what was moved since", () => {
  const chosen = timelineWithMoment(view(), { at: 1010 });
  const moved = timelineMoved(view(chosen), 1);
  assert.deepEqual(timelineWithMoment(view(moved), null), moved);
  const held = timelineHold(view(chosen), [1, 2]);
  assert.equal(held.chosen, false);
});

test("everything is shown without forgetting what was followed", () => {
  assert.deepEqual(timelineAll(view({ length: 3 })), { ...TIMELINE_RANGE, mode: "all", length: 3 });
});
