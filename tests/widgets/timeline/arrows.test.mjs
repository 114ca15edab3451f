// What a picked slice hangs together with, and what is chosen by its name.

import assert from "node:assert/strict";
import { test } from "node:test";

import { timelinePaintArrows, timelineRelated } from "../../../widgets/timeline/paint/arrows.js";
import { timelineDrawing, timelineScene } from "../../../widgets/timeline/picture.js";
import { timelineDown, timelineUp } from "../../../widgets/timeline/pointer.js";
import { CASE, NOW, ROWS, Timeline, free } from "./case.mjs";

const related = { of: ["gpu0", 2], makers: [["gpu0", 1], ["gpu0", 99]], users: [["gpu0", 3]], group: [["gpu1", 8]], cell: 4, why: "" };
const picked = { row: 1, number: 1 }; // Gemm #2
const range = free(1000, 1002);

test("of what is related that which is here is found, with how it is related", () => {
  const view = new Timeline({ related }).look({ picked, range });
  assert.deepEqual(timelineRelated(view), [
    { way: "from", row: 0, start: 1000.25, end: 1000.5 },
    { way: "to", row: 1, start: 1000.875, end: 1001 },
    { way: "part", row: 3, start: 1000.75, end: NOW },
  ]);
  assert.deepEqual(timelineRelated({ ...view, picked: { row: 1, number: 3 } }), [], "another is picked");
  assert.deepEqual(timelineRelated(new Timeline().look({ picked, range })), [], "nobody has asked");
});

test("an arrow leads from the end of what was before to the begin of what came of it", () => {
  const view = new Timeline({ related }).look({ picked, range });
  const scene = timelineScene(view, null, { width: 600, top: 0 });
  const drawn = [];
  const pen = new Proxy({}, { get: (_, name) => (...values) => drawn.push([name, ...values]), set: () => true });
  timelinePaintArrows({ pen, scene, colours: {}, x: (at) => (at - 1000) * 300 });
  const begins = drawn.filter(([name]) => name === "moveTo").map(([, x, y]) => [x, y]);
  assert.deepEqual(begins.slice(0, 2), [[150, ROWS[0]], [150, ROWS[0]]], "the line and its rim");
  assert.deepEqual(begins[2], [150, ROWS[1]], "the head is at the picked slice");
  assert.deepEqual(begins[5], [262.5, ROWS[1]], "and that at its user's begin");
  assert.equal(drawn.filter(([name]) => name === "bezierCurveTo").length, 6);
  assert.deepEqual(drawn.filter(([name]) => name === "setLineDash").map(([, dash]) => dash.length), [0, 0, 2, 0], "parts have no direction");
});

test("it is said in words, or why it is not known", () => {
  const told = (more) => timelineDrawing(new Timeline({ related: { ...related, ...more } }).look({ picked, range }), null, "t").detail.text;
  assert.match(told({}), / · cell 4, made of 2 others, used by 1, 1 more part on other devices$/);
  assert.match(told({ why: "there is no journal to tell" }), / · what it came of is not known: there is no journal to tell$/);
  assert.doesNotMatch(told({ of: ["gpu1", 2] }), /made of/);
});

test("a click on a slice chooses its name on the page, a second one lets it go", () => {
  const timeline = new Timeline();
  timeline.model.apply({ range });
  const click = (x) => {
    timeline.act(timelineDown, { x, y: ROWS[1] }, { shiftKey: false });
    timeline.act(timelineUp, { x, y: ROWS[1] }, false);
    return timeline.bus.get("kernel");
  };
  assert.deepEqual(click(180), { name: "Gemm", cells: [] });
  timeline.model.take({ ...CASE.state, related }, NOW);
  assert.deepEqual(timeline.bus.get("kernel"), { name: "Gemm", cells: [4] }, "once the cell is known");
  assert.equal(click(180), null);
  click(180);
  assert.equal(click(590), null, "nothing is there");
});
