// A collective operation is one mark across the devices of its ranks.

import assert from "node:assert/strict";
import { test } from "node:test";

import { timelineLanes } from "../../../widgets/timeline/lanes.js";
import { timelineJointBars, timelinePaintJoints } from "../../../widgets/timeline/paint/joint.js";

const state = { name: "lab", devices: ["gpu0", "gpu1", "gpu2"], rows: [{ device: "gpu0" }, { device: "gpu1" }, { device: "gpu2" }] };
const joint = [1000, 1001, "all_reduce 4 MiB", false, [["gpu2", 1000.5], ["gpu0", 1000], ["gpu1", null]]];
const lanes = timelineLanes(state);

function painted(joints, { from = 999, to = 1002 } = {}) {
  const drawn = [];
  const pen = new Proxy({}, {
    get: (_, name) => (name === "measureText" ? () => ({ width: 30 }) : (...values) => drawn.push([name, ...values])),
    set: (_, name, value) => drawn.push([name, value]),
  });
  const scene = { state: { ...state, joints }, lanes, top: 0 };
  timelinePaintJoints({ pen, scene, colours: { bad: "red", accent: "blue", fg: "black" }, from, to, x: (at) => (at - 999) * 100 });
  return drawn;
}

test("each rank that began has a bar in the heading of its device, up to the end of all", () => {
  const bars = timelineJointBars(lanes, 0, joint);
  assert.deepEqual(bars.map(({ device, from, to }) => [device, from, to]), [["gpu0", 1000, 1001], ["gpu2", 1000.5, 1001]]);
  const headings = lanes.filter(({ kind }) => kind === "heading");
  for (const { device, y } of bars) {
    const { y: top, height } = headings.find((lane) => lane.device === device);
    assert.ok(y > top && y < top + height);
  }
});

test("a line links the bars, and the words stand where there is room", () => {
  const drawn = painted([joint]);
  const boxes = drawn.filter(([name]) => name === "fillRect");
  assert.deepEqual(boxes.map(([, x, , width]) => [x, width]), [[100, 100], [150, 50]]);
  const line = drawn.filter(([name]) => name === "moveTo" || name === "lineTo" || name === "rect");
  assert.ok(line.length >= 2, "from the first device's bar to the last one's");
  assert.deepEqual(drawn.filter(([name]) => name === "fillText").map(([, words]) => words), ["all_reduce 4 MiB"]);
  assert.ok(drawn.some(([name, value]) => name === "fillStyle" && value === "blue"));
});

test("one that failed is told by its colour, and one out of sight is not drawn", () => {
  const failed = [...joint];
  failed[3] = true;
  assert.ok(painted([failed]).some(([name, value]) => name === "fillStyle" && value === "red"));
  assert.deepEqual(painted([joint], { from: 1001.5, to: 1003 }), []);
  assert.deepEqual(painted([[1000, 1001, "send", false, [["elsewhere", 1000]]]]), []);
  assert.deepEqual(painted(undefined), []);
});
