import assert from "node:assert/strict";
import { test } from "node:test";

import { toHtml } from "../../widgets/shared/dom.js";
import { VRAM_ROWS, vramDescribe, vramObjectRows, vramDraw, vramRows, vramStrips, vramView } from "../../widgets/vram/draw.js";
import { VramLooks, vramKind, vramName } from "../../widgets/vram/look.js";
import { vramPress } from "../../widgets/vram/mount.js";
import { vramScale } from "../../widgets/vram/scale.js";

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

test("every piece is an option as wide as it is large, and so is a gap before it", () => {
  const text = html(system(device([block(1, { bytes: 4 * MIB }), block(2, { gap: MIB / 8 }), { small: 7, bytes: 2 * MIB }])));
  assert.equal(options(text).length, 3);
  assert.deepEqual(widths(text), [4 * MIB, MIB / 8, MIB, 2 * MIB]);
  assert.match(text, /class="vram-gap" style="flex-grow: 131072" title="gap of 128 KiB: free, or not ours" aria-hidden="true"/);
  assert.match(text, /role="listbox" aria-orientation="horizontal" aria-label="Blocks of gpu0 by address"/);
  assert.match(text, />7 small</);
  assert.match(text, /blocks and gaps are as wide as they are large/);
  assert.doesNotMatch(text, /Not to scale/);
});

test("what cannot be to scale is said: a gap that would leave no room, a block that would not be seen", () => {
  const text = html(system(device([block(1), block(2, { gap: 1024 * MIB }), block(3, { gap: MIB / 8 }), block(4, { bytes: 512 })])), { width: 800 });
  assert.match(text, /class="vram-gap vram-short" title="gap of 1 GiB: free, or not ours; drawn shorter than it is"/);
  assert.deepEqual(widths(text), [MIB, MIB, MIB / 8, MIB, 512]);
  assert.match(text, /Not to scale: 1 block too small for that, drawn 4 px wide\./);
  assert.match(text, /Not to scale: 1 gap cut short at \/\/ \(1 GiB\)\./);
});

test("gaps never take more room than blocks, and small ones keep their scale", () => {
  const gaps = (...sizes) => vramScale(sizes.map((gap, id) => block(id, { gap })), 900);
  assert.equal(gaps(0, MIB, MIB).cut, Infinity);
  const { cut, short, total } = gaps(0, MIB / 4, 100 * MIB, 400 * MIB);
  assert.equal(cut, (4 - 0.25) / 2 * MIB);
  assert.deepEqual(short, [100 * MIB, 400 * MIB]);
  assert.equal(total, 4.25 * MIB);
  assert.deepEqual(vramScale([], 900), { cut: Infinity, total: 0, short: [], tiny: 0 });
});

test("a block is called by the variable that keeps it, else by the message that made it", () => {
  assert.equal(vramName(block(1, { kept: ["weights"] })), "weights");
  assert.equal(vramName(block(1, { kept: ["a", "b", "c[0]"] })), "a +2");
  assert.equal(vramName(block(1)), "Gemm #12");
  const text = html(system(device([block(1, { kept: ["weights"] }), block(2)])));
  assert.match(text, /<span class="vram-label vram-variable" aria-hidden="true">weights</);
  assert.match(text, /<span class="vram-label" aria-hidden="true">Gemm #12</);
  assert.match(text, /<th scope="row" class="vram-named vram-code">.*?>weights</);
});

test("a block says all about itself, and its number is short", () => {
  const made = 2 ** 52 + 2 ** 32 + 12;
  const kept = block(7, { ids: [7, made], kept: ["x", "layers[3]"] });
  assert.equal(vramDescribe(kept, { generation: 2 }), "x, layers[3] · 1 MiB · float32[4, 4] · made by Gemm #12 · generation 2 · buffers 7, f12");
  assert.match(vramDescribe(block(1), { generation: 1, lost: true }), /^no variable found that keeps it · .*generation 1, lost with it/);
  assert.equal(vramDescribe({ small: 3, bytes: 48, unplaced: true }, {}), "3 small blocks · 48 B together · where is not known");
  const text = html({ ...system(device([block(made, { kept: ["x"] })])), acts: true });
  assert.doesNotMatch(text.replaceAll(/data-(key|ids)="[^"]*"/g, ""), /\d{12}/);
});

test("the history shows the peak, the present and faults in words and in a drawing", () => {
  const history = { at: 1000, peak: 4 * MIB, peak_at: 1010, steps: [[0, 25], [10, 100], [12, 50]], faults: [12] };
  const text = html(system(device([block(1)], { history, used: 2 * MIB })), { now: 1060 });
  assert.match(text, /role="img" aria-label="Memory of gpu0 over 60 s: peak 4 MiB \(0\.4 %\) at \d\d:\d\d:\d\d, now 2 MiB, 1 fault"/);
  assert.match(text, /class="vram-line" d="M0\.0 29\.5H100\.0V1\.0H120\.0V20\.0H600"/);
  assert.match(text, /class="vram-fault" style="left: clamp\(6px, 20\.00%, 100% - 6px\)"/);
  assert.match(text, />60 s ago<.*>peak 4 MiB.*>1 fault<.*>now</);
  assert.doesNotMatch(html(system(device([block(1)]))), /vram-history/);
});

test("what the host keeps stands apart from the devices' memory, with its bytes", () => {
  const state = { ...system(device([block(1)], { kept: [["moved from the device for want of room", 8 * MIB]] })), kept: [["kept for recovery", 62 * MIB]] };
  const text = html(state);
  assert.match(text, />On the host, not in device memory<.*>kept for recovery <\/span>62 MiB<.*>gpu0: moved from the device for want of room <\/span>8 MiB</);
  assert.doesNotMatch(html(system(device([block(1)]))), /On the host/);
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

test("a block says of which kind its memory is, in the table and, where that is no pool's, in its sentence", () => {
  const state = system(device([block(1, { memory: "managed" }), block(2, { memory: "pool" }), block(3)]));
  const cells = [...html(state).matchAll(/<td class="vram-memory">(\w*)</g)].map((match) => match[1]);
  assert.deepEqual(cells, ["managed", "pool", ""]);
  assert.match(html(state), /<th scope="col" class="vram-memory">Memory</);
  const [of, pool] = state.devices[0].strip.map((piece) => vramDescribe(piece, { generation: 1 }));
  assert.match(of, /float32\[4, 4\] · managed memory · made by Gemm #12/);
  assert.doesNotMatch(pool, / memory/);
});

test("buttons are there only where they act, on buffers whose handle can be found", () => {
  const state = system(device([block(1, { kept: ["x"] }), block(2)]));
  const deeds = (text) => [...text.matchAll(/data-do="(free|checkpoint)" data-device="(\w+)" data-ids="([\d ]+)"/g)].map((match) => match.slice(1, 4));
  assert.deepEqual(deeds(html(state)), []);
  assert.deepEqual(deeds(html({ ...state, acts: true })), [["free", "gpu0", "1"], ["checkpoint", "gpu0", "1"]]);
  assert.deepEqual(deeds(html({ ...state, acts: true, closed: true })), []);
  assert.match(html({ ...state, acts: true }), /aria-label="Free x of gpu0 \(buffer 1\)" title="[^"]*fails with StaleRef"/);
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
