import assert from "node:assert/strict";
import { test } from "node:test";

import { html } from "../../widgets/kernels/kernels.js";
import { kernelCells, kernelCellsText, kernelCsv, kernelRest, kernelRows } from "../../widgets/kernels/rows.js";

const AT = 1_700_000_000.25;
const kernel = (name, more = {}) => ({ name, device: "gpu0", stream: "blas", kind: "kernel", calls: 2, total: 0.5, longest: 0.3, last: AT, ...more });
const state = (kernels, more = {}) => ({ lab: "lab", devices: ["gpu0", "gpu1"], kernels, untraced: 0, closed: false, ...more });
const view = (more = {}) => ({ search: "", device: "", by: "total", order: "descending", ...more });
const names = (rows) => rows.map(({ row }) => row.name);

const THREE = state([
  kernel("gemm", { calls: 4, total: 1, longest: 0.5, last: AT, cells: [[3, 7], [12, 12]] }),
  kernel("axpy", { calls: 10, total: 0.5, longest: 0.1, last: AT + 1, cells: [[13, 13]] }),
  kernel("double", { device: "gpu1", stream: "run", kind: "function", calls: 1, total: 2.5, longest: 2.5, last: AT - 1 }),
]);

test("rows are sorted by each column, both ways, and equal ones by name", () => {
  const sorted = (by, order) => names(kernelRows(THREE, view({ by, order })));
  assert.deepEqual(sorted("total", "descending"), ["double", "gemm", "axpy"]);
  assert.deepEqual(sorted("name", "ascending"), ["axpy", "double", "gemm"]);
  assert.deepEqual(sorted("on", "ascending"), ["axpy", "gemm", "double"]);
  assert.deepEqual(sorted("calls", "ascending"), ["double", "gemm", "axpy"]);
  assert.deepEqual(sorted("mean", "descending"), ["double", "gemm", "axpy"]);
  assert.deepEqual(sorted("longest", "ascending"), ["axpy", "gemm", "double"]);
  assert.deepEqual(sorted("share", "descending"), ["double", "gemm", "axpy"]);
  assert.deepEqual(sorted("last", "descending"), ["axpy", "gemm", "double"]);
  assert.deepEqual(sorted("cells", "descending"), ["axpy", "gemm", "double"]);
});

test("what runs now ran last of all, and what has no call has no mean and no share", () => {
  const rows = kernelRows(state([kernel("old"), kernel("new", { calls: 0, total: 0, longest: 0, last: undefined, running: AT - 5 })]), view({ by: "last" }));
  assert.deepEqual(names(rows), ["new", "old"]);
  assert.deepEqual(rows.map(({ mean, share }) => [mean, share]), [[null, null], [0.25, 1]]);
});

test("shares are of what is shown of a device, whatever is searched for", () => {
  assert.deepEqual(kernelRows(THREE, view()).map(({ share }) => share), [0.625, 0.25, 0.125]);
  assert.deepEqual(kernelRows(THREE, view({ device: "gpu0" })).map(({ share }) => share), [2 / 3, 1 / 3]);
  assert.deepEqual(kernelRows(THREE, view({ search: "gem" })).map(({ row, share }) => [row.name, share]), [["gemm", 0.25]]);
});

test("a search finds words of the name, of the device and of the stream, in any case", () => {
  assert.deepEqual(names(kernelRows(THREE, view({ search: "GEMM" }))), ["gemm"]);
  assert.deepEqual(names(kernelRows(THREE, view({ search: "gpu0 x" }))), ["axpy"]);
  assert.deepEqual(names(kernelRows(THREE, view({ search: " run " }))), ["double"]);
  assert.deepEqual(kernelRows(THREE, view({ search: "nothing" })), []);
  assert.deepEqual(kernelRows(null, view()), []);
});

test("the numbers of cells are told one by one for others, and in short for people", () => {
  assert.deepEqual(kernelCells(THREE.kernels[0]), [3, 4, 5, 6, 7, 12]);
  assert.equal(kernelCellsText(THREE.kernels[0]), "3–7, 12");
  assert.equal(kernelCellsText({ cells: [[4, 4]], earlier: true }), "…, 4");
  assert.deepEqual(kernelCells({}), []);
});

test("those that have no row of their own are one, whose share counts", () => {
  const many = state([kernel("gemm", { total: 3 })], { rest: { kinds: 37, calls: 50, total: 1, longest: 0.1, last: AT } });
  assert.equal(kernelRows(many, view())[0].share, 0.75);
  const rest = kernelRest(many);
  assert.deepEqual([rest.row.name, rest.row.calls, rest.share, rest.mean], ["37 more", 50, 0.25, 0.02]);
  assert.equal(kernelRest(THREE), null);
  const text = html(many);
  assert.match(text, /38 kernels · 4 s/);
  assert.match(text, /The 37 kernels that took the least are one row\./);
  assert.match(html(many, { search: "gemm" }), /are one row, of all devices; they are not searched\./);
});

test("rows are copied as CSV: seconds, moments in UTC, and quotes where they must be", () => {
  const rows = kernelRows(state([kernel('f<a, "b">', { lost: 1, cells: [[3, 7], [12, 12]], last: AT })]), view());
  assert.equal(
    kernelCsv(rows),
    'kernel,device,stream,kind,calls,total_s,mean_s,max_s,share,last_run,ended_with_context,cells\r\n"f<a, ""b"">",gpu0,blas,kernel,2,0.5,0.25,0.3,1,2023-11-14T22:13:20.250Z,1,"3-7, 12"\r\n',
  );
});

test("each head says how rows are sorted, and each row has its colour, which is the name's", () => {
  const text = html(THREE);
  assert.equal(text.match(/aria-sort="none"/g).length, 8);
  assert.match(text, /al-kernels-total[^>]*aria-sort="descending"/);
  assert.match(text, /background: var\(--al-work-\d\)/);
  const [, colour] = text.match(/background: (var\(--al-work-\d\))" aria-hidden="true"><\/span><span class="al-kernels-what">gemm/);
  assert.match(html(state([kernel("gemm", { device: "gpu7" })])), new RegExp(colour.replace(/[()]/g, "\\$&")));
});

test("a choice of the table is one row, another view's is every row of that name", () => {
  const both = state([kernel("gemm"), kernel("gemm", { device: "gpu1" })]);
  const selected = (more) => (html(both, more).match(/aria-selected="true"/g) ?? []).length;
  assert.equal(selected({}), 0);
  assert.equal(selected({ kernel: { name: "gemm", cells: [] } }), 2);
  assert.equal(selected({ kernel: { name: "gemm", cells: [] }, chosen: "gpu1/blas kernel gemm" }), 1);
  assert.match(html(both, { kernel: { name: "gemm", cells: [] } }), /Clear the selection of gemm/);
});

test("what is not known is said", () => {
  assert.match(html(null), /Waiting for the first state\./);
  assert.match(html(state([])), /No work was traced yet\./);
  assert.match(html(state([], { closed: true })), /The system was closed before any work was traced\./);
  assert.match(html(state([], { unrecorded: "nobody has looked at the work" })), /Not recorded: nobody has looked at the work\./);
  assert.match(html(THREE, { search: "zzz" }), /No kernel matches “zzz”\./);
  assert.match(html(THREE, { device: "gpu2" }), /No kernel ran on gpu2\./);
  const text = html({ ...THREE, untraced: 12_345, forgotten: 1, unrecorded: "work was first looked at 12:00:00.000" });
  assert.match(text, /12k messages were not traced: calls and times are those of the others\./);
  assert.match(text, /1 earlier slice was forgotten before anything was counted\./);
  assert.match(text, /The rest is not recorded: work was first looked at 12:00:00\.000\./);
});

test("what runs and what ended with its context have a sign and a word", () => {
  const text = html(state([kernel("spin", { calls: 0, total: 0, longest: 0, last: undefined, running: AT, lost: 2 })]));
  assert.match(text, /al-icon-play.*running/);
  assert.match(text, /title="2 ended with their context".*2 lost/);
});

test("names are shown as text, whatever they contain", () => {
  const text = html(state([kernel("<img src=x onerror=alert(1)>")]));
  assert.doesNotMatch(text, /<img/);
});
