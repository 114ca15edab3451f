import assert from "node:assert/strict";
import { test } from "node:test";

import { toHtml } from "../../widgets/shared/dom.js";
import { html } from "../../widgets/collectives/collectives.js";
import { listedRanks, stepWords } from "../../widgets/collectives/draw.js";
import { drawRing, treeEdges } from "../../widgets/collectives/ring.js";

const ranks = (...words) => words.map((word, k) => ({ device: `gpu${k}`, word }));
const world = (more = {}) => ({ name: "world1", state: "whole", epoch: 2, ranks: ranks("ready", "ready"), done: 3, ...more });
const state = (...worlds) => ({ lab: "lab", worlds, closed: false });
const op = (more = {}) => ({ call: "all_reduce", what: "64 MiB float32", algorithm: "ring", for: "1.2 s", group: 9, ...more });
const ring = (words, what = op()) => toHtml(drawRing({ ranks: ranks(...words), op: what }));
const times = (text, part) => text.split(part).length - 1;

test("a rank is a glyph, a word and a colour, in the ring and in the table", () => {
  const text = html(state(world({ ranks: ranks("arrived", "waited for", "lost"), op: op() })));
  for (const [word, glyph, tone] of [["arrived", "running", "ok"], ["waited for", "half-open", "warn"], ["lost", "open", "bad"]]) {
    assert.match(text, new RegExp(`al-ring-rank al-${tone}" data-word="${word}"`));
    assert.match(text, new RegExp(`al-word al-${tone}"><svg class="al-icon al-icon-${glyph}"[^>]*>.*?</svg>${word}<`));
  }
  assert.match(text, /<svg class="al-ring"[^>]* aria-hidden="true"/);
});

test("data moves around the ring only while all have arrived and the ring is the way", () => {
  assert.equal(times(ring(["arrived", "arrived", "arrived"]), "al-ring-moving"), 3);
  assert.equal(times(ring(["arrived", "waited for", "arrived"]), "al-ring-moving"), 0);
  assert.equal(times(ring(["arrived", "arrived", "arrived"], op({ algorithm: "nccl" })), "al-ring-moving"), 0);
  assert.equal(times(ring(["ready", "ready", "ready"], undefined), "al-ring-moving"), 0);
  assert.equal(times(ring(["joining", "lost", "joining"], undefined), "al-ring-broken"), 2);
});

test("a tree is drawn where the operation takes one, as a binomial one from rank 0", () => {
  assert.deepEqual(treeEdges(8), [[1, 0], [2, 0], [3, 2], [4, 0], [5, 4], [6, 4], [7, 6]]);
  assert.deepEqual([treeEdges(0), treeEdges(1)], [[], []]);
  const text = ring(["arrived", "arrived", "arrived"], op({ algorithm: "tree" }));
  assert.equal(times(text, "al-ring-moving"), 2);
  assert.doesNotMatch(text, /al-ring-head/);
});

test("a world of one rank, and one of very many, are drawn", () => {
  assert.doesNotMatch(ring(["ready"], undefined), /al-ring-way|NaN/);
  const many = ring(Array(72).fill("ready"), undefined);
  assert.equal(times(many, "al-ring-rank"), 72);
  assert.doesNotMatch(many, /al-ring-name|NaN/);
});

test("of very many ranks those are listed that are not as most are", () => {
  const words = Array(40).fill("arrived");
  words[7] = "waited for";
  const { shown, rest, common } = listedRanks(ranks(...words));
  assert.deepEqual([shown.map(({ rank }) => rank), rest, common], [[7], 39, "arrived"]);
  assert.match(html(state(world({ ranks: ranks(...words), op: op() }))), /and 39 more ranks: arrived/);
  assert.equal(listedRanks(ranks("arrived", "lost")).shown.length, 2);
});

test("what is under way says what it waits for and what is queued", () => {
  const text = html(state(world({ op: op({ missing: ["gpu1"], more: 3, bytes: "256 MiB" }) })));
  assert.match(text, /<strong>all_reduce<\/strong> of 64 MiB float32, ring, for 1\.2 s</);
  assert.match(text, /waits for gpu1</);
  assert.match(text, /3 more queued, 256 MiB in all/);
  assert.match(html(state(world({ op: op({ for: undefined }) }))), /, not begun</);
  assert.match(html(state(world())), /Nothing is under way\./);
  assert.match(html(state(world({ state: "forming" }))), /The world is forming\..*/);
});

test("operations that failed say why, and a screen reader hears what became of the world", () => {
  const ended = [
    { group: 2, call: "all_reduce", what: "8 B float64", failure: "gpu1 <lost> its context" },
    { group: 1, call: "all_reduce", what: "8 B float64", algorithm: "ring", took: "1 ms", bandwidth: "2 GB/s", last: "gpu1, +1 ms" },
  ];
  const healing = [{ at: 9, epoch: 2, word: "formed", what: "in 2.13 s" }, { at: 8, epoch: 1, word: "broken", what: "gpu1 lost its context" }];
  const text = html(state(world({ ended, healing, failed: 1 })));
  assert.match(text, /failed<\/span>.*gpu1 &#60;lost&#62; its context/);
  assert.match(text, /1 failed</);
  assert.match(text, /role="status">world1: epoch 2 formed in 2\.13 s</);
});

test("a straggler is a warning only where others wait long, and bars end at the newest", () => {
  const late = { device: "gpu2", by: "6 ms", of: 32 };
  assert.match(html(state(world({ late: { ...late, warn: true } }))), /al-word al-warn"><svg.*?<strong>gpu2<\/strong>/);
  assert.doesNotMatch(html(state(world({ late }))), /al-warn/);
  const text = html(state(world({ bus: { bars: [0.5, 1], newest: "2 GB/s", best: "2 GB/s" } })));
  assert.match(text, /<rect x="184" y="12\.5" width="3" height="11\.5"><\/rect><rect x="188" y="1" width="3" height="23">/);
});

test("no world says how to make one, and the past says that none was seen", () => {
  assert.match(html(null), /Waiting for the first look\./);
  assert.match(html(state()), /lab\.world\(\)/);
  assert.match(html({ ...state(), replay: { kind: "recording", position: 0, count: 9, at: 1 } }), /No world was seen then\./);
});

const steps = { call: "all_reduce", part: "16 MiB", steps: [["folds", [0, 1, 2]], ["folds", [2, 0, 1]], ["passes", [1, 2, 0]], ["passes", [0, 1, 2]]] };

test("a ring is gone through step by step: who sends which part to whom", () => {
  const one = world({ ranks: ranks("ready", "ready", "ready"), ring: steps });
  assert.match(html(state(one)), /4 steps of 16 MiB/);
  assert.doesNotMatch(html(state(one)), /al-ring-part/);
  const text = html(state(one), { steps: { world1: 2 } });
  assert.match(text, /step 2 of 4/);
  assert.deepEqual([...text.matchAll(/al-ring-part".*?<text[^>]*>(\d+)</g)].map(([, part]) => part), ["2", "0", "1"]);
  assert.match(text, /part 2 from 0 to 1, part 0 from 1 to 2, part 1 from 2 to 0; there it is reduced/);
  assert.match(stepWords(steps.steps[2]), /there it is kept$/);
  assert.match(html(state(one), { steps: { world1: 9 } }), /step 4 of 4/, "a ring may have become smaller");
  const [back, next] = [...html(state(one), { steps: { world1: 4 } }).matchAll(/<button[^>]*data-step="(-?\d+)"[^>]*>/g)];
  assert.deepEqual([back[1], next[1]], ["3", "5"]);
  assert.match(next[0], /disabled/);
});

test("the measured link stands beside the bandwidth", () => {
  const bus = { bars: [1], newest: "200 GB/s", best: "200 GB/s" };
  assert.match(html(state(world({ bus: { ...bus, link: "240 GB/s" } }))), /slowest link 240 GB\/s/);
  assert.doesNotMatch(html(state(world({ bus }))), /slowest link/);
});
