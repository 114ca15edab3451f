// The cells of a session as HTML: what a state says is drawn, and nothing of it as markup.

import assert from "node:assert/strict";
import { test } from "node:test";

import { html } from "../../../widgets/cells/cells.js";

const STATE = {
  name: "lab", path: "/home/me/run.lab", count: 3, position: 2, closed: false, then: "cell 4", now: "cell 9", at: 1e9,
  source: "x = '<b>'", first: "Scal, message 7 to cpu0, which makes x differ", same: ["kept"], new: [], gone: ["old"],
  rows: [
    { name: "x", how: "1 of 3", before: "[1, 2, 3]", after: "[1, 2, 4]", sketch: { wide: 3, high: 1, before: [1, 2, 3], after: [1, null, 4], low: 1, top: 4 } },
    { name: "w", how: "1 of 4", before: "a", after: "b", sketch: { wide: 2, high: 2, before: [0, 1, 2, 3], after: [0, 1, 2, null], low: 0, top: 3 } },
    { name: "n", how: "1 -> 2", before: "1", after: "2" },
  ],
};

test("what differs is drawn, and texts are no markup", () => {
  const text = html(STATE);
  assert.match(text, /3 names changed since/);
  assert.match(text, /x = '&#60;b&#62;'/);
  assert.match(text, /after cell 4/);
  assert.equal(text.match(/al-cells-differs/g).length, 1);
  assert.match(text, /d="M3\.0 87\.0h0M597\.0 3\.0h0"/); // a gap where a value is not finite
  assert.match(text, /<dd><code>1<\/code><\/dd>/);
  assert.match(text, /data-list="same".*kept/);
  assert.doesNotMatch(text, /data-list="new"/);
});

test("before the first state, and without a commit, it says so", () => {
  assert.match(html(null), /Waiting for the first look/);
  assert.match(html({ ...STATE, count: 0, position: undefined, then: undefined, rows: undefined }), /No cell is committed yet/);
  assert.match(html({ ...STATE, then: undefined, rows: undefined, damage: "it is damaged" }), /it is damaged/);
});

test("at the ends a step further is disabled, and while it looks it says so", () => {
  assert.match(html({ ...STATE, position: 3 }), /aria-label="One cell on"[^>]*disabled/);
  assert.match(html(STATE, { asked: 1 }), /looking …/);
  assert.match(html(STATE, { asked: 1 }), /aria-busy="true"/);
});
