import assert from "node:assert/strict";
import { test } from "node:test";

import { TimelineRing } from "../../../widgets/timeline/ring.js";
import { timelineExtent, timelineNeighbour, timelinePicked, timelineUnder } from "../../../widgets/timeline/slices.js";
import { CASE, HEADING, NOW, ROWS, Timeline, free, near } from "./case.mjs";

const RANGE = free(1000, 1002); // 300 pixels a second
const x = (at) => (at - 1000) * 300;
const under = (at, y, more = {}) => timelineUnder(new Timeline().look({ range: RANGE, ...more }), { x: x(at), y });

test("a slice is found by its row and its moment", () => {
  const found = under(1000.6, ROWS[1]);
  assert.equal(found.row, 1);
  assert.deepEqual(found.slice, { work: 1, seq: 2, start: 1000.5, end: 1000.75, more: 0, queued: null });
  assert.equal(found.number, 1);
});

test("a slice is found three pixels beside it, and no further", () => {
  assert.equal(under(1000.75 + 2.9 / 300, ROWS[1]).slice.seq, 2);
  assert.deepEqual(under(1000.75 + 3.1 / 300, ROWS[1]), { row: 1 });
});

test("what runs reaches to now", () => {
  const found = under(NOW, ROWS[3]);
  assert.deepEqual(found, { row: 3, seq: 8, slice: { work: 3, seq: 8, start: 1000.75, end: null } });
  assert.deepEqual(under(NOW + 0.1, ROWS[3]), { row: 3 });
  assert.deepEqual(under(1000.7, ROWS[3]), { row: 3 });
});

test("of several slices under a pixel one is told, and how many more there are", () => {
  const { slice } = under(1000.8, ROWS[1], { range: free(0, 2000) });
  assert.equal(slice, undefined);
  const wide = timelineUnder(new Timeline().look({ range: free(900, 1100) }), { x: 302, y: ROWS[1] });
  assert.equal(wide.slice.more, 1);
});

test("a mark is found in the heading of its device: a cross before its moment, a word behind", () => {
  assert.equal(under(1001.125 - 8 / 300, HEADING).mark[2], "fault");
  assert.equal(under(1001.125 - 25 / 300, HEADING), null);
  assert.equal(under(1001.25 + 15 / 300, HEADING).mark[2], "generation");
  assert.equal(under(1001.25 + 15 / 300, 106), null, "of another device");
});

test("what is scrolled away lies further up", () => {
  assert.equal(under(1000.6, ROWS[1] - 20, { top: 20 }).slice.seq, 2);
});

test("nothing lies on the axis, nor below the last lane", () => {
  assert.equal(under(1000.6, 20, { top: 60 }), null);
  assert.equal(under(1000.6, 500), null);
});

test("everything is from the first start to now, or to the last end of what has ended", () => {
  assert.deepEqual(new Timeline().look().extent, [1000.25, NOW]);
  assert.deepEqual(new Timeline({ closed: true, running: [] }).look().extent, [1000.25, 1001]);
  const nothing = { state: null, ring: new TimelineRing(), now: 50 };
  assert.deepEqual(timelineExtent(nothing), [40, 50]);
  const begun = { state: { running: [[0, 1, 50]] }, ring: new TimelineRing(), now: 50 };
  near(timelineExtent(begun), [50, 50.0001]);
});

test("what is picked is found while it runs, when it has finished, and no longer when it is gone", () => {
  const view = new Timeline().look();
  assert.equal(timelinePicked(view), null);
  assert.equal(timelinePicked({ ...view, picked: { row: 3, seq: 8 } }).end, null);
  assert.equal(timelinePicked({ ...view, picked: { row: 1, number: 1 } }).end, 1000.75);
  assert.equal(timelinePicked({ ...view, picked: { row: 1, number: 2 } }), null);
  assert.equal(timelinePicked({ ...view, picked: { row: 3, seq: 9 } }), null);
});

test("the neighbours of a row are its slices in order, then what runs, and end there", () => {
  const view = new Timeline({ running: [[3, 8, 1000.75], [1, 9, 1001.2]] }).look();
  const from = (picked, by) => timelineNeighbour({ ...view, picked }, 1, by);
  const [first, second, running] = [{ row: 1, number: 1 }, { row: 1, number: 3 }, { row: 1, seq: 9 }];
  assert.deepEqual(from(null, -1), running, "the newest is first");
  assert.deepEqual(from({ row: 0, number: 0 }, -1), running, "whatever another row has");
  assert.deepEqual(from(running, -1), second);
  assert.deepEqual(from(second, -1), first);
  assert.deepEqual(from(first, -1), first);
  assert.deepEqual(from(second, 1), running);
  assert.deepEqual(from(running, 1), running);
});

test("a row without slices has no neighbours", () => {
  const { state } = new Timeline({ running: [] }).look();
  assert.equal(timelineNeighbour({ state, ring: new TimelineRing(), picked: null }, 3, 1), null);
  assert.equal(CASE.state.rows[3].count, 0);
});
