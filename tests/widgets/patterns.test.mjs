import assert from "node:assert/strict";
import { test } from "node:test";

import { html } from "../../widgets/patterns/patterns.js";

const pattern = (more = {}) => ({ name: "server", kind: "dynamic batching", state: "running", waiting: 0, running: 0, answered: 3, ...more });
const state = (...patterns) => ({ lab: "lab", patterns, closed: false });
const times = (text, part) => text.split(part).length - 1;

test("without a pattern it says how to make one, and of the past that there was none", () => {
  assert.match(html(null), /Waiting for the first look/);
  assert.match(html(state()), /No pattern was made\. DynamicBatchingServer/);
  assert.match(html({ ...state(), past: true }), /No pattern was seen then/);
});

test("what is zero and may be absent is absent, and a failure has a glyph", () => {
  const calm = html(state(pattern()));
  assert.match(calm, /<dt class="al-muted">Answered<\/dt><dd>3<\/dd>/);
  assert.doesNotMatch(calm, /Failed|Expired|Reruns|<table|<ol|undefined|NaN/);
  const ill = html(state(pattern({ failed: 2, refused: 1, reruns: 4 })));
  assert.match(ill, /Failed<\/dt><dd class="al-word al-bad"><svg/);
  assert.match(ill, /al-chip al-bad"><svg.*?2 failed/);
  assert.match(ill, /Refused<\/dt><dd class="al-word al-warn">1/);
});

test("parts have the columns that any of them needs, and one that runs is marked", () => {
  const text = html(state(pattern({ noun: "tenant", unlisted: 3, parts: [{ name: "a", running: 1, failed: 1 }, { name: "b" }] })));
  assert.match(text, />Tenant<.*>Running<.*>Done<.*>Failed</);
  assert.doesNotMatch(text, />Waiting<\/th>|>Detail</);
  assert.equal(times(text, "al-patterns-at"), 1);
  assert.match(text, /and 3 more/);
  const replicas = html(state(pattern({ noun: "replica", parts: [{ name: "r", word: "avoided" }, { name: "s", word: "made up" }] })));
  assert.match(replicas, /al-word al-warn"><svg class="al-icon al-icon-half-open".*?<\/svg>avoided/);
  assert.match(replicas, /made up/);
});

test("decisions say when, of which requests and why, and nothing of it is markup", () => {
  const text = html(state(pattern({ decisions: [{ at: 1, what: "batch", of: "1, 2", why: "<full>" }] })));
  assert.match(text, /<time class="al-muted">.*<span class="al-patterns-what">batch 1, 2<\/span>/);
  assert.match(text, /&#60;full&#62;/);
});
