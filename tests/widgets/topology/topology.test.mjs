import assert from "node:assert/strict";
import { test } from "node:test";

import { html } from "../../../widgets/topology/topology.js";

const cell = (more = {}) => ({ link: "18 NVLink", ...more });
const state = (there, back, more = {}) => ({ lab: "lab", devices: ["gpu0", "gpu1"], rows: [[null, there], [back, null]], islands: [["gpu0", "gpu1"]], closed: false, ...more });

test("without links it says why", () => {
  assert.match(html(null), /Waiting for the first look/);
  assert.match(html({ lab: "", devices: [], closed: false }), /There is no other device/);
  assert.match(html({ lab: "", devices: ["a", "b"], closed: false }), /The links are not known yet/);
  assert.match(html({ lab: "", devices: [], closed: false, past: true }), /Nobody looked at the links then/);
});

test("a cell is the darker the faster, and says all of it in words", () => {
  const text = html(state(cell({ speed: "390 GB/s", share: 1, way: "ipc" }), cell({ speed: "195 GB/s", share: 0.5, way: "staged" }), { measured: "64 MiB" }));
  assert.match(text, /data-from="gpu0" data-to="gpu1" style="--al-topology-share: 42\.0%" title="gpu0 to gpu1: 18 NVLink, 390 GB\/s, by ipc"/);
  assert.match(text, /--al-topology-share: 21\.0%" title="gpu1 to gpu0: 18 NVLink, 195 GB\/s, by staged"/);
  assert.match(text, /1 island: gpu0, gpu1/);
  assert.match(text, /Measured with 64 MiB/);
  assert.doesNotMatch(text, /stale|undefined|NaN/);
});

test("what was not measured, is stale or apart says so", () => {
  const text = html(state(cell({ speed: "1 GB/s", share: 1, stale: true }), { link: "SYS, not reachable", apart: true }, { islands: [["gpu0"], ["gpu1"]], stale: 1 }));
  assert.match(text, /al-topology-stale"[^>]*title="gpu0 to gpu1: 18 NVLink, 1 GB\/s, stale"/);
  assert.match(text, /al-topology-apart"[^>]*title="gpu1 to gpu0: SYS, not reachable"/);
  assert.match(text, /1 stale figure/);
  assert.match(text, /2 islands: gpu0; gpu1/);
  assert.match(html(state(cell(), cell())), /Not measured: lab\.topology\.measure\(\)/);
});
