import assert from "node:assert/strict";
import { test } from "node:test";

import { luminance, palette } from "../../widgets/shared/theme.js";
import { html } from "../../widgets/tree/tree.js";
import { describe } from "../../widgets/tree/draw.js";
import { press } from "../../widgets/shared/tree_keys.js";
import { doing, initialFolds, news, quietPath, restarted, rows, summary, walk } from "../../widgets/tree/rows.js";

const leaf = (name, more = {}) => ({ name, kind: "library", state: "running", ...more });

function device(name, more = {}, children = [leaf("array"), leaf("blas")]) {
  const context = { name: "context", kind: "context", state: "running", generation: 1, children };
  return { name, kind: "device", state: "running", generation: 1, used_bytes: 2 ** 30, total_bytes: 4 * 2 ** 30, children: [context], ...more };
}

const system = (...children) => ({ name: "lab", kind: "system", state: "running", children });
const names = (list) => list.map((row) => row.actor.name);
const open = { folded: new Set() };
const drawnRows = (text) => text.match(/<tr [^>]*data-path="[^"]*"/g) ?? [];

test("every actor has a row, with its place in the tree", () => {
  const list = rows(system(device("gpu0"), device("gpu1")), open);
  assert.deepEqual(names(list), ["lab", "gpu0", "context", "array", "blas", "gpu1", "context", "array", "blas"]);
  const { path, level, position, size } = list[5];
  assert.deepEqual({ path, level, position, size }, { path: "lab/gpu1", level: 2, position: 2, size: 2 });
});

test("a folded row says what it hides", () => {
  const sick = [leaf("array"), leaf("blas", { state: "restarting" })];
  const list = rows(system(device("gpu0", {}, sick), device("gpu1")), { folded: new Set(["lab/gpu0"]) });
  assert.deepEqual(names(list).slice(0, 3), ["lab", "gpu0", "gpu1"]);
  assert.equal(list[1].open, false);
  assert.deepEqual(list[1].inside, { actors: 3, trouble: "restarting" });
  assert.equal(list[2].open, true);
});

test("a filter shows what matches and the way there, folded or not", () => {
  const root = system(device("gpu0"), device("gpu1", { detail: "NVIDIA H200" }));
  const list = rows(root, { folded: new Set(["lab"]), filter: "h200" });
  assert.deepEqual(list.map((row) => row.path), ["lab", "lab/gpu1"]);
  assert.equal(list[1].open, null);
  assert.deepEqual(rows(root, { folded: new Set(), filter: "nothing" }), []);
});

test("what needs attention can be shown alone", () => {
  const list = rows(system(device("gpu0"), device("gpu1", { state: "circuit open" })), { ...open, troubledOnly: true });
  assert.deepEqual(names(list), ["lab", "gpu1"]);
});

test("a large tree starts with its devices folded, a small one does not", () => {
  const large = system(...Array.from({ length: 8 }, (_, i) => device(`gpu${i}`, {}, Array.from({ length: 24 }, (_, k) => leaf(`l${k}`)))));
  assert.equal([...walk(large)].length, 209);
  assert.deepEqual(initialFolds(large), new Set(large.children.map(({ name }) => `lab/${name}`)));
  assert.deepEqual(initialFolds(system(device("gpu0"))), new Set());
  assert.deepEqual(initialFolds(null), new Set());
});

test("totals count devices, actors and states", () => {
  const { devices, actors, states } = summary(system(device("gpu0"), device("gpu1", { state: "starting" })));
  assert.deepEqual([devices, actors, [...states]], [2, 9, [["idle", 8], ["starting", 1]]]);
  assert.equal(summary(null).actors, 0);
});

test("a restart is a generation or a count that rose, not an actor that is new", () => {
  const before = system(device("gpu0"), device("gpu1"));
  const after = system(device("gpu0", { generation: 2 }), device("gpu1", { restarts: 1 }), device("gpu2", { generation: 5, restarts: 4 }));
  assert.deepEqual(restarted(before, after), ["lab/gpu0", "lab/gpu1"]);
  assert.deepEqual(restarted(after, after), []);
  assert.deepEqual(restarted(before, system(device("gpu0", { generation: 2, state: "stopped" }))), []);
  const started = system(device("gpu0", { generation: undefined }));
  assert.deepEqual(restarted(started, before), []);
});

test("news names the topmost actor that restarted, and circuits that opened", () => {
  const before = system(device("gpu0"), device("gpu1"));
  const after = system(device("gpu0", { generation: 2, restarts: 1 }), device("gpu1", { state: "circuit open" }));
  after.children[0].children[0].generation = 2;
  assert.equal(news(before, after), "gpu0 restarted, generation 2; gpu1: circuit open");
  assert.equal(news(after, after), "");
  assert.equal(news(null, after), "");
});

test("news of many is cut short", () => {
  const many = (generation) => system(...Array.from({ length: 8 }, (_, i) => device(`gpu${i}`, { generation })));
  assert.match(news(many(1), many(2)), /^gpu0 .*; gpu1 .*; gpu2 restarted, generation 2; and 5 more changes$/);
});

test("what runs is busy or idle, and neither where its counts are not known", () => {
  for (const more of [{ in_flight: 1 }, { mailbox: 1 }, { running: "▶ spin" }, { rate: 0.4 }, { busy: 0.01 }]) assert.equal(doing(leaf("blas", more)), "busy");
  assert.equal(doing(leaf("blas")), "idle");
  assert.equal(doing(system(device("gpu0", {}, [leaf("blas", { in_flight: 1 })]))), "busy", "a parent is never below its children");
  assert.equal(doing(leaf("blas"), { mailbox: "a journal does not say" }), "running");
  assert.equal(doing(leaf("blas", { rate: 2 }), { mailbox: "a journal does not say" }), "busy");
  assert.equal(doing(leaf("blas", { state: "circuit open", mailbox: 3 })), "circuit open");
});

const crowd = (...more) => system(device("gpu0", {}, [...["array", "blas", "fft", "jit"].map((name) => leaf(name)), ...more]));

test("library actors that are idle are one row, which unfolds", () => {
  const list = rows(crowd(leaf("rng", { in_flight: 1 }), leaf("run", { restarts: 2 })), open);
  assert.deepEqual(names(list), ["lab", "gpu0", "context", "rng", "run", "4 idle actors"]);
  const group = list.at(-1);
  assert.deepEqual([group.path, group.open, group.level, group.position, group.size], [quietPath("lab/gpu0/context"), false, 4, 3, 3]);
  assert.deepEqual(group.quiet, ["array", "blas", "fft", "jit"]);
  const unfolded = rows(crowd(), { ...open, opened: new Set([quietPath("lab/gpu0/context")]) });
  assert.deepEqual(names(unfolded), ["lab", "gpu0", "context", "4 idle actors", "array", "blas", "fft", "jit"]);
  const { path, level, position, size } = unfolded[5];
  assert.deepEqual({ path, level, position, size }, { path: "lab/gpu0/context/blas", level: 5, position: 2, size: 4 });
  assert.equal(unfolded[3].open, true);
  assert.deepEqual(press("ArrowLeft", unfolded, path), { active: quietPath("lab/gpu0/context") });
});

test("few idle actors, and those that somebody looks at, have rows of their own", () => {
  assert.deepEqual(names(rows(system(device("gpu0")), open)), ["lab", "gpu0", "context", "array", "blas"]);
  const kept = new Set(["lab/gpu0/context/jit"]);
  assert.deepEqual(names(rows(crowd(), { ...open, kept })), ["lab", "gpu0", "context", "jit", "3 idle actors"]);
  for (const view of [{ selected: "lab/gpu0/context/jit" }, { active: "lab/gpu0/context/jit" }, { recent: new Set(["lab/gpu0/context/jit"]) }, { marked: new Set(["lab/gpu0/context/jit"]) }]) {
    assert.match(html({ root: crowd(), closed: false }, view), /data-path="lab\/gpu0\/context\/jit"/);
  }
  const opened = new Set([quietPath("lab/gpu0/context")]);
  assert.deepEqual(names(rows(crowd(), { ...open, opened, looked: kept })).slice(3), ["4 idle actors", "array", "blas", "fft", "jit"], "nothing moves under who walks there");
  assert.deepEqual(names(rows(crowd(), { ...open, looked: kept })).slice(3), ["jit", "3 idle actors"]);
  assert.deepEqual(names(rows(crowd(), { ...open, filter: "jit" })), ["lab", "gpu0", "context", "jit"]);
  assert.deepEqual(names(rows(crowd(), { ...open, filter: "idle" })).length, 7);
});

test("of actors at rest the row says of which kind their rest is", () => {
  const group = (root, lacking) => names(rows(root, { ...open, lacking })).at(-1);
  assert.equal(group(crowd(), { mailbox: "a journal does not say" }), "4 running actors");
  const stopped = ["array", "blas", "fft"].map((name) => leaf(name, { state: "stopped" }));
  assert.equal(group(system(device("gpu0", {}, stopped))), "3 stopped actors");
  assert.equal(group(system(device("gpu0", {}, [...stopped, leaf("jit")]))), "4 more actors");
});

test("a row says how many messages a second and how busy, where that is known", () => {
  const root = system(device("gpu0", { rate: 1433, busy: 0.784 }, [leaf("blas", { rate: 0.4 }), leaf("fft")]));
  const text = html({ root, closed: false }, { sparks: new Map([["lab/gpu0", "M0.0 14.5H48"]]) });
  assert.match(text, /data-path="lab\/gpu0".*?<svg class="al-spark".*?>78 %<.*?>1433\/s</);
  assert.match(text, /data-path="lab\/gpu0\/context\/blas".*?al-share"><.*?>0\.4\/s</);
  assert.match(text, /data-path="lab\/gpu0\/context\/fft".*?class="al-work"><\/td>/);
  assert.match(describe(device("gpu0", { rate: 1433, busy: 0.784 })), /1433 messages\/s · 78 % busy/);
});

test("the keys of a treegrid do what its pattern says", () => {
  const all = rows(system(device("gpu0"), device("gpu1")), { folded: new Set(["lab/gpu1"]) });
  const at = (key, path) => press(key, all, path);
  assert.deepEqual(at("ArrowDown", "lab"), { active: "lab/gpu0" });
  assert.deepEqual(at("ArrowUp", "lab"), { active: "lab" });
  assert.deepEqual(at("ArrowDown", "lab/gpu1"), { active: "lab/gpu1" });
  assert.deepEqual(at("Home", "lab/gpu1"), { active: "lab" });
  assert.deepEqual(at("End", "lab"), { active: "lab/gpu1" });
  assert.deepEqual(at("PageDown", "lab"), { active: "lab/gpu1" });
  assert.deepEqual(at("PageUp", "lab/gpu1"), { active: "lab" });
  assert.deepEqual(at("ArrowRight", "lab/gpu1"), { unfold: "lab/gpu1" });
  assert.deepEqual(at("ArrowRight", "lab/gpu0"), { active: "lab/gpu0/context" });
  assert.equal(at("ArrowRight", "lab/gpu0/context/blas"), null);
  assert.deepEqual(at("ArrowLeft", "lab/gpu0"), { fold: "lab/gpu0" });
  assert.deepEqual(at("ArrowLeft", "lab/gpu1"), { active: "lab" });
  assert.deepEqual(at("ArrowLeft", "lab/gpu0/context/blas"), { active: "lab/gpu0/context" });
  assert.deepEqual(at("Enter", "lab/gpu1"), { unfold: "lab/gpu1" });
  assert.deepEqual(at(" ", "lab/gpu0"), { fold: "lab/gpu0" });
  assert.equal(at("Enter", "lab/gpu0/context/blas"), null);
  assert.equal(at("F5", "lab"), null);
  assert.equal(press("ArrowDown", [], null), null);
});

test("a character goes to the next name that begins with it, round and round", () => {
  const all = rows(system(device("gpu0"), device("gpu1")), open);
  assert.deepEqual(press("g", all, "lab"), { active: "lab/gpu0" });
  assert.deepEqual(press("G", all, "lab/gpu0"), { active: "lab/gpu1" });
  assert.deepEqual(press("g", all, "lab/gpu1"), { active: "lab/gpu0" });
  assert.equal(press("z", all, "lab"), null);
});

test("the drawn tree carries state as a word, generation, memory and its meter", () => {
  const text = html({ root: system(device("gpu0", { generation: 7, mailbox: 3, in_flight: 12_345, restarts: 2 })), closed: false });
  assert.equal(drawnRows(text).length, 5);
  assert.match(text, /role="treegrid" aria-label="Actors of lab"/);
  assert.match(text, /aria-level="2" aria-posinset="1" aria-setsize="1" aria-expanded="true" tabindex="-1" data-path="lab\/gpu0"/);
  assert.match(text, />g7</);
  assert.match(text, />generation 7</);
  assert.match(text, />12k</);
  assert.match(text, /role="meter" aria-label="Memory of gpu0" aria-valuemin="0" aria-valuemax="4294967296" aria-valuenow="1073741824" aria-valuetext="1 GiB of 4 GiB"/);
  assert.match(text, /width: 25\.0%/);
  assert.match(text, /<\/svg>busy</);
  assert.match(text, /<\/svg>idle</);
});

test("a restarted row says so in a word", () => {
  const state = { root: system(device("gpu0")), closed: false };
  assert.match(html(state, { marked: new Set(["lab/gpu0"]) }), /al-restarted.*>restarted</);
  assert.doesNotMatch(html(state), /restarted</);
});

test("exactly one row can be reached with Tab, also when the active one is gone", () => {
  for (const active of ["lab/gpu0", "lab/gone", null]) {
    const text = html({ root: system(device("gpu0")), closed: false }, { active });
    assert.equal(text.match(/tabindex="0"/g).length, 1);
  }
});

test("live, stale, closed and waiting are told in words", () => {
  const root = system(device("gpu0"));
  assert.match(html({ root, closed: false }), />live</);
  assert.match(html({ root, closed: false }, { stale: 3.21 }), />stale 3\.2 s</);
  assert.match(html({ root, closed: true }, { stale: 3.21 }), />closed · last state</);
  const replay = { kind: "journal", position: 1203, count: 4000, at: 1_700_000_000.25 };
  assert.match(html({ root, closed: true, replay }), /al-replay.*<strong>REPLAY<\/strong> entry 1,203 of 4,000 · \d\d:\d\d:\d\d\.250</);
  assert.match(html(null), />waiting<.*Waiting for the first snapshot/);
  assert.match(html({ root: null, closed: true }), /closed before it was seen/);
  assert.match(html({ root: null, closed: false, replay }), /Nothing of it was seen yet\./);
});

test("no devices, no match and nothing to attend to each say so", () => {
  assert.match(html({ root: system(), closed: false }), /This system has no devices/);
  const state = { root: system(device("gpu0")), closed: false };
  assert.match(html(state, { filter: "xyz" }), /No actor matches/);
  assert.match(html(state, { troubledOnly: true }), /Nothing needs attention/);
});

test("memory that is not known is not a zero", () => {
  const text = html({ root: system(device("gpu0", { used_bytes: undefined })), closed: false });
  assert.match(text, /not known/);
  assert.doesNotMatch(text, /role="meter"/);
});

test("what a library is at has a line of its own in its row", () => {
  const running = "▶ spin #3 running for 7 s";
  const root = system(device("gpu0", { running, detail: "kernels 1" }));
  const text = html({ root, closed: false }, { active: "lab/gpu0" });
  assert.match(text, /<tr class="[^"]* al-runs"/);
  assert.match(text, /<span class="al-run">▶ spin #3 running for 7 s<\/span>/);
  assert.match(text, /<div>▶ spin #3 running for 7 s · kernels 1<\/div>/);
  assert.doesNotMatch(html({ root: system(device("gpu0")), closed: false }), /al-run/);
});

test("names and details are shown as text, whatever they contain", () => {
  const text = html({ root: system(device('<img src=x onerror="x">', { detail: "<script>" })), closed: false });
  assert.doesNotMatch(text, /<img|<script/);
});

test("the filter is there when there is much to filter", () => {
  const many = system(...Array.from({ length: 8 }, (_, i) => device(`gpu${i}`)));
  assert.match(html({ root: many, closed: false }), /type="search"/);
  assert.doesNotMatch(html({ root: system(device("gpu0")), closed: false }), /type="search"/);
});

test("what needs attention can be asked for whenever something does, and taken back", () => {
  const asks = (root, view) => (html({ root, closed: false }, view).match(/Needs attention/g) ?? []).length;
  const sick = system(device("gpu0", { state: "circuit open" }));
  assert.equal(asks(sick), 1);
  assert.equal(asks(system(device("gpu0"))), 0);
  assert.equal(asks(system(device("gpu0")), { troubledOnly: true }), 1);
  assert.equal(asks(system(...Array.from({ length: 8 }, (_, i) => device(`gpu${i}`, { state: "restarting" })))), 1, "in the toolbar alone");
});

test("one line says all about an actor but its detail", () => {
  assert.equal(
    describe(device("gpu0", { mailbox: 3, restarts: 1, detail: "NVIDIA H200" })),
    "device, busy · generation 1 · 3 in the mailbox · 0 in flight · 1 / 4 GiB (25 %) · 1 restart",
  );
});

test("below the tree stands the row under the pointer, else the chosen, else the first in trouble", () => {
  const root = system(device("gpu0"), device("gpu1", { state: "restarting", detail: "lost by SIGKILL" }));
  const below = (view) => html({ root, closed: false }, view).match(/al-path">([^<]*)</)[1];
  assert.equal(below({ pointed: "lab/gpu0", active: "lab" }), "lab/gpu0");
  assert.equal(below({ active: "lab" }), "lab");
  assert.equal(below({}), "lab/gpu1");
  assert.match(html({ root, closed: false }), /al-inspector.*>lost by SIGKILL</);
});

test("the palette follows the background", () => {
  assert.equal(palette([255, 255, 255, 255]), "light");
  assert.equal(palette([33, 33, 33, 255]), "dark");
  assert.equal(palette([0, 0, 0, 0]), null);
  assert.ok(Math.abs(luminance(255, 255, 255) - 1) < 1e-9);
});

test("of a moment of which no count is recorded none is drawn, least of all zero", () => {
  const root = { name: "lab", kind: "system", state: "running", children: [{ name: "gpu0", kind: "device", state: "not recorded", in_flight: 2 }] };
  const text = html({ root, closed: false, unrecorded: { mailbox: "a journal does not say", "in flight": "a journal does not say" } });
  assert.equal(text.match(/not recorded: a journal does not say/g).length, 3, "two mailboxes, and one in flight");
  assert.match(text, /al-off[^>]*>.*1 not recorded/);
  assert.doesNotMatch(text, /Needs attention/);
});
