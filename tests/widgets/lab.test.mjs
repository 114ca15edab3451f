// The lab's own pieces without a page: the bar, the fold, the inspector, and how columns are parted.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Bus } from "../../widgets/shared/bus.js";
import { toHtml } from "../../widgets/shared/dom.js";
import { agentsView, drawAgents } from "../../widgets/agents/draw.js";
import { collectivesView, drawCollectives } from "../../widgets/collectives/draw.js";
import { drawCompact } from "../../widgets/lab/compact.js";
import { drawLabBar, drawLabHead, labBarView, labSeconds } from "../../widgets/lab/draw.js";
import { drawLabInspector, labBuffers, labEvents } from "../../widgets/lab/inspector.js";
import { LabKept } from "../../widgets/lab/kept.js";
import { LAB_WIDE_PX, labColumns, labTabKey } from "../../widgets/lab/layout.js";
import { labPacks } from "../../widgets/lab/mount.js";
import { drawPatterns, patternsView } from "../../widgets/patterns/draw.js";
import { LAB_PARTS } from "../../widgets/lab/parts.js";
import { drawTopology, topologyView } from "../../widgets/topology/draw.js";
import { html as treeHtml } from "../../widgets/tree/tree.js";

const TREE = { root: { name: "lab", kind: "system", state: "running", children: [{ name: "gpu0", kind: "device", state: "running" }, { name: "gpu1", kind: "device", state: "running" }, { name: "mine", kind: "actor", state: "running" }] }, closed: false };
const STATE = {
  tree: TREE,
  supervision: {
    lab: "lab",
    rows: [
      { n: 0, at: 1, path: "gpu0", level: "note", what: "context started", outcome: "started", steps: [] },
      { n: 1, at: 2, path: "gpu1", level: "fault", what: "context lost", outcome: "recovered", cause: "SIGKILL", decisions: ["restart"], took: "80 ms", steps: [] },
      { n: 2, at: 3, path: "gpu0/context/blas", level: "fault", what: "library restarted", outcome: "restarted", steps: [] },
    ],
  },
  vram: {
    devices: [
      { name: "gpu0", strip: [{ ids: [1], owner: "Gemm #7", what: "float32[8]", bytes: 2048 }, { small: 9, bytes: 90 }, { ids: [2], owner: "R2C #8", what: "complex64[8]", bytes: 4096, kept: ["x"] }] },
      { name: "gpu1", strip: [{ ids: [3], owner: "Gemm #1", what: "float32[4]", bytes: 1024 }] },
    ],
  },
  timeline: { rows: [{ device: "gpu0", stream: "blas" }, { device: "gpu0", stream: "fft" }], works: [[0, "Gemm", "kernel"], [1, "R2C", "kernel"]] },
  closed: false,
};

const bar = (state, more = {}) => toHtml(...drawLabBar(state, { selection: null, span: null, paused: false, stale: null, replay: null, ...more }).filter(Boolean));

test("every part has a name, a title and what mounts it", () => {
  assert.deepEqual(LAB_PARTS.map(({ name }) => name), ["tree", "supervision", "timeline", "kernels", "vram", "health", "training", "values", "collectives", "topology", "patterns", "agents", "journal"]);
  for (const { title, mount } of LAB_PARTS) assert.ok(title && typeof mount === "function");
});

test("a part that the past may be without says so, and leaves no live state there", () => {
  const may = LAB_PARTS.filter(({ absent }) => absent);
  assert.deepEqual(may.map(({ name }) => name), ["training", "values", "collectives", "topology", "patterns", "agents"]);
  assert.match(toHtml(...drawCollectives(may[2].absent({ closed: false }), collectivesView())), /No world was seen then\./);
  assert.match(toHtml(...drawTopology(may[3].absent({ closed: false }), topologyView())), /Nobody looked at the links then\./);
  assert.match(toHtml(...drawPatterns(may[4].absent({ closed: false }), patternsView())), /No pattern was seen then\./);
  assert.match(toHtml(...drawAgents(may[5].absent({ closed: false }), agentsView())), /No graph was seen then\./);
});

test("the bar says whose lab it is and that it is live", () => {
  assert.match(bar(STATE), /<strong>lab<\/strong>.*live.*Pause/);
  assert.match(bar(null), /accel_lab.*waiting/);
});

test("the bar says what is stale, paused, closed and replayed", () => {
  assert.match(bar(STATE, { stale: 3.2 }), /stale 3\.2 s/);
  assert.match(bar(STATE, { paused: true }), /paused.*Follow live/);
  const closed = bar({ ...STATE, closed: true });
  assert.match(closed, /closed · last state/);
  assert.doesNotMatch(closed, /data-do="pause"/);
  const replay = bar({ ...STATE, journal: { live: false } }, { replay: "entry 3 of 9" });
  assert.match(replay, /<strong>REPLAY<\/strong> entry 3 of 9.*Back to live/);
  assert.doesNotMatch(replay, /al-live/);
});

test("a recording has no live to go back to", () => {
  assert.doesNotMatch(bar({ ...STATE, journal: {} }, { replay: "fact 3 of 9" }), /Back to/);
});

test("what all parts look at can be looked away from", () => {
  const html = bar(STATE, { selection: "lab/gpu0/context", span: [10, 10.0125] });
  assert.match(html, /Selected .*>gpu0\/context<.*aria-label="Clear selected"/);
  assert.match(html, /Span .*>12\.5 ms<.*data-key="span"/);
});

test("the bar says what a device is at for long, in a glyph and words", () => {
  const running = bar({ ...STATE, running: { what: "spin<b> #3 on gpu0/jit", how_long: "7 s", more: 2 } });
  assert.match(running, /al-lab-running.*al-icon-play.*<strong>spin&#60;b&#62; #3 on gpu0\/jit<\/strong>.* · 7 s<.*\+2 more/);
  assert.doesNotMatch(bar({ ...STATE, running: { what: "spin #3 on gpu0/jit", how_long: "7 s" } }), / more</);
  assert.doesNotMatch(bar(STATE), /al-lab-running/);
});

test("the bar reads the bus", () => {
  const bus = new Bus();
  bus.set("selection", "lab/gpu0");
  assert.deepEqual(labBarView(bus), { selection: "lab/gpu0", span: null, paused: false, stale: null, replay: null });
});

test("stretches of time have three digits and a unit", () => {
  assert.deepEqual([0.00034, 0.0125, 2.4, 61].map(labSeconds), ["340 µs", "12.5 ms", "2.4 s", "61 s"]);
});

test("a folded pane shows its part's title, an open one says it to a screen reader", () => {
  const tabs = [{ name: "timeline", title: "Timeline", id: "t" }];
  const open = toHtml(...drawLabHead({ tabs, shown: "timeline", open: true }));
  assert.match(open, /aria-expanded="true" aria-controls="t" aria-label="Timeline"/);
  assert.doesNotMatch(open, />Timeline</);
  assert.match(toHtml(...drawLabHead({ tabs, shown: "timeline", open: false })), /aria-expanded="false".*>Timeline</);
});

test("a pane of several parts has a tab for each, one of which Tab reaches", () => {
  const tabs = [{ name: "supervision", title: "Supervision", id: "s" }, { name: "health", title: "Health", id: "h" }];
  const html = toHtml(...drawLabHead({ tabs, shown: "health", open: true }));
  assert.match(html, /role="tablist" aria-label="Supervision, Health"/);
  assert.match(html, /role="tab" aria-selected="false" aria-controls="s" tabindex="-1"[^>]*>Supervision</);
  assert.match(html, /role="tab" aria-selected="true" aria-controls="h" tabindex="0"[^>]*>Health</);
  assert.deepEqual(["ArrowRight", "ArrowLeft", "Home", "End", "x"].map((key) => labTabKey(key, ["a", "b", "c"], "c")), ["a", "b", "a", "c", null]);
});

test("the timeline is first in two columns and in one, and every part has a place", () => {
  const names = LAB_PARTS.map(({ name }) => name);
  const wide = labColumns(LAB_WIDE_PX, names);
  assert.equal(wide.length, 2);
  assert.deepEqual(wide[0][0], { key: "timeline", names: ["timeline"] });
  assert.deepEqual(wide[1].map(({ names: [first] }) => first), ["tree", "vram", "supervision"]);
  const narrow = labColumns(LAB_WIDE_PX - 1, names);
  assert.equal(narrow.length, 1);
  assert.deepEqual(narrow[0].map(({ key }) => key), ["timeline", "tree", "supervision"]);
  for (const columns of [wide, narrow, labColumns(0, names)]) assert.deepEqual(columns.flat().flatMap((pane) => pane.names).sort(), [...names].sort());
});

test("a part that no layout knows has a place too, and one that is absent leaves none empty", () => {
  assert.deepEqual(labColumns(2000, ["tree", "new"]), [[{ key: "tree", names: ["tree"] }, { key: "supervision", names: ["new"] }]]);
});

const stored = (localStorage) => ({ defaultView: { localStorage } });

test("what is folded and shown is kept for each system, on the page and in the browser", () => {
  const items = new Map();
  const storage = { getItem: (key) => items.get(key) ?? null, setItem: (key, value) => items.set(key, value) };
  const page = stored(storage);
  new LabKept(page, "lab").set("timeline", { folded: true });
  new LabKept(page, "lab").set("supervision", { shown: "health" });
  for (const kept of [new LabKept(page, "lab"), new LabKept(stored(storage), "lab")]) {
    assert.deepEqual([kept.of("timeline"), kept.of("supervision"), kept.of("tree")], [{ folded: true }, { shown: "health" }, {}]);
  }
  assert.deepEqual(new LabKept(page, "other").of("timeline"), {});
});

test("a sandboxed page keeps it as long as it lives, and rubbish in the browser is passed over", () => {
  const refuse = () => { throw new Error("SecurityError"); };
  const sandboxed = { get defaultView() { return { get localStorage() { return refuse(); } }; } };
  new LabKept(sandboxed, "lab").set("timeline", { folded: true });
  assert.deepEqual(new LabKept(sandboxed, "lab").of("timeline"), { folded: true });
  for (const rubbish of ["{", "7", "null", '{"timeline": 7}', '{"timeline": null}']) {
    assert.deepEqual(new LabKept(stored({ getItem: () => rubbish }), "lab").of("timeline"), {});
  }
});

test("events are those of the actor, above and below it, the newest first", () => {
  const numbers = (path) => labEvents(STATE, path).map(({ n }) => n);
  assert.deepEqual(numbers("lab/gpu0"), [2, 0]);
  assert.deepEqual(numbers("lab/gpu0/context/blas"), [2, 0]);
  assert.deepEqual(numbers("lab/gpu0/context/fft"), [0]);
  assert.deepEqual(numbers("lab"), [2, 1, 0]);
  assert.equal(labEvents({}, "lab"), null);
});

test("buffers are those on the device, the largest first, and of a library those that it made", () => {
  const owners = (path) => labBuffers(STATE, path)?.map(({ owner }) => owner) ?? null;
  assert.deepEqual(owners("lab"), ["R2C #8", "Gemm #7", "Gemm #1"]);
  assert.deepEqual(owners("lab/gpu0"), ["R2C #8", "Gemm #7"]);
  assert.deepEqual(owners("lab/gpu0/context"), ["R2C #8", "Gemm #7"]);
  assert.deepEqual(owners("lab/gpu0/context/blas"), ["Gemm #7"]);
  assert.equal(owners("lab/mine"), null);
});

test("the inspector draws both, as text", () => {
  const html = toHtml(...drawLabInspector(STATE, "lab/gpu1"));
  assert.match(html, /Recent events.*recovered.*gpu1: context lost.*SIGKILL · restart · took 80 ms/);
  assert.match(html, /Buffers.*1 KiB.*#3 float32\[4\].*by Gemm #1/);
  assert.deepEqual(drawLabInspector(STATE, null), []);
  const nasty = { ...STATE, supervision: { lab: "lab", rows: [{ ...STATE.supervision.rows[0], what: "<script>" }] } };
  assert.doesNotMatch(toHtml(...drawLabInspector(nasty, "lab/gpu0")), /<script>/);
});

test("the row that all views look at is selected", () => {
  const html = treeHtml(TREE, { selected: "lab/gpu1" });
  assert.equal(html.match(/aria-selected="true"/g).length, 1);
  assert.match(html, /class="[^"]*al-selected[^"]*"[^>]*data-path="lab\/gpu1"/);
  assert.doesNotMatch(treeHtml(TREE), /aria-selected/);
});

test("columns are parted as they were put together", () => {
  const bytes = new DataView(new ArrayBuffer(4 + 24 + 24), 4); // not at the beginning of its buffer
  [8, 0, 16].forEach((size, i) => bytes.setFloat64(8 * i, size, true));
  [1.5, 2.5, 3.5].forEach((value, i) => bytes.setFloat64(24 + 8 * i, value, true));
  const packs = labPacks(bytes, ["timeline", "vram", "health"]);
  assert.deepEqual([...packs.keys()], ["timeline", "health"]);
  assert.equal(packs.get("timeline").getFloat64(0, true), 1.5);
  assert.equal(packs.get("health").getFloat64(8, true), 3.5);
  assert.equal(labPacks(null, ["tree"]).size, 0);
});

test("the compact view draws a line for each thing, calm once it is closed", () => {
  const lines = [["Memory", "gpu0 1.2 / 139 GiB", "ok"], ["Supervision", "1 fault", "bad"]];
  assert.match(toHtml(...drawCompact({ lines, closed: false })), /<dt>Memory<\/dt>.*gpu0 1\.2.*al-bad.*1 fault/);
  assert.doesNotMatch(toHtml(...drawCompact({ lines, closed: true })), /al-bad/);
});

test("only a lab that can be crashed has the button, and what came of it beside it", () => {
  const crash = { device: "gpu0", outcome: "recovered", said: "recovered in 0.2 s, 3 arrays rebuilt" };
  assert.doesNotMatch(bar(STATE), /Crash it/);
  assert.match(bar({ ...STATE, crash }), /data-do="crash".*Crash it.*role="status".*al-icon-running.*recovered in 0\.2 s, 3 arrays rebuilt/);
  const before = bar({ ...STATE, crash: { device: "gpu0", outcome: "", said: "" } });
  assert.match(before, /data-do="crash" title="[^"]*gpu0/);
  assert.doesNotMatch(before, /al-lab-crash-said al-/);
});

test("nothing is crashed while it recovers, in the past, or where nobody obeys", () => {
  const crash = { device: "gpu0", outcome: "", said: "" };
  const off = /data-do="crash" disabled/;
  assert.match(bar({ ...STATE, crash: { device: "gpu0", outcome: "recovering", said: "gpu0 crashed: SIGKILL, recovering" } }), off);
  assert.match(bar({ ...STATE, crash, closed: true }), off);
  assert.match(bar({ ...STATE, crash }, { replay: "entry 3 of 9" }), off);
  assert.match(bar({ ...STATE, crash }, { stale: "kernel restarted" }), off);
  assert.doesNotMatch(bar({ ...STATE, crash }), off);
});
