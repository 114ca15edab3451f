import assert from "node:assert/strict";
import { test } from "node:test";

import { toHtml } from "../../../widgets/shared/dom.js";
import { timelineDraw, timelineLong, timelineSummary } from "../../../widgets/timeline/draw.js";
import { TIMELINE_AXIS, timelineHeight, timelineIsOf, timelineLanes } from "../../../widgets/timeline/lanes.js";
import { timelineMerged, timelinePaint } from "../../../widgets/timeline/paint/paint.js";
import { TIMELINE_KEPT, TimelineRing } from "../../../widgets/timeline/ring.js";
import { timelineClock, timelineDuration, timelineExact, timelinePan, timelineTicks, timelineZoom } from "../../../widgets/timeline/time/scale.js";
import { timelineDescribe } from "../../../widgets/timeline/told.js";
import { timelineTrace } from "../../../widgets/timeline/trace.js";
import { CASE, packed } from "./case.mjs";

const COLOURS = { work: ["0", "1", "2", "3", "4", "5", "6", "7"] };
const WORKS = [[0, "Gemm", "kernel"], [1, "Run", "function"]];

const numbers = (track) => [...track.number.subarray(track.head, track.tail)];
const starts = (track) => [...track.start.subarray(track.head, track.tail)];
const many = (from, to) => Array.from({ length: to - from }, (_, i) => [from + i, from + i + 0.5, from + i, 0]);

function caseView(more = {}) {
  const ring = new TimelineRing();
  const view = new DataView(Float64Array.from(CASE.columns).buffer);
  ring.add(view, CASE.state.works);
  const lanes = timelineLanes(CASE.state);
  return { state: CASE.state, ring, lanes, mode: "follow", shown: [1000, 1002], span: null, selection: null, active: 0, detail: null, said: "", stale: null, tabled: false, id: "t", now: 1001.5, mapSpan: [1000, 1002], handle: { left: 0, width: 100 }, ...more };
}

test("the trace of the case is what Python makes of it", () => {
  const { state, ring } = caseView();
  assert.deepEqual(timelineTrace(state, ring), CASE.trace);
});

test("durations are written as Python writes them", () => {
  for (const [seconds, written] of CASE.durations) assert.equal(timelineDuration(seconds), written);
});

test("packs that overlap are taken once, wherever they lie in memory", () => {
  const ring = new TimelineRing();
  ring.add(packed(0, many(0, 5)), WORKS);
  ring.add(packed(2, many(2, 8), 4), WORKS);
  ring.add(packed(2, many(2, 8)), WORKS);
  assert.deepEqual(numbers(ring.tracks[0]), [0, 1, 2, 3, 4, 5, 6, 7]);
  assert.equal(ring.notShown({ traced: 8, untraced: 0 }), 0);
});

test("what was never seen is counted: a gap in the numbers, and what the device dropped", () => {
  const ring = new TimelineRing();
  ring.add(packed(10, many(10, 15)), WORKS);
  ring.add(packed(20, many(20, 25)), WORKS);
  assert.equal(ring.notShown({ traced: 25, untraced: 3 }), 10 + 5 + 3);
});

test("a ring forgets the oldest numbers, from whichever row they are", () => {
  const ring = new TimelineRing(6);
  ring.add(packed(0, many(0, 10).map(([start, end, seq], i) => [start, end, seq, i % 2])), WORKS);
  assert.deepEqual(ring.tracks.map(numbers), [[4, 6, 8], [5, 7, 9]]);
  assert.equal(ring.notShown({ traced: 10, untraced: 0 }), 4);
  ring.add(packed(10, many(10, 300)), WORKS);
  assert.deepEqual(ring.tracks.map(numbers), [[294, 295, 296, 297, 298, 299], []]);
  assert.equal(ring.held, 6);
});

test("a hundred thousand slices are kept, in order, however they came", () => {
  const ring = new TimelineRing();
  for (let first = 0; first < 110_000; first += 4000) ring.add(packed(first, many(first, first + 4000)), WORKS);
  const [track] = ring.tracks;
  assert.equal(track.size, 100_000);
  assert.equal(track.number[track.from(50_000.5)], 50_000);
  assert.equal(track.number[track.from(50_000.6)], 50_001);
});

test("after a million slices a ring has room for twice what it keeps, and no more", () => {
  const ring = new TimelineRing();
  const piece = 4000;
  for (let first = 0; first < 1_000_000; first += piece) ring.add(packed(first, many(first, first + piece)), WORKS);
  const [track] = ring.tracks;
  assert.equal(ring.held, TIMELINE_KEPT);
  assert.equal(track.number[track.tail - 1], 999_999);
  assert.ok(track.start.length <= 2 * (TIMELINE_KEPT + piece), `${track.start.length} places`);
});

test("a slice that starts before its predecessor is put before it, and search still finds both", () => {
  const ring = new TimelineRing();
  ring.add(packed(0, [[5, 20, 0, 0], [6, 7, 1, 0], [1, 2, 2, 0], [8, 9, 3, 0]]), WORKS);
  const [track] = ring.tracks;
  assert.deepEqual(starts(track), [1, 5, 6, 8]);
  assert.deepEqual(numbers(track), [2, 0, 1, 3]);
  assert.equal(track.from(15), 1); // it reaches further than those after it
  assert.equal(track.from(21), track.tail);
});

test("the nearest slice is found, and how many lie as near", () => {
  const ring = new TimelineRing();
  ring.add(packed(0, [[1, 2, 0, 0], [3, 3.001, 1, 0], [3.002, 3.003, 2, 0]]), WORKS);
  const [track] = ring.tracks;
  assert.deepEqual(track.near(1.5, 0.01), { place: 0, count: 1 });
  assert.deepEqual(track.near(3.0025, 0.01), { place: 2, count: 2 });
  assert.equal(track.near(2.5, 0.1), null);
});

test("a work that is not known yet waits for the state that names it", () => {
  const ring = new TimelineRing();
  const view = packed(0, [[1, 2, 0, 0], [3, 4, 1, 1]]);
  ring.add(view, WORKS.slice(0, 1));
  assert.equal(ring.held, 1);
  ring.add(view, WORKS);
  assert.deepEqual(ring.tracks.map(numbers), [[0], [1]]);
});

test("a recording that is wound back starts over", () => {
  const ring = new TimelineRing();
  ring.add(packed(0, many(0, 9)), WORKS);
  ring.add(packed(0, many(0, 3)), WORKS);
  assert.deepEqual(numbers(ring.tracks[0]), [0, 1, 2]);
});

test("the newest slices come first, of all rows", () => {
  const { ring } = caseView();
  assert.deepEqual(ring.newest(3).map(({ row, number }) => [row, number]), [[1, 3], [2, 2], [1, 1]]);
  assert.deepEqual(ring.extent(), [1000.25, 1001]);
  assert.equal(new TimelineRing().extent(), null);
});

test("ticks are round, apart, inside, and told apart by their labels", () => {
  for (const length of [1e-5, 3e-4, 0.07, 1, 9.3, 61, 4000, 90_000]) {
    const from = 1_795_323_600.123;
    const ticks = timelineTicks([from, from + length], 900);
    assert.ok(ticks.length >= 2 && ticks.length <= 9, `${length}: ${ticks.length}`);
    assert.ok(ticks.every(({ at }) => at >= from - 1e-6 && at <= from + length + 1e-6));
    assert.equal(new Set(ticks.map(({ label }) => label)).size, ticks.length, `${length}`);
  }
});

test("a time of day is rounded, also into the next second", () => {
  const date = new Date(2026, 0, 2, 3, 4, 5).getTime() / 1000;
  assert.equal(timelineClock(date, 0), "03:04:05");
  assert.equal(timelineClock(date + 0.25, 3), "03:04:05.250");
  assert.equal(timelineClock(date + 0.9999, 3), "03:04:06.000");
});

test("thousands are apart", () => {
  assert.deepEqual([7, 1203, 1_234_567].map(timelineExact), ["7", "1,203", "1,234,567"]);
});

test("zooming keeps its place and has an end; panning keeps the length", () => {
  assert.deepEqual(timelineZoom([0, 10], 0.5, 2), [1, 6]);
  const [from, to] = timelineZoom([0, 1e-5], 1e-6, 5e-6);
  assert.ok(Math.abs(to - from - 5e-6) < 1e-15);
  assert.deepEqual(timelinePan([1, 3], 2), [3, 5]);
});

test("each device has a heading, each of its streams a lane, whatever order they came in", () => {
  const lanes = timelineLanes(CASE.state);
  assert.deepEqual(lanes.map(({ device, row }) => [device, row]), [["gpu0", null], ["gpu0", 0], ["gpu0", 1], ["gpu1", null], ["gpu1", 2], ["gpu1", 3]]);
  assert.equal(lanes[0].y, TIMELINE_AXIS);
  lanes.slice(1).forEach((lane, i) => assert.equal(lane.y, lanes[i].y + lanes[i].height));
  assert.equal(timelineHeight([]), TIMELINE_AXIS);
});

test("a device is selected by its path and by those below it", () => {
  assert.ok(timelineIsOf("lab/gpu1", "lab/gpu1"));
  assert.ok(timelineIsOf("lab/gpu1", "lab/gpu1/context/blas"));
  assert.ok(!timelineIsOf("lab/gpu1", "lab/gpu10"));
  assert.ok(!timelineIsOf("lab/gpu1", null));
});

test("labels of generation changes that would overlap become one", () => {
  const mark = (at, before) => [at, "gpu0", "generation", `g${before}→g${before + 1}`];
  const marks = [mark(0, 1), [0.5, "gpu0", "fault", "lost"], mark(1, 2), mark(50, 3)];
  assert.deepEqual(timelineMerged(marks, 10), [{ at: 0, text: "g1→g3" }, { at: 50, text: "g3→g4" }]);
});

test("a slice in words says name, number, kind, stream, start and duration", () => {
  const { state } = caseView();
  const { what, text } = timelineDescribe(state, { work: 1, seq: 2, start: 1000.5, end: 1000.75, more: 3 }, 1001);
  assert.equal(what, "Gemm #2");
  assert.match(text, /^kernel · gpu0\/blas · from \d\d:\d\d:\d\d\.500000 · 250 ms · 3 others within a pixel$/);
  assert.match(timelineDescribe(state, { work: 3, seq: 8, start: 1000.75, end: null }, 1001.75).text, /function · gpu1\/run · .* · running for 1 s$/);
});

test("the page has a name for every stream, a legend in words, and a summary that can be read", () => {
  const text = toHtml(...timelineDraw(caseView()).filter(Boolean));
  assert.equal(text.match(/role="option"/g).length, 4);
  for (const word of ["kernel", "copy", "function", "still running", "ended with its context", "new generation", "fault", "busy share"]) assert.match(text, new RegExp(`</svg>[^<]*${word}`));
  const summary = timelineSummary(caseView());
  for (const part of ["gpu0 blas: 2 done, the longest 250 ms", "Run #8 runs on gpu1", "gpu0 g1→g2", "2 slices are not shown"]) assert.ok(summary.includes(part), part);
  assert.match(text, /2 not shown/);
});

test("the legend is one line that opens, and what the pointer is at takes no other", () => {
  const text = toHtml(...timelineDraw(caseView()).filter(Boolean));
  const [, summary] = text.match(/<details class="timeline-legend[^>]*><summary[^>]*>(.*?)<\/summary>/);
  assert.match(summary, /Gemm/);
  assert.doesNotMatch(summary, /ended with its context/);
  assert.match(text, /<\/details><div class="timeline-detail" aria-hidden="true"><\/div><\/div>/);
  assert.match(text, /Wheel or \+ and − zoom/);
});

test("what ended with its context says so: pointed at, in the table, in words and in the trace", () => {
  const works = [...CASE.state.works, [1, "spin", "kernel", true]];
  const rows = CASE.state.rows.map((row, i) => (i === 1 ? { ...row, lost: { count: 2, last: "spin #9", seconds: 56 } } : row));
  const state = { ...CASE.state, works, rows };
  const ring = new TimelineRing();
  ring.add(new DataView(new Float64Array([0, 1, 1000, 1056, 9, 4]).buffer), works);
  const view = caseView({ state, ring, tabled: true });
  assert.match(timelineDescribe(state, { work: 4, seq: 9, start: 1000, end: 1056 }, 1100).text, /^kernel · gpu0\/blas · .* · ended with its context after 56 s$/);
  assert.match(toHtml(...timelineDraw(view)), /<td>spin #9<\/td>.*<td>ended with its context after 56 s<\/td>/);
  assert.ok(timelineSummary(view).includes("gpu0 blas: spin #9 ended with its context after 56 s, and 1 earlier."));
  const told = timelineTrace(state, ring).traceEvents.filter(({ ph }) => ph === "X");
  assert.deepEqual(told.map(({ args }) => args), [{ seq: 9, lost: true }]);
});

/** Paint lane 0 of a state; returns the words that stand in it: [text, left, right]. */
function wordsOn(slices, running, works) {
  const ring = new TimelineRing();
  ring.add(packed(0, slices), works);
  const state = { ...CASE.state, works, running, marks: [] };
  const drawn = [];
  const canvas = { ownerDocument: { createElement: () => ({ getContext: () => pen }) } };
  const pen = new Proxy({ canvas, measureText: (text) => ({ width: 6 * text.length }), createPattern: () => "pattern" }, {
    get: (own, name) => own[name] ?? ((...values) => drawn.push([name, ...values])),
    set: () => true,
  });
  const lanes = timelineLanes(state);
  const lane = lanes.find(({ row }) => row === 0);
  const scene = { state, ring, lanes, window: [1000, 1002], now: 1001.9, cursor: null, span: null, selection: null, activeRow: null, picked: null, hovered: null, top: 0, width: 1000, height: timelineHeight(lanes) };
  timelinePaint(pen, scene, COLOURS);
  const inLane = (y) => y > lane.y && y < lane.y + lane.height;
  return drawn.filter(([name, , , y]) => name === "fillText" && inLane(y)).map(([, text, x]) => [text, x, x + 6 * text.length]);
}

test("words stand in their own box or where nothing is, and cover no work", () => {
  const works = [[0, "Gemm", "kernel"], [0, "spin", "kernel", true], [0, "fine", "kernel"], [0, "wait", "function"]];
  const dense = (from, to) => Array.from({ length: 40 }, (_, i) => [from + (i * (to - from)) / 40, from + (i * (to - from)) / 40 + 0.001, 100 + i, 2]);
  const cases = [
    [[[1000, 1000.5, 1, 0], [1001, 1001.1, 3, 1], [1001.2, 1001.7, 4, 0]], []],
    [[...dense(1000, 1001), [1001, 1001.1, 3, 1], ...dense(1001.1, 1001.8)], []],
    [[...dense(1000, 1001.7)], [[3, 9, 1001.75]]],
    [[[1001, 1001.1, 3, 1]], [[3, 9, 1001.2]]],
  ];
  for (const [slices, running] of cases) {
    const boxes = [...slices.map(([start, end, seq]) => [seq, (start - 1000) * 500, (end - 1000) * 500]), ...running.map(([, seq, start]) => [seq, (start - 1000) * 500, 950])];
    for (const [text, left, right] of wordsOn(slices, running, works)) {
      const own = Number(/#(\d+)/.exec(text)?.[1] ?? NaN);
      const covered = boxes.filter(([seq, x0, x1]) => seq !== own && left < x1 && right > x0);
      if (Number.isNaN(own)) assert.equal(covered.length, 1, `${text} is in its own box`);
      else assert.deepEqual(covered, [], text);
    }
  }
  const [alone] = wordsOn([[1001, 1001.1, 3, 1]], [], works);
  assert.match(alone[0], /^spin #3 · ended with its context after 100 ms$/);
});

test("what runs for a second or more is named below the picture, with its time", () => {
  const page = (now) => toHtml(...timelineDraw(caseView({ now })).filter(Boolean));
  assert.match(page(1012.75), /timeline-now.*<strong>running<\/strong> Run #8 on gpu1\/run for 12 s/s);
  assert.doesNotMatch(page(1001.5), /timeline-now/);
  assert.match(timelineSummary(caseView({ now: 1012.75 })), /Run #8 runs on gpu1 for 12 s/);
  const running = [8, 9, 10, 11, 12].map((seq) => [3, seq, 1000 + seq]);
  const words = timelineLong({ ...CASE.state, running }, 1020);
  assert.deepEqual([words.length, words[0], words.at(-1)], [4, "Run #8 on gpu1/run for 12 s", "and 2 more"]);
});

test("what is drawn is nodes, whether or not something runs for long", () => {
  for (const now of [0, 1e9]) {
    const nodes = timelineDraw(caseView({ now }));
    assert.ok(nodes.every((node) => node?.tag), JSON.stringify(nodes.map((node) => node?.tag ?? node)));
  }
  assert.ok(timelineDraw({ ...caseView(), state: null, lanes: [] }).every((node) => node?.tag));
});

test("the table has what runs, then the newest", () => {
  const text = toHtml(...timelineDraw(caseView({ tabled: true })).filter(Boolean));
  const firsts = [...text.matchAll(/<th scope="row">([^<]*)/g)].map(([, first]) => first);
  assert.deepEqual(firsts, ["running", "3", "2", "1", "0"]);
  assert.match(text, /running for 750 ms|<td>750 ms<\/td>/);
});

test("before the first look there is a word, and names are text", () => {
  const before = { ...caseView(), state: null, lanes: [], ring: new TimelineRing() };
  assert.match(toHtml(...timelineDraw(before).filter(Boolean)), /Waiting for the first look/);
  const unseen = { ...before, state: { ...CASE.state, name: "", devices: [], rows: [], running: [], marks: [] } };
  assert.match(toHtml(...timelineDraw(unseen).filter(Boolean)), /Nothing of it was seen yet/);
  const state = { ...CASE.state, devices: ["<b>"], rows: [], works: [], running: [], marks: [] };
  const odd = toHtml(...timelineDraw({ ...caseView(), state, lanes: timelineLanes(state) }).filter(Boolean));
  assert.ok(!odd.includes("<b>"));
});

test("work that is not recorded is not said to be none", () => {
  const state = { name: "lab", devices: ["cpu0"], rows: [], works: [], running: [], marks: [], traced: 0, untraced: 0, closed: false, at: 1000, unrecorded: "a journal has no times of work" };
  const text = toHtml(...timelineDraw({ ...caseView(), state, lanes: timelineLanes(state) }).filter(Boolean));
  assert.doesNotMatch(text, /0 done|nothing seen|No work was seen/);
  assert.match(text, /timeline-unrecorded/);
  assert.match(text, /Work is not recorded: a journal has no times of work\./);
});

test("a device without a context at work says what it does", () => {
  const state = { ...CASE.state, devices: ["gpu0", "gpu9"], states: { gpu9: "starting" } };
  const text = toHtml(...timelineDraw({ ...caseView(), state, lanes: timelineLanes(state) }).filter(Boolean));
  assert.match(text, /gpu9<\/strong><span class="al-word al-busy">.*starting<\/span>/);
  assert.doesNotMatch(text, /nothing seen/);
});

test("messages that were not traced one by one fill their time, up to now", () => {
  const works = [[0, "Gemm", "kernel"], [0, "not traced", "untraced"]];
  const words = wordsOn([[1000, 1000.01, 1, 0], [1000.01, 1001.6, 1234, 1], [1001.6, 1001.6005, 7, 1]], [[1, 1234, 1001.7]], works);
  assert.deepEqual(words.map(([text]) => text), ["1,234 messages not traced"]);
  const state = { ...CASE.state, works, rows: CASE.state.rows, running: [[1, 1234, 900]] };
  assert.deepEqual(timelineLong(state, 1001.9), []);
  assert.equal(timelineDescribe(state, { work: 1, seq: 1234, start: 1000, end: 1001 }, 1001).what, "1,234 messages not traced");
});
