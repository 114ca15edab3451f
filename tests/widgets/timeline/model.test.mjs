import assert from "node:assert/strict";
import { test } from "node:test";

import { Bus } from "../../../widgets/shared/bus.js";
import { TimelineModel } from "../../../widgets/timeline/model.js";
import { timelineShown } from "../../../widgets/timeline/time/range.js";
import { CASE, NOW, Timeline, free, near } from "./case.mjs";

test("now goes on from the kernel's last word, for as long as the page has patience", () => {
  const timeline = new Timeline();
  timeline.bus.set("patience", 1.8);
  assert.equal(timeline.look().now, NOW);
  timeline.clock.ms += 1500;
  near(timeline.look().now, NOW + 1.5);
  timeline.clock.ms += 1500;
  near(timeline.look().now, NOW + 1.8);
  timeline.model.hear(NOW + 2.9);
  near(timeline.look().now, NOW + 2.9);
  timeline.clock.ms -= 500;
  near(timeline.look().now, NOW + 2.9);
});

test("what follows goes on with now; what was moved does not", () => {
  const timeline = new Timeline();
  timeline.clock.ms += 1000;
  near(timelineShown(timeline.look()), [NOW + 1.2 - 10, NOW + 1.2]);
  timeline.model.apply({ range: free(1000, 1002) });
  timeline.clock.ms += 500;
  near(timelineShown(timeline.look()), [1000, 1002]);
});

test("now stands still while the view is paused, in what has ended, and in a recording", () => {
  const paused = new Timeline();
  paused.clock.ms += 500;
  paused.model.pause(true);
  paused.clock.ms += 500;
  paused.model.pause(true);
  near(paused.look().now, NOW + 0.5);
  assert.equal(paused.look().held, true);
  paused.model.pause(false);
  near(paused.look().now, NOW + 1);
  assert.equal(paused.look().held, false);
  const ended = new Timeline({ closed: true });
  const recorded = new Timeline({ at: 1001.25 });
  for (const timeline of [ended, recorded]) timeline.clock.ms += 500;
  assert.equal(ended.look().now, NOW);
  assert.equal(recorded.look().now, 1001.25);
});

test("slices wait for the state that knows whose they are", () => {
  const model = new TimelineModel(new Bus(), () => 0);
  model.columns(new DataView(Float64Array.from(CASE.columns).buffer));
  assert.equal(model.look().ring.held, 0);
  assert.deepEqual(model.look().lanes, []);
  model.take(CASE.state, NOW);
  assert.equal(model.look().ring.held, 4);
  assert.equal(model.look().lanes.length, 6);
});

test("what ends while it is followed is shown whole; what was moved stays", () => {
  const followed = new Timeline();
  followed.model.take({ ...CASE.state, closed: true }, NOW);
  assert.equal(followed.look().range.mode, "all");
  assert.equal(followed.look().closed, true);
  const moved = new Timeline();
  moved.model.apply({ range: free(1000, 1002) });
  moved.model.take({ ...CASE.state, closed: true }, NOW);
  assert.equal(moved.look().range.mode, "free");
});

test("what had ended before it was seen is shown whole, whatever was done before", () => {
  const model = new TimelineModel(new Bus(), () => 0);
  model.apply({ range: free(1000, 1002) });
  model.take({ ...CASE.state, closed: true }, NOW);
  assert.equal(model.look().range.mode, "all");
});

test("a change goes to the view or to the page, whose it is", () => {
  const { model, bus } = new Timeline();
  const heard = [];
  for (const key of ["cursor", "span", "selection"]) bus.watch(key, (value) => heard.push([key, value]));
  assert.equal(model.apply({ active: 2, cursor: 1001, span: [1, 2], selection: "lab/gpu1" }), true);
  assert.deepEqual(heard, [["cursor", 1001], ["span", [1, 2]], ["selection", "lab/gpu1"]]);
  const { active, cursor, span, selection } = model.look();
  assert.deepEqual([active, cursor, span, selection], [2, 1001, [1, 2], "lab/gpu1"]);
});

test("what the page's bus tells, and the beginning of a drag, is not drawn for its own sake", () => {
  const { model } = new Timeline();
  assert.equal(model.apply({ cursor: 1001, focus: 1, scrollBy: 40 }), false);
  assert.equal(model.apply({ drag: null }), false);
  assert.equal(model.apply({ said: "x", drag: null }), true);
  assert.equal("focus" in model.look(), false);
});

test("a moment that another part chose is shown, and drawn only where that changes something", () => {
  const timeline = new Timeline();
  assert.equal(timeline.model.showMoment(null), false);
  assert.equal(timeline.model.showMoment({ at: 900 }), true);
  near(timelineShown(timeline.look()), [895, 905]);
  assert.equal(timeline.model.showMoment({ at: 901 }), false, "it is in sight");
  assert.equal(timeline.look().range.chosen, true);
  assert.equal(timeline.model.showMoment(null), true);
  assert.equal(timeline.look().range.mode, "follow");
  assert.equal(new TimelineModel(new Bus(), () => 0).showMoment({ at: 900 }), false);
});
