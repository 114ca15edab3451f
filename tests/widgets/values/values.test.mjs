import assert from "node:assert/strict";
import { test } from "node:test";

import { html } from "../../../widgets/values/values.js";

const curve = { looks: [1, 2], least: [-2, 0], most: [2, 0], mean: [0, 0], levels: ["1090", "9"], bad: [0, 3] };
const series = (more = {}) => ({ name: "w", device: "cpu0", array: "float32[4]", look: 2, at: 1, least: "0", mean: "0", most: "0", counts: [4], curve, ...more });
const state = (...all) => ({ lab: "lab", series: all, closed: false });

test("without a look it says how to look, and of the past that there was none", () => {
  assert.match(html(null), /Waiting for the first look/);
  assert.match(html(state()), /Nothing was looked at\. lab\.observe/);
  assert.match(html({ ...state(), past: true }), /Nothing was looked at then/);
});

test("a column a look, in shades, with marks where something was not finite", () => {
  const text = html(state(series({ nans: 3 })));
  assert.match(text, /Histograms over looks 1 to 2: -2 to 2; some saw NaN or Inf/);
  assert.match(text, /al-values-shade-0" d="M0\.0 88\.9h300\.00v29\.63h-300\.00z"/);
  assert.match(text, /al-values-shade-3" d="M0\.0 29\.6h300\.00v29\.63h-300\.00zM300\.0 59\.3h300\.00v1\.50h-300\.00z"/);
  assert.match(text, /data-look="2" style="left: 75\.00%" title="Look 2: 3 NaN or Inf"/);
  assert.match(text, /NaN or Inf in 1/);
  assert.match(text, /Newest histogram, 0 to 0: 4/);
  assert.doesNotMatch(text, /undefined|NaN%|Infinity/);
});

test("a series without a finite number, and a range as wide as numbers go, are drawn", () => {
  const none = { looks: [1], least: [null], most: [null], mean: [null], levels: [""], bad: [4] };
  const text = html(state(series({ least: undefined, mean: undefined, most: undefined, counts: [], infs: 4, curve: none })));
  assert.match(text, /none finite/);
  assert.doesNotMatch(text, /undefined|Infinity|d="[^"]*NaN/);
  const wide = { ...curve, least: [-1.7e308, 0], most: [1.7e308, 0] };
  assert.doesNotMatch(html(state(series({ curve: wide }))), /d="[^"]*(NaN|Infinity)/);
});
