import assert from "node:assert/strict";
import { test } from "node:test";

import { STOPPING_MS, drawSidebar, sidebarStatus, sidebarView } from "../../widgets/sidebar/draw.js";
import { interruptThen } from "../../widgets/sidebar/mount.js";
import { toHtml } from "../../widgets/shared/dom.js";

const GIB = 2 ** 30;
const device = (more = {}) => ({ name: "gpu0", state: "running", detail: "NVIDIA H100", busy: 0, in_flight: 0, waiting: 0, restarts: 0, running: [], used_bytes: GIB, total_bytes: 80 * GIB, ...more });
const state = (...devices) => ({ lab: "lab", devices, faults: ["no faults", "ok"], closed: false });
const html = (drawn, view = {}) => toHtml(...drawSidebar(drawn, { ...sidebarView(), ...view }));
const work = { running: [{ what: "Gemm #5", on: "blas", since: 990 }], in_flight: 3, busy: 1 };

test("before the first state there is a header and nothing to press", () => {
  assert.match(html(null), /waiting/);
  assert.doesNotMatch(html(null), /<button/);
});

test("an idle device says so and has no stop", () => {
  assert.match(html(state(device())), />idle</);
  assert.doesNotMatch(html(state(device())), /data-do/);
  assert.match(html(state(device({ state: "starting" }))), />starting</);
});

test("what runs is named with its stream, for how long, and can be stopped", () => {
  const text = html(state(device(work)), { at: 1000 });
  assert.match(text, /Gemm #5<span class="al-muted"> on blas/);
  assert.match(text, />10 s</);
  assert.match(text, /3 in flight/);
  assert.match(text, /data-do="stop"/);
  assert.match(text, />100 %</);
});

test("a stop that was pressed cannot be pressed again, and becomes a replace", () => {
  const stopped = new Map([["gpu0", 100]]);
  const soon = html(state(device(work)), { stopped, now: 100 + STOPPING_MS - 1 });
  assert.match(soon, /data-do="stop"[^>]*disabled/);
  assert.match(soon, /Stopping…/);
  const later = html(state(device(work)), { stopped, now: 100 + STOPPING_MS });
  assert.match(later, /data-do="replace"/);
  assert.doesNotMatch(later, /disabled/);
});

test("a system that is closed has nothing to stop", () => {
  assert.doesNotMatch(html({ ...state(device(work)), closed: true }), /data-do/);
});

test("names are text, whatever they are", () => {
  const text = html(state(device({ holders: [["<b>x</b>", 2048, "float32[512]"]] })));
  assert.match(text, /&#60;b&#62;x/);
  assert.match(text, />2 KiB</);
});

test("the status bar tells of the first device, and of how many work", () => {
  assert.equal(sidebarStatus(null), "");
  assert.equal(sidebarStatus(state(device({ busy: 0.43 }))), "gpu0 43 % · 1 / 80 GiB");
  assert.match(sidebarStatus(state(device({ busy: 0.43 }), device())), /^2 devices, 1 busy · gpu0 43 %/);
  assert.match(html(state(device({ busy: 0.43 }))), /<\/svg>busy</);
  assert.equal(sidebarStatus(state(device({ busy: null }))), "gpu0 – · 1 / 80 GiB");
  assert.equal(sidebarStatus(state(device(work), device({ name: "gpu1" }))), "2 devices, 1 busy · gpu0 100 % · 1 / 80 GiB");
});

test("a device is stopped after the cell, also if the interrupt fails or is never answered", async () => {
  for (const answer of [Promise.resolve(), Promise.reject(new Error("no server")), new Promise(() => {})]) {
    const seen = [];
    await interruptThen(() => (seen.push("cell"), answer), () => seen.push("device"));
    assert.deepEqual(seen, ["cell", "device"]);
  }
});
