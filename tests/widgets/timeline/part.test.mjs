// The timeline of a part of a session says which part it is, not that its system was closed.

import assert from "node:assert/strict";
import { test } from "node:test";

import { toHtml } from "../../../widgets/shared/dom.js";
import { timelineDraw } from "../../../widgets/timeline/draw.js";
import { timelineLanes } from "../../../widgets/timeline/lanes.js";
import { TimelineRing } from "../../../widgets/timeline/ring.js";
import { CASE } from "./case.mjs";

function drawn(more) {
  const state = { ...CASE.state, closed: true, ...more };
  const view = { state, ring: new TimelineRing(), lanes: timelineLanes(state), mode: "all", shown: [1000, 1002], span: null, selection: null, active: 0, detail: null, said: "", stale: null, tabled: false, id: "t", now: 1001.5, mapSpan: [1000, 1002], handle: { left: 0, width: 100 } };
  return toHtml(...timelineDraw(view).filter(Boolean));
}

test("the badge of a part is its name, as text", () => {
  assert.match(drawn({ of: "cell 12" }), /al-badge[^>]*>.*cell 12/s);
  assert.ok(!drawn({ of: "cell 12" }).includes("last state"));
  assert.ok(!drawn({ of: "<b>" }).includes("<b>"));
});

test("the past of a journal is a replay, that of a recording alone is recorded", () => {
  const replay = { kind: "journal", position: 3, count: 40, at: 1001 };
  assert.match(drawn({ closed: false, at: 1001, replay }), /REPLAY.* entry 3 of 40 · /);
  assert.match(drawn({ closed: false, at: 1001 }), />recorded</);
});

test("the badge of a system that was closed is as before", () => {
  assert.match(drawn({}), /closed · last state/);
});
