import assert from "node:assert/strict";
import { test } from "node:test";

import { html } from "../../widgets/health/health.js";
import { HEALTH_WINDOW_S, healthPath, healthTracks } from "../../widgets/health/tracks.js";

const gauge = (name, more = {}) => ({ name, words: "43 %", ...more });
const source = (name, readings, samples = 2, at = 1000) => ({ name, model: "NVIDIA H200", samples, at, readings });
const state = (...sources) => ({ lab: "lab", sources, closed: false });
const packed = (...values) => new DataView(Float64Array.from(values).buffer);

test("columns are read source by source, moments first", () => {
  const sources = [source("gpu0", [gauge("power"), gauge("memory")]), source("notebook", [gauge("CPU")], 1)];
  const tracks = healthTracks(packed(10, 11, 1, 2, 3, 4, 20, 5), sources);
  assert.deepEqual(tracks.map(({ times, values }) => [[...times], values.map((v) => [...v])]), [[[10, 11], [[1, 2], [3, 4]]], [[20], [[5]]]]);
});

test("columns of another state are not taken for this one's", () => {
  assert.equal(healthTracks(packed(1, 2, 3), [source("gpu0", [gauge("power")])]), null);
  assert.equal(healthTracks(null, []), null);
});

test("a line ends now, begins two minutes ago, and is as high as its limit asks", () => {
  const from = 1000 - HEALTH_WINDOW_S;
  assert.equal(healthPath([from, 1000], [100, 50], 1000, 100, 120, 21), "M0.0 0.5L120.0 10.5");
});

test("values far below their limit are drawn to their own peak", () => {
  assert.equal(healthPath([940, 1000], [1, 2], 1000, 1000, 120, 21), "M60.0 10.5L120.0 0.5");
  assert.equal(healthPath([940, 1000], [1, 2], 1000, undefined, 120, 21), "M60.0 10.5L120.0 0.5");
});

test("a missing value is a gap, what is too old is left out, and zero alone draws nothing", () => {
  assert.equal(healthPath([700, 940, 970, 1000], [9, 1, NaN, 1], 1000, 2, 120, 21), "M60.0 10.5M120.0 10.5");
  assert.equal(healthPath([940, 1000], [0, 0], 1000, 100, 120, 21), "");
});

test("a value that is missing says why and has no line", () => {
  const text = html(state(source("gpu0", [{ name: "utilisation", missing: "n/a: MIG" }])));
  assert.match(text, /n\/a: MIG/);
  assert.doesNotMatch(text, /<svg class="al-health-spark/);
  assert.doesNotMatch(text, />0 %</);
});

test("a warning is a glyph, a word and a colour, and is counted", () => {
  const text = html(state(source("gpu0", [gauge("temperature", { warn: "hot" }), gauge("power")])));
  assert.match(text, /al-health-warn" data-reading="temperature"/);
  assert.match(text, /al-icon-warn"[^>]*>.*?<\/svg>hot/);
  assert.match(text, /1 warning</);
  assert.doesNotMatch(html(state(source("gpu0", [gauge("power")]))), /warning/);
});

test("the moment that all views look at is drawn where it is, if it is in the window", () => {
  const tracks = [{ times: [990, 1000], values: [[1, 2]] }];
  const one = state(source("gpu0", [gauge("power")]));
  assert.match(html(one, { tracks, cursor: 940 }), /al-health-cursor" d="M60\.0 0V22"/);
  assert.doesNotMatch(html(one, { tracks, cursor: 500 }), /al-health-cursor/);
  assert.doesNotMatch(html(one, { tracks }), /al-health-cursor/);
});

test("nothing read yet says so", () => {
  assert.match(html(null), /Waiting for the first readings\./);
  assert.match(html({ lab: "lab", sources: [], closed: true }), /closed before anything was read/);
  const replay = { kind: "recording", position: 0, count: 9, at: 1 };
  assert.match(html({ lab: "", sources: [], closed: false, replay }), />Nothing of it was read yet\.</);
  for (const closed of [false, true]) {
    const past = { lab: "lab", sources: [], closed, unrecorded: "a journal has no readings", replay: { ...replay, kind: "journal" } };
    assert.match(html(past), />Not recorded: a journal has no readings\.</);
  }
});
