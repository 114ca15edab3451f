import assert from "node:assert/strict";
import { test } from "node:test";

import { html } from "../../../widgets/training/training.js";

const curve = (more = {}) => ({ steps: [1, 2, 3], loss: [3, 2, 1], rate: [0.1, 0.1, 0.1], ...more });
const run = (more = {}) => ({
  name: "Trainer",
  step: 3,
  at: 1,
  loss: "1",
  rate: "0.1",
  took: "40 ms",
  mean_of: 3,
  curve: curve(),
  ranks: [
    { device: "cpu0", seconds: [0.03, 0.01, 0], words: ["30 ms", "10 ms", "0.0 ms"] },
    { device: "cpu1", seconds: [0.01, 0.01, 0.02], words: ["10 ms", "10 ms", "20 ms"] },
  ],
  ...more,
});
const state = (...runs) => ({ lab: "lab", runs, closed: false });
const times = (text, part) => text.split(part).length - 1;

test("without a step it says how to train, and of the past that there was none", () => {
  assert.match(html(null), /Waiting for the first look/);
  assert.match(html(state()), /No step was trained\. train\.Trainer/);
  assert.match(html({ ...state(), past: true }), /No step was seen then/);
});

test("curves go from the first step to the last, and are absent where nothing is known", () => {
  const text = html(state(run()));
  assert.match(text, /data-chart="loss".*?Loss over steps 1 to 3: 3 at first, 1 now, 1 to 3/);
  assert.match(text, /d="M3\.0 3\.0h0L300\.0 50\.0L597\.0 97\.0"/);
  assert.doesNotMatch(text, /data-chart="norm"|undefined|NaN|<ol|a second/);
  assert.match(html(state(run({ norm: "1.5", curve: curve({ norm: [1, null, 1.5] }) }))), /data-chart="norm".*?d="M3\.0 97\.0h0M597\.0 3\.0h0"/);
});

test("one step alone, and a loss that is not finite, are drawn", () => {
  const one = html(state(run({ curve: { steps: [7], loss: [2], rate: [0.1] } })));
  assert.match(one, /d="M597\.0 50\.0h0"/);
  const { loss, ...rest } = run({ curve: curve({ loss: [3, null, null] }) });
  assert.match(html(state(rest)), /3 at first, not finite now/);
  assert.doesNotMatch(html(state(run({ curve: curve({ loss: [null, null, null] }) }))), /data-chart="loss"|Infinity/);
});

test("a rank's bar is its parts of the longest step", () => {
  const text = html(state(run({ speed: ["1,500", "rows"] })));
  assert.match(text, /Rows a second<\/dt><dd>1,500/);
  const bar = (device) => text.split(`data-rank="${device}"`)[1].split("</tr>")[0];
  assert.match(bar("cpu0"), /computing" style="width: 75\.00%".*exchanging" style="width: 25\.00%".*waiting" style="width: 0\.00%"/);
  assert.match(bar("cpu1"), /waiting" style="width: 50\.00%".*>20 ms</);
});

test("a restart is marked in the curve, counted, and told; nothing of it is markup", () => {
  const restarts = [{ at: 1, step: 2, why: ["cpu1 lost its context", "<b>"], again: 3 }, { at: 0, step: 9, why: ["x"] }];
  const text = html(state(run({ restarts })));
  assert.equal(times(text, 'class="al-training-mark"'), 1); // the other one is not on the curve
  assert.match(text, /data-step="2" style="left: clamp\(6px, 50\.00%/);
  assert.match(text, /step 2 done again, and 2 before it/);
  assert.match(text, /2 restarts/);
  assert.match(text, /&#60;b&#62;/);
});
