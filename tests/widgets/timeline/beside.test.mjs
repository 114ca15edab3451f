// What a page keeps of what lies beside the slices, and how the minimap moves what is shown.

import assert from "node:assert/strict";
import { test } from "node:test";

import { timelineLanes } from "../../../widgets/timeline/lanes.js";
import { TIMELINE_STRIPS_KEPT, TimelineStrips, timelineFirstAfter, timelineJoined } from "../../../widgets/timeline/strips.js";
import { timelineHandle, timelineMapDown, timelineMapKey, timelineMapMove, timelineMapSpan } from "../../../widgets/timeline/time/minimap.js";
import { TimelineMapPicture } from "../../../widgets/timeline/paint/map.js";
import { timelineDeviceBusy } from "../../../widgets/timeline/paint/beside.js";
import { CASE, Timeline, free, near } from "./case.mjs";

const floats = (...numbers) => new DataView(Float64Array.from(numbers).buffer);
const cell = (number, start, end = null) => [number, start, end, end === null ? "" : "done", "x"];

test("strips are read behind the slices, and a section of another version is passed over", () => {
  const strips = new TimelineStrips();
  strips.take({ devices: ["gpu0", "gpu1"], cells: [cell(1, 5)] }, floats(7, 2, 1, 2, 1.5, 2.5, 0, 1, 0, 0, 1, 0, 2, 10, 12, 11, NaN, 9, 0, 1, 5, 6, 2, 1, 1, 10, 64, 3, 0, 2, 0, 1.75));
  assert.deepEqual(strips.waits, [[10, 11], [12, null]]);
  assert.deepEqual(strips.levels.get("gpu1"), [[10, 64]]);
  assert.equal(strips.levels.has("gpu0"), false);
  assert.deepEqual([...strips.queued], [[8, 1.75]]);
  assert.deepEqual(strips.cells, [cell(1, 5)]);
});

test("what was told before stays, what is told anew replaces it from there on", () => {
  assert.deepEqual(timelineJoined([cell(1, 1, 2), cell(2, 3)], [cell(2, 3, 4), cell(3, 5)], 1), [cell(1, 1, 2), cell(2, 3, 4), cell(3, 5)]);
  assert.deepEqual(timelineJoined([cell(1, 1, 2), cell(2, 3, 4), cell(3, 5, 6)], [cell(1, 1, 2), cell(2, 3)], 1), [cell(1, 1, 2), cell(2, 3)], "wound back");
  assert.deepEqual(timelineJoined([cell(1, 1, 2)], [], 1), [], "nothing is true then");
  const many = Array.from({ length: TIMELINE_STRIPS_KEPT }, (_, i) => [i, i + 0.5]);
  const joined = timelineJoined(many, [[9000, null]], 0);
  assert.deepEqual([joined.length, joined[0][0], joined.at(-1)[0]], [TIMELINE_STRIPS_KEPT, 1, 9000]);
  assert.deepEqual([0, 2, 3].map((at) => timelineFirstAfter([[1], [2], [3]], at)), [0, 2, 3]);
});

test("the lanes of the notebook and the gauges are there when there is something in them", () => {
  const strips = new TimelineStrips();
  assert.ok(timelineLanes(CASE.state, strips).every(({ kind }) => kind === "heading" || kind === "stream"));
  strips.take({ devices: CASE.state.devices, cells: [cell(1, 5)] }, floats(0, 0, 1, 0, 1, 1, 2, 2, 1, 1, 3, 64));
  const kinds = timelineLanes(CASE.state, strips).map(({ kind, device }) => (device ? `${device} ${kind}` : kind));
  assert.deepEqual(kinds, ["cells", "waits", "gpu0 heading", "gpu0 stream", "gpu0 stream", "gpu1 heading", "gpu1 gauge", "gpu1 stream", "gpu1 stream"]);
  assert.equal(timelineLanes({ ...CASE.state, cells_unrecorded: "why" }, new TimelineStrips())[0].kind, "cells");
});

test("the handle is where the shown part lies in all that is known", () => {
  const view = new Timeline().look({ range: free(1000.5, 1001) });
  near(timelineMapSpan(view), [1000.25, 1001.5]);
  near(Object.values(timelineHandle(view)), [20, 40]);
  near(timelineMapSpan(new Timeline().look({ range: free(990, 1001) })), [990, 1001.5]);
  assert.ok(timelineHandle(new Timeline().look({ range: free(1000.5, 1000.5001) })).width >= 1, "it can be caught");
});

test("the handle is dragged to the ends and no further, and a press beside it brings it there", () => {
  const timeline = new Timeline();
  timeline.model.apply({ range: free(1000.5, 1001) });
  timeline.act(timelineMapDown, { x: 50, width: 125 });
  timeline.act(timelineMapMove, { x: 75, width: 125 });
  near(timeline.look().range.free, [1000.75, 1001.25]);
  timeline.act(timelineMapMove, { x: 1000, width: 125 });
  near(timeline.look().range.free, [1001, 1001.5]);
  timeline.model.apply({ drag: null });
  timeline.act(timelineMapDown, { x: 5, width: 125 });
  near(timeline.look().range.free, [1000.25, 1000.75]);
});

test("keys move the shown part by a step or by itself", () => {
  const view = new Timeline().look({ range: free(1000.5, 1001) });
  near(timelineMapKey(view, "ArrowRight").range.free, [1000.6, 1001.1]);
  near(timelineMapKey(view, "PageDown").range.free, [1000, 1000.5]);
  assert.equal(timelineMapKey(view, "Home"), null);
});

test("the busiest stream of a device counts, and what still runs", () => {
  const view = new Timeline().look();
  near([...timelineDeviceBusy(view, "gpu0", [1000.25, 1001.25], 4)].map((share) => Math.round(share * 100)), [100, 100, 50, 0]);
  near([...timelineDeviceBusy(view, "gpu1", [1000.5, 1001.5], 4)].map((share) => Math.round(share * 100)), [25, 100, 100, 100]);
});

test("the picture of the minimap is painted when it is another, four times a second at most", () => {
  const picture = new TimelineMapPicture();
  const pen = { clearRect: () => (painted += 1), fillRect: () => {} };
  let painted = 0;
  const view = new Timeline().look();
  const paint = (now, span = [1000, 1002]) => picture.paint(pen, view, span, 100, {}, now);
  assert.deepEqual([paint(0), paint(300), paint(310, [1000, 1003]), paint(400, [1000, 1004])], [true, false, true, false]);
  picture.forget();
  paint(401, [1000, 1003]);
  assert.equal(painted, 3);
});
