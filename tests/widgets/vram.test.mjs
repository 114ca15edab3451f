import assert from "node:assert/strict";
import { test } from "node:test";

import { toHtml } from "../../widgets/shared/dom.js";
import { VRAM_ROWS, vramDescribe, vramObjectRows, vramDraw, vramRows, vramStrips, vramView } from "../../widgets/vram/draw.js";
import { VramLooks, vramKind } from "../../widgets/vram/look.js";
import { vramPress } from "../../widgets/vram/mount.js";

const MIB = 2 ** 20;
const block = (id, more = {}) => ({ ids: [id], owner: "Gemm #12", what: "float32[4, 4]", bytes: MIB, ...more });

function device(strip, more = {}) {
  return { name: "gpu0", state: "running", generation: 1, used: 3 * MIB, total: 1024 * MIB, room: 512 * MIB, count: strip.length, strip, ...more };
}

const system = (...devices) => ({ lab: "lab", devices, kinds: [["Gemm", 3 * MIB]], closed: false });
const html = (state, view = {}) => toHtml(...vramDraw(state, { ...vramView(), ...view }));
const options = (text) => text.match(/role="option"/g) ?? [];
const widths = (text) => [...text.matchAll(/flex-grow: (\d+)/g)].map((match) => Number(match[1]));

test("a kind has the same colour in every view, and two of one colour differ in pattern", () => {
  const kinds = Array.from({ length: 16 }, (_, i) => `Kind${i}`);
  const [one, other] = [new VramLooks(), new VramLooks()];
  const hues = kinds.map((kind) => one.of(kind).hue);
  assert.deepEqual([...kinds].reverse().map((kind) => other.of(kind).hue).reverse(), hues);
  const looks = kinds.map((kind) => JSON.stringify(one.of(kind)));
  assert.equal(new Set(looks).size, kinds.length);
  assert.deepEqual(one.of("Kind3"), one.of("Kind3"));
  assert.equal(vramKind("Gemm #12"), "Gemm");
  assert.ok(new Set(hues).size > 4);
});

test("every piece is an option as wide as it is large, and a gap stands before it", () => {
  const text = html(system(device([block(1, { bytes: 4 * MIB }), block(2, { gap: true }), { small: 7, bytes: 2 * MIB }])));
  assert.equal(options(text).length, 3);
  assert.deepEqual(widths(text), [4 * MIB, MIB, 2 * MIB]);
  assert.equal(text.match(/class="vram-gap" aria-hidden="true"/g).length, 1);
  assert.match(text, /role="listbox" aria-orientation="horizontal" aria-label="Blocks of gpu0 by address"/);
  assert.match(text, />7 small</);
  assert.match(text, /A gap between them is drawn narrow, whatever its size/);
  assert.doesNotMatch(html(system(device([block(1)]))), /drawn narrow/);
});

test("a block says all about itself", () => {
  const kept = block(7, { ids: [7, 9], kept: ["x", "layers[3]"] });
  assert.equal(vramDescribe(kept, { generation: 2 }), "buffers 7, 9 · Gemm #12 · float32[4, 4] · 1 MiB · generation 2 · kept by x, layers[3]");
  assert.match(vramDescribe(block(1), { generation: 1, lost: true }), /generation 1, lost with it · no name found that keeps it$/);
  assert.equal(vramDescribe({ small: 3, bytes: 48, unplaced: true }, {}), "3 small blocks · 48 B together · where is not known");
});

test("totals, the room that is left and a generation stand in words", () => {
  const text = html(system(device([block(1)])));
  assert.match(text, />3 MiB of 1 GiB in use \(0\.3 %\) · 1 block · a new block may have 512 MiB at most</);
  assert.match(text, />generation 1</);
  assert.match(text, /role="meter" aria-label="Memory of gpu0"/);
  assert.match(html(system(device([block(1)], { room: undefined }))), /what is free is not known/);
});

test("what is old, empty or not seen says so", () => {
  assert.match(html(system(device([block(1)], { state: "restarting", now: 2 }))), />restarting<.*as it was in generation 1, now at 2/);
  assert.match(html(system(device([]))), />Nothing is allocated\.</);
  assert.match(html(system({ name: "gpu0", state: "starting" })), />not seen yet</);
  assert.match(html(system()), />This system has no devices\.</);
  assert.match(html({ ...system(), lab: "" }), />Nothing of it was seen yet\.</);
  assert.match(html(null), />waiting<.*Waiting for the first snapshot/);
  assert.match(html({ ...system(device([block(1)])), closed: true }), />closed · last state</);
  assert.match(html(system(device([block(1)])), { stale: 3.2 }), />stale 3\.2 s</);
});

test("lost blocks that are kept have a hatched strip of their own", () => {
  const state = system(device([block(2)], { generation: 2, lost: [block(1, { kept: ["x"] })], lost_in: 1, lost_count: 1, lost_bytes: MIB }));
  const text = html({ ...state, acts: true });
  assert.match(text, /aria-label="Lost blocks of gpu0 that are kept"/);
  assert.match(text, /1 block of generation 1 lost with it, 1 MiB: no memory any more, but names hold them/);
  assert.match(text, /class="vram-block vram-hue\d vram-pattern\d vram-lost"/);
  assert.match(text, />1, lost</);
  assert.doesNotMatch(text, /data-do="free"/);
  assert.deepEqual(vramStrips(state).map(({ strip, generation }) => [strip, generation]), [["gpu0", 2], ["gpu0 lost", 1]]);
});

test("the table has the largest first, is bounded, and says what it leaves out", () => {
  const blocks = Array.from({ length: 14 }, (_, i) => block(i + 1, { bytes: (i + 1) * MIB }));
  const state = system(device([...blocks, { small: 30, bytes: 30 }], { count: 44 }));
  assert.deepEqual(vramRows(state).map((row) => row.block.ids[0]), Array.from({ length: 14 }, (_, i) => 14 - i));
  const rows = (text) => text.match(/<tr [^>]*data-key/g).length;
  assert.equal(rows(html(state)), VRAM_ROWS);
  assert.match(html(state), />10 of 44; 30 are not listed<.*>Show 14</);
  assert.equal(rows(html(state, { all: true })), 14);
  assert.match(html(state, { all: true }), />14 of 44; 30 are not listed<.*>Show the largest 10</);
});

test("buttons are there only where they act, on buffers whose handle can be found", () => {
  const state = system(device([block(1, { kept: ["x"] }), block(2)]));
  const deeds = (text) => [...text.matchAll(/data-do="(free|checkpoint)" data-device="(\w+)" data-ids="([\d ]+)"/g)].map((match) => match.slice(1, 4));
  assert.deepEqual(deeds(html(state)), []);
  assert.deepEqual(deeds(html({ ...state, acts: true })), [["free", "gpu0", "1"], ["checkpoint", "gpu0", "1"]]);
  assert.deepEqual(deeds(html({ ...state, acts: true, closed: true })), []);
  assert.match(html({ ...state, acts: true }), /aria-label="Free buffer 1 of gpu0" title="[^"]*fails with StaleRef"/);
});

test("objects of cells have a table of their own, the largest first, and a button where it acts", () => {
  const object = (name, bytes, more = {}) => ({ name, space: "s1", what: "torch.nn.Linear", bytes, kept: [name, `%%gpu ${name}`], ...more });
  const state = system(device([block(1)], { objects: [object("small", MIB), object("<b>", 2 * MIB)], object_count: 5 }), device([], { name: "gpu1", objects: [object("model", 8 * MIB)], object_count: 1 }));
  assert.deepEqual(vramObjectRows(state).map(({ device, object }) => [device, object.name]), [["gpu1", "model"], ["gpu0", "<b>"], ["gpu0", "small"]]);
  assert.match(html(state), /aria-label="Objects of %%gpu cells of lab".*>model<.*>torch\.nn\.Linear<.*>8 MiB<.*>model, %%gpu model</);
  assert.match(html(state), />what they hold may be in blocks, too · 3 of 6</);
  assert.doesNotMatch(html(state), /data-do="drop"|<b>/);
  assert.match(html({ ...state, acts: true }), /data-do="drop" data-device="gpu1" data-space="s1" data-name="model" aria-label="Drop object model of gpu1" title="[^"]*StaleRef"/);
  assert.doesNotMatch(html({ ...state, acts: true, closed: true }), /data-do="drop"/);
  assert.doesNotMatch(html(system(device([block(1)]))), /Objects of/);
});

test("exactly one block of a strip can be reached with Tab, also when the active one is gone", () => {
  const state = system(device([block(1), block(2)]), device([block(1)], { name: "gpu1" }));
  for (const key of ["gpu0 2", "gpu0 99"]) {
    const strip = html(state, { active: new Map([["gpu0", key]]) }).match(/role="option"[^>]*tabindex="(-1|0)"[^>]*data-key="[^"]*"/g);
    assert.deepEqual(strip.filter((option) => option.includes('tabindex="0"')).map((option) => option.match(/data-key="([^"]*)"/)[1]), [key === "gpu0 2" ? key : "gpu0 1", "gpu1 1"]);
  }
});

test("keys walk along a strip and choose", () => {
  assert.deepEqual(["ArrowRight", "ArrowLeft", "Home", "End", "Enter", " ", "x"].map((key) => vramPress(key, 1, 4)), [2, 0, 0, 3, "choose", "choose", null]);
  assert.equal(vramPress("ArrowRight", 3, 4), 3);
  assert.equal(vramPress("ArrowLeft", 0, 4), 0);
});

test("the line below tells of the block under the pointer, else in focus, else chosen, else the largest", () => {
  const state = system(device([1, 2, 3, 4].map((id) => block(id, { bytes: id }))));
  const below = (view) => html(state, view).match(/vram-inspector".*?buffer (\d)/)[1];
  assert.equal(below({ pointed: "gpu0 1", focused: "gpu0 2", chosen: "gpu0 3" }), "1");
  assert.equal(below({ focused: "gpu0 2", chosen: "gpu0 3" }), "2");
  assert.equal(below({ pointed: "gpu0 77", chosen: "gpu0 3" }), "3");
  assert.equal(below({}), "4");
});

test("what is chosen is said, not only coloured", () => {
  const text = html(system(device([block(1), block(2)])), { chosen: "gpu0 2", selection: "lab/gpu0/context" });
  assert.match(text, /aria-selected="true"[^>]*data-key="gpu0 2"/);
  assert.match(text, /> \(chosen\)</);
  assert.match(text, /<strong aria-current="true">gpu0</);
});

test("names and kinds are shown as text, whatever they contain", () => {
  const state = system(device([block(1, { owner: "<img src=x> #1", what: "<b>", kept: ["<script>"] })], { name: '"><i>' }));
  assert.doesNotMatch(html({ ...state, said: "<u>" }, { said: "<u>" }), /<img|<b>|<script|<i>|<u>/);
});
