import assert from "node:assert/strict";
import { test } from "node:test";

import { timelineButton, timelineClick, timelineDown, timelineLeave, timelineMove, timelineUp, timelineWheel } from "../../../widgets/timeline/pointer.js";
import { timelineShown, timelineTimeAt } from "../../../widgets/timeline/time/range.js";
import { NOW, ROWS, Timeline, free, near } from "./case.mjs";

const y = ROWS[1];
const x = (at) => (at - 1000) * 300; // where two seconds from 1000 are shown

function still() {
  const timeline = new Timeline();
  timeline.model.apply({ range: free(1000, 1002) });
  return timeline;
}

test("the page is told which moment is pointed at, until the pointer leaves", () => {
  const timeline = still();
  timeline.act(timelineMove, { x: x(1000.5), y });
  near(timeline.bus.get("cursor"), 1000.5);
  assert.deepEqual(timeline.look().pointer, { x: 150, y });
  timeline.act(timelineLeave);
  assert.equal(timeline.bus.get("cursor"), null);
  assert.equal(timeline.look().pointer, null);
});

test("a drag moves what is shown with the pointer, and the moment stays when it leaves", () => {
  const timeline = still();
  timeline.act(timelineDown, { x: x(1000.5), y }, { shiftKey: false });
  timeline.act(timelineMove, { x: x(1001), y });
  near(timelineShown(timeline.look()), [999.5, 1001.5]);
  timeline.act(timelineMove, { x: x(1000.25), y });
  near(timelineShown(timeline.look()), [1000.25, 1002.25]);
  near(timelineTimeAt(timeline.look(), x(1000.25)), 1000.5);
  const cursor = timeline.bus.get("cursor");
  timeline.act(timelineLeave);
  assert.equal(timeline.bus.get("cursor"), cursor);
});

test("a drag begins beyond three pixels, and may then come back", () => {
  const timeline = still();
  timeline.act(timelineDown, { x: 150, y }, { shiftKey: false });
  timeline.act(timelineMove, { x: 153, y });
  assert.equal(timeline.look().drag.moved, false);
  assert.deepEqual(timelineShown(timeline.look()), [1000, 1002]);
  timeline.act(timelineMove, { x: 154, y });
  assert.equal(timeline.look().drag.moved, true);
  timeline.act(timelineMove, { x: 151, y });
  near(timelineShown(timeline.look()), [1000 - 1 / 300, 1002 - 1 / 300]);
});

test("a drag stops what follows", () => {
  const timeline = new Timeline();
  timeline.act(timelineDown, { x: 300, y }, { shiftKey: false });
  timeline.clock.ms += 1000; // what was pointed at is meant, not what has come there since
  timeline.act(timelineMove, { x: 240, y });
  assert.equal(timeline.look().range.mode, "free");
  near(timelineShown(timeline.look()), [NOW + 0.2 - 9, NOW + 0.2 + 1]);
});

test("with the shift key a drag brushes, in either direction, and what is shown stands still", () => {
  const timeline = new Timeline();
  const shown = timelineShown(timeline.look());
  timeline.act(timelineDown, { x: 300, y }, { shiftKey: true });
  timeline.clock.ms += 1000;
  timeline.act(timelineMove, { x: 240, y });
  assert.equal(timeline.look().range.mode, "free");
  assert.deepEqual(timelineShown(timeline.look()), shown);
  near(timeline.bus.get("span"), [NOW + 0.2 - 6, NOW + 0.2 - 5]);
  timeline.act(timelineMove, { x: 360, y });
  near(timeline.bus.get("span"), [NOW + 0.2 - 5, NOW + 0.2 - 4]);
});

test("a click picks the slice there, activates its row and selects its device", () => {
  const timeline = still();
  timeline.act(timelineDown, { x: x(1000.6), y }, { shiftKey: false });
  timeline.act(timelineUp, { x: x(1000.6), y }, false);
  const { drag, picked, active } = timeline.look();
  assert.deepEqual([drag, picked, active], [null, { row: 1, number: 1, seq: undefined }, 1]);
  assert.equal(timeline.bus.get("selection"), "lab/gpu0");
  timeline.act(timelineDown, { x: x(1000.6), y }, { shiftKey: false });
  timeline.act(timelineUp, { x: x(1000.6), y }, false);
  assert.equal(timeline.bus.get("selection"), "lab/gpu0", "a second click does not undo that");
});

test("a click beside the slices of a row picks none, a click beside the rows selects nothing", () => {
  const timeline = still();
  timeline.model.apply({ picked: { row: 1, number: 1 } });
  timeline.act(timelineDown, { x: 10, y: ROWS[2] }, { shiftKey: false });
  timeline.act(timelineUp, { x: 10, y: ROWS[2] }, false);
  assert.equal(timeline.look().picked, null);
  assert.equal(timeline.bus.get("selection"), "lab/gpu1");
  timeline.act(timelineDown, { x: 10, y: 500 }, { shiftKey: false });
  timeline.act(timelineUp, { x: 10, y: 500 }, false);
  assert.equal(timeline.bus.get("selection"), "lab/gpu1");
  assert.equal(timeline.look().active, 2);
});

test("the end of a drag, and one that was cancelled, picks nothing", () => {
  const timeline = still();
  const point = { x: x(1000.6), y };
  const drag = { x: 0, window: [1000, 1002], brush: false, moved: false };
  for (const [more, cancelled] of [[{ moved: true }, false], [{}, true]]) {
    timeline.model.apply({ drag: { ...drag, ...more } });
    assert.deepEqual(timeline.act(timelineUp, point, cancelled), { drag: null });
    assert.equal(timeline.look().drag, null);
  }
  assert.deepEqual(timeline.act(timelineUp, point, false), { drag: null }, "nothing was pressed here");
});

test("the wheel zooms around the pointer", () => {
  const timeline = still();
  const point = { x: x(1000.5), y };
  timeline.act(timelineWheel, point, { deltaX: 0, deltaY: -100 });
  const [from, to] = timelineShown(timeline.look());
  near(to - from, 2 * Math.exp(-0.25));
  near(timelineTimeAt(timeline.look(), point.x), 1000.5);
  timeline.act(timelineWheel, point, { deltaX: 0, deltaY: 100 });
  near(timelineShown(timeline.look()), [1000, 1002]);
});

test("a wheel that is turned far counts as 200 pixels", () => {
  const timeline = still();
  timeline.act(timelineWheel, { x: 0, y }, { deltaX: 0, deltaY: -5000 });
  near(timelineShown(timeline.look()), [1000, 1000 + 2 * Math.exp(-0.5)]);
});

test("the wheel zooms what follows at its right edge, and it goes on", () => {
  const timeline = new Timeline();
  timeline.act(timelineWheel, { x: 0, y }, { deltaX: 0, deltaY: -100 });
  assert.equal(timeline.look().range.mode, "follow");
  near(timeline.look().range.length, 10 * Math.exp(-0.25));
});

test("the wheel turned sideways moves what is shown", () => {
  const timeline = still();
  timeline.act(timelineWheel, { x: 0, y }, { deltaX: 60, deltaY: 59 });
  near(timelineShown(timeline.look()), [1000.2, 1002.2]);
});

test("where much more than everything is shown, zooming out is the page's", () => {
  const view = (from, to) => new Timeline().look({ range: free(from, to) });
  const wheel = (shown, deltaY) => timelineWheel(shown, { x: 0, y }, { deltaX: 0, deltaY });
  assert.equal(wheel(view(990, 1002), 100), null);
  assert.notEqual(wheel(view(990, 1002), -100), null);
  assert.notEqual(wheel(view(993, 1002), 100), null, "ten seconds at least");
  const long = { ...view(900, 1000), extent: [900, 930] };
  assert.notEqual(wheel(long, 100), null, "four times everything at least");
});

test("buttons do as their names say", () => {
  const timeline = still();
  timeline.act(timelineButton, "in");
  near(timelineShown(timeline.look()), [1000.5, 1001.5]);
  timeline.act(timelineButton, "out");
  near(timelineShown(timeline.look()), [1000, 1002]);
  timeline.act(timelineButton, "all");
  assert.equal(timeline.look().range.mode, "all");
  timeline.act(timelineButton, "follow");
  assert.equal(timeline.look().range.mode, "follow");
  timeline.bus.set("span", [1000, 1001]);
  timeline.act(timelineButton, "unbrush");
  assert.equal(timeline.bus.get("span"), null);
});

test("a click at a device's name selects it, at a row's name that too, and has the focus there", () => {
  const view = new Timeline().look();
  assert.deepEqual(timelineClick(view, "gpu1", null), { selection: "lab/gpu1" });
  assert.deepEqual(timelineClick(view, "gpu1", 3), { selection: "lab/gpu1", active: 3, focus: 3 });
  assert.deepEqual(timelineClick({ ...view, selection: "lab/gpu1" }, "gpu1", null), { selection: null });
});
