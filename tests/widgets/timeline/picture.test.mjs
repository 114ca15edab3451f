import assert from "node:assert/strict";
import { test } from "node:test";

import { TimelineFrames, timelineDrawing, timelineFit, timelineHovered, timelineIsDue, timelineScene, timelineSheetHeight } from "../../../widgets/timeline/picture.js";
import { TimelineRing } from "../../../widgets/timeline/ring.js";
import { CASE, HEADING, ROWS, Timeline, free } from "./case.mjs";

const range = free(1000, 1002);
const GEMM = { x: 180, y: ROWS[1] }; // #2
const FAULT = { x: 330, y: HEADING };

test("what is pointed at is hovered, unless something is dragged", () => {
  const view = (more) => new Timeline().look({ range, pointer: GEMM, ...more });
  assert.equal(timelineHovered(view()).slice.seq, 2);
  assert.equal(timelineHovered(view({ drag: {} })), null);
  assert.equal(timelineHovered(view({ pointer: null })), null);
  assert.equal(timelineHovered(view({ state: null })), null);
});

test("it is told of the mark or the slice that is pointed at, else of the picked one", () => {
  const told = (pointer, picked = { row: 0, number: 0 }) => {
    const view = new Timeline().look({ range, pointer, picked });
    return timelineDrawing(view, timelineHovered(view), "t").detail;
  };
  assert.equal(told(GEMM).what, "Gemm #2");
  assert.deepEqual(told(FAULT), { what: "context lost: SIGKILL", text: "fault · gpu0" });
  assert.equal(told(null).what, "Upload #1");
  assert.equal(told({ x: 590, y: ROWS[1] }).what, "Upload #1");
  assert.equal(told(null, null), null);
});

test("the first row has the keyboard's attention until another gets it", () => {
  const drawing = (more) => timelineDrawing(new Timeline().look({ range, ...more }), null, "t");
  assert.equal(drawing().active, 0);
  assert.equal(drawing({ active: 2 }).active, 2);
  assert.equal(drawing({ lanes: [] }).active, null);
  const { mode, shown, id } = drawing();
  assert.deepEqual([mode, shown, id], ["free", [1000, 1002], "t"]);
});

test("the picture has the height of its lanes, up to where it scrolls", () => {
  const view = new Timeline().look({ range });
  assert.equal(timelineSheetHeight(view), 168);
  assert.equal(timelineSheetHeight({ lanes: [{ y: 1000, height: 26 }] }), 440);
  const scene = timelineScene(view, null, { width: 500, top: 7 });
  const { window, width, height, top, activeRow } = scene;
  assert.deepEqual([window, width, height, top, activeRow], [[1000, 1002], 500, 168, 7, null]);
});

test("a canvas is resized only when its pixels differ, because that empties it", () => {
  const writes = [];
  const sheet = { style: {}, width: 300, height: 150 };
  const watched = new Proxy(sheet, { set: (target, name, value) => writes.push(name) && Reflect.set(target, name, value) });
  timelineFit(watched, 400, 168, 1.5);
  assert.deepEqual([sheet.width, sheet.height, sheet.style.blockSize], [600, 252, "168px"]);
  assert.deepEqual(writes, ["width", "height"]);
  timelineFit(watched, 400, 168, 1.5);
  assert.equal(writes.length, 2);
});

test("what moves is drawn with every tick, what is quiet once a second, what stands still never", () => {
  const due = (more, age = 16, state = {}) => timelineIsDue(new Timeline(state).look(more), age);
  const quiet = [16, { running: [], marks: [] }];
  const later = { now: 1100 };
  assert.equal(due({}), true, "something runs");
  assert.equal(due({}, ...quiet), true, "slices move");
  assert.equal(due(later, 16, { running: [] }), false);
  assert.equal(due(later, ...quiet), false);
  assert.equal(due(later, 1000, quiet[1]), true, "the axis");
  assert.equal(due({ ...later, now: 1011 }, 16, { running: [] }), true, "a mark moves");
  assert.equal(due({ range: { ...range, mode: "all" }, ring: new TimelineRing() }, ...quiet), true, "everything grows");
  assert.equal(due({ range }), true, "what runs grows where it stands");
  assert.equal(due({ range }, 5000, { running: [] }), false);
  for (const more of [{ held: true }, { stale: 3 }, { state: null }]) assert.equal(due(more, 5000), false);
  for (const state of [{ closed: true }, { at: 1001.5 }]) assert.equal(due({}, 5000, state), false);
  assert.equal(CASE.state.running.length, 1);
});

test("however often it is asked for, a frame is painted once; at once cancels what was asked for", () => {
  const asked = new Map();
  let last = 0;
  const window = {
    performance: { now: () => 40 + 10 * last },
    requestAnimationFrame: (paint) => asked.set((last += 1), paint) && last,
    cancelAnimationFrame: (frame) => asked.delete(frame),
  };
  let painted = 0;
  const frames = new TimelineFrames(window, () => (painted += 1));
  frames.ask();
  frames.ask();
  assert.equal(asked.size, 1);
  asked.get(1)();
  assert.equal(painted, 1);
  frames.ask();
  assert.equal(last, 2);
  assert.equal(frames.age, 10);
  frames.now();
  assert.equal(painted, 2);
  assert.equal(asked.has(2), false);
  assert.equal(frames.age, 0);
  frames.ask();
  frames.cancel();
  assert.equal(asked.has(3), false);
});
