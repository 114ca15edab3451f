import assert from "node:assert/strict";
import { test } from "node:test";

import { timelineSave } from "../../../widgets/timeline/trace.js";
import { CASE, Timeline } from "./case.mjs";

/** As much of a page as saves a file, and what it was told. */
function savingPage() {
  const told = { saved: [], revoked: [], later: [] };
  class Blob {
    constructor(parts, { type }) {
      this.text = parts.join("");
      this.type = type;
    }
  }
  const blobs = [];
  const URL = { createObjectURL: (blob) => `blob:${blobs.push(blob)}`, revokeObjectURL: (url) => told.revoked.push(url) };
  const createElement = (tag) => ({
    click() {
      told.saved.push({ tag, name: this.download, url: this.href, blob: blobs.at(-1) });
    },
  });
  return { told, createElement, defaultView: { Blob, URL, setTimeout: (call) => told.later.push(call) } };
}

test("the trace is saved under the system's name, and what held it is given back later", () => {
  const page = savingPage();
  const { state, ring } = new Timeline().look();
  timelineSave(page, state, ring);
  const [{ tag, name, url, blob }] = page.told.saved;
  assert.deepEqual([tag, name, url, blob.type], ["a", "lab-timeline.json", "blob:1", "application/json"]);
  assert.deepEqual(JSON.parse(blob.text), CASE.trace);
  assert.deepEqual(page.told.revoked, []);
  page.told.later.forEach((call) => call());
  assert.deepEqual(page.told.revoked, ["blob:1"]);
});

test("the trace of a system without a name has the package's", () => {
  const page = savingPage();
  const { state, ring } = new Timeline({ name: "" }).look();
  timelineSave(page, state, ring);
  assert.equal(page.told.saved[0].name, "accel_lab-timeline.json");
});
