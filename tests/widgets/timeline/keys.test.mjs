import assert from "node:assert/strict";
import { test } from "node:test";

import { timelineIsPassedOn, timelineKey } from "../../../widgets/timeline/keys.js";
import { timelineShown } from "../../../widgets/timeline/time/range.js";
import { NOW, Timeline, free, near } from "./case.mjs";

const PICTURE = null; // what has the focus, where it is no row

test("arrows move the picture by a fifth, and stop what follows", () => {
  const timeline = new Timeline();
  timeline.act(timelineKey, "ArrowLeft", PICTURE);
  assert.equal(timeline.look().range.mode, "free");
  near(timelineShown(timeline.look()), [NOW + 0.2 - 10 - 2, NOW + 0.2 - 2]);
  timeline.act(timelineKey, "ArrowRight", PICTURE);
  timeline.act(timelineKey, "ArrowRight", PICTURE);
  near(timelineShown(timeline.look()), [NOW + 0.2 - 10 + 2, NOW + 0.2 + 2]);
});

test("arrows up and down scroll the picture", () => {
  const view = new Timeline().look();
  assert.deepEqual(timelineKey(view, "ArrowUp", PICTURE), { scrollBy: -40 });
  assert.deepEqual(timelineKey(view, "ArrowDown", PICTURE), { scrollBy: 40 });
});

test("plus and minus zoom around the cursor of the page, else around the middle", () => {
  const range = free(1000, 1010);
  const at = (key, more) => timelineKey(new Timeline().look({ range, ...more }), key, PICTURE).range.free;
  near(at("+", { cursor: 1002 }), [1001, 1006]);
  near(at("=", { cursor: 1002 }), [1001, 1006]);
  near(at("-", { cursor: 1002 }), [998, 1018]);
  near(at("_", {}), [995, 1015]);
});

test("Home shows everything, End follows again as much as that", () => {
  const timeline = new Timeline();
  timeline.act(timelineKey, "Home", PICTURE);
  assert.equal(timeline.look().range.mode, "all");
  timeline.act(timelineKey, "End", PICTURE);
  assert.equal(timeline.look().range.mode, "follow");
  near(timeline.look().range.length, 1.25 * 1.04);
});

test("s brushes what is shown, Escape takes the brush away", () => {
  const timeline = new Timeline();
  for (const key of ["s", "S"]) {
    timeline.act(timelineKey, key, PICTURE);
    near(timeline.bus.get("span"), [NOW + 0.2 - 10, NOW + 0.2]);
    timeline.act(timelineKey, "Escape", PICTURE);
    assert.equal(timeline.bus.get("span"), null);
  }
});

test("a row's arrows up and down go from row to row, and end at the last", () => {
  const view = new Timeline().look();
  const go = (key, row) => timelineKey(view, key, row);
  assert.deepEqual(go("ArrowDown", 1), { active: 2, focus: 2 });
  assert.deepEqual(go("ArrowDown", 3), { active: 3, focus: 3 });
  assert.deepEqual(go("ArrowUp", 1), { active: 0, focus: 0 });
  assert.deepEqual(go("ArrowUp", 0), { active: 0, focus: 0 });
});

test("a row's arrows left and right pick slices, say them and tell the page their moment", () => {
  const timeline = new Timeline();
  timeline.act(timelineKey, "ArrowLeft", 1);
  assert.match(timeline.look().said, /^Gemm #3, kernel · gpu0\/blas/);
  assert.equal(timeline.bus.get("cursor"), 1000.875);
  timeline.act(timelineKey, "ArrowLeft", 1);
  assert.match(timeline.look().said, /^Gemm #2, /);
  assert.deepEqual(timeline.look().picked, { row: 1, number: 1 });
  timeline.act(timelineKey, "ArrowRight", 1);
  assert.match(timeline.look().said, /^Gemm #3, /);
  assert.equal(timeline.look().range.mode, "follow", "all of it was in sight");
});

test("a slice out of sight is brought into the middle", () => {
  const { range } = timelineKey(new Timeline().look({ range: free(1001, 1002) }), "ArrowLeft", 1);
  near(range.free, [1000.375, 1001.375]);
});

test("a row without slices takes the arrow, and nothing changes", () => {
  const view = new Timeline({ running: [] }).look();
  assert.deepEqual(timelineKey(view, "ArrowRight", 3), {});
});

test("Enter and space select a row's device, and no longer", () => {
  const timeline = new Timeline();
  timeline.act(timelineKey, "Enter", 3);
  assert.equal(timeline.bus.get("selection"), "lab/gpu1");
  timeline.act(timelineKey, " ", 0);
  assert.equal(timeline.bus.get("selection"), "lab/gpu0");
  timeline.act(timelineKey, "Enter", 1);
  assert.equal(timeline.bus.get("selection"), null);
});

test("a key that means nothing changes nothing", () => {
  const view = new Timeline().look();
  for (const key of ["q", "PageDown", "Enter"]) assert.equal(timelineKey(view, key, PICTURE), null);
  for (const key of ["q", "PageDown"]) assert.equal(timelineKey(view, key, 1), null);
});

test("what goes elsewhere or has a modifier is passed on", () => {
  for (const key of ["Tab", "Shift", "Control", "Alt", "Meta"]) assert.equal(timelineIsPassedOn({ key }), true);
  for (const modifier of ["ctrlKey", "metaKey", "altKey"]) assert.equal(timelineIsPassedOn({ key: "s", [modifier]: true }), true);
  assert.equal(timelineIsPassedOn({ key: "s", shiftKey: true }), false);
});
