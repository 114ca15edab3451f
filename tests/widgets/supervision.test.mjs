import assert from "node:assert/strict";
import { test } from "node:test";

import { html } from "../../widgets/supervision/supervision.js";
import { FaultSpeaker, feedActor, feedCause, feedGenerations, feedRows, feedSummary, feedUnshown, openCircuits, outcomeLook } from "../../widgets/supervision/rows.js";

const AT = 1_700_000_000.25;

function row(n, more = {}) {
  return { n, at: AT + n, path: "gpu0", device: "gpu0", level: "fault", what: "context lost", outcome: "recovered", cause: "its process ended with SIGKILL", name: "SIGKILL", decisions: ["restart"], before: 1, after: 2, took: "33 ms", steps: [[AT, "generation 1 → 2"], [AT, "context lost"]], ...more };
}

const note = (n, more = {}) => ({ n, at: AT + n, path: "gpu1", device: "gpu1", level: "note", what: "context started", outcome: "started", after: 1, steps: [[AT, "process 7 started"]], ...more });
const view = (more = {}) => ({ faultsOnly: false, device: "", open: new Set(), ...more });
const state = (rows, more = {}) => ({ lab: "lab", rows, devices: [{ name: "gpu0", state: "running" }, { name: "gpu1", state: "running" }], closed: false, ...more });
const paths = (list) => list.map((line) => line.path);

test("the newest incident comes first, and a filter lets through what it names", () => {
  const rows = [note(0), row(1), row(2, { device: "gpu1", path: "gpu1/context/blas" })];
  assert.deepEqual(paths(feedRows(rows, view())), ["2", "1", "0"]);
  assert.deepEqual(paths(feedRows(rows, view({ faultsOnly: true }))), ["2", "1"]);
  assert.deepEqual(paths(feedRows(rows, view({ device: "gpu1" }))), ["2", "0"]);
  assert.deepEqual(feedRows(undefined, view()), []);
});

test("an unfolded incident says its whole cause and then its steps", () => {
  const list = feedRows([row(1)], view({ open: new Set(["1"]) }));
  assert.deepEqual(list.map(({ level, text }) => [level, text]), [[1, undefined], [2, "its process ended with SIGKILL"], [2, "generation 1 → 2"], [2, "context lost"]]);
  assert.deepEqual(list.map(({ position, size }) => [position, size]), [[1, 1], [1, 3], [2, 3], [3, 3]]);
});

test("steps that were left out are counted where they were", () => {
  const list = feedRows([row(1, { cause: "", name: "", skipped: 5 })], view({ open: new Set(["1"]) }));
  assert.deepEqual(list.slice(1).map(({ text }) => text), ["generation 1 → 2", "5 steps are not shown", "context lost"]);
});

test("a cause names its code once", () => {
  assert.equal(feedCause({ name: "SIGKILL", cause: "its process ended with SIGKILL" }), "its process ended with SIGKILL");
  assert.equal(feedCause({ name: "CUDA_ERROR_X", code: 700, cause: "a kernel failed" }), "CUDA_ERROR_X (700): a kernel failed");
  assert.equal(feedCause({ name: "OutOfMemory" }), "OutOfMemory");
  assert.equal(feedCause({}), "");
  const told = { name: "CUDA_ERROR_X", code: 700 };
  assert.equal(feedCause({ ...told, cause: "CUDA_ERROR_X: a kernel failed" }), "CUDA_ERROR_X (700): a kernel failed");
  assert.equal(feedCause({ ...told, cause: "CUDA_ERROR_X (700), injected" }), "CUDA_ERROR_X (700): injected");
});

test("the driver's code and the decision stand whole in a row", () => {
  const text = html(state([row(1, { name: "CUDA_ERROR_ILLEGAL_ADDRESS", code: 700, cause: "CUDA_ERROR_ILLEGAL_ADDRESS: a kernel", decisions: ["restart after 100 ms", "rebuilt 6 buffers"] })]));
  assert.match(text, /al-supervision-code">CUDA_ERROR_ILLEGAL_ADDRESS \(700\)<\/span>: a kernel</);
  assert.match(text, /al-supervision-decision">restart after 100 ms · rebuilt 6 buffers</);
});

test("a fault on purpose asks first, and says what it will do and what that costs", () => {
  const acting = { acts: true, faults: ["kill"], devices: [{ name: "cpu0", state: "running", arrays: 6 }, { name: "cpu1", state: "running" }] };
  const asks = (fault, device, more = {}) => html(state([], { ...acting, ...more }), { confirm: { fault, device } });
  assert.match(asks("kill", "cpu0"), /role="group" aria-label="Inject a fault\? This will kill cpu0's process; 6 arrays will be rebuilt\."/);
  assert.match(asks("kill", "cpu0"), /data-do="cancel">Cancel<.*data-do="confirm">Inject kill</);
  assert.doesNotMatch(asks("kill", "cpu0"), /data-do="inject"/);
  assert.match(asks("kill", "cpu1"), /its arrays will be rebuilt/);
  assert.match(asks("kill", "cpu0", { stale: true }), /6 arrays will be lost/);
  assert.match(asks("kill", "cpu0", { devices: [{ name: "cpu0", state: "running", arrays: 0 }] }), /it holds no arrays/);
  assert.match(asks("library", "cpu0"), /have a library call on cpu0 fail; nothing is lost/);
  assert.doesNotMatch(html(state([], { ...acting, acts: false }), { confirm: { fault: "kill", device: "cpu0" } }), /data-do="confirm"/);
});

test("a row names its actor and its generations", () => {
  assert.equal(feedActor({ path: "gpu0/context/blas" }), "gpu0/blas");
  assert.equal(feedGenerations({ before: 1, after: 2 }), "g1 → g2");
  assert.equal(feedGenerations({ after: 1 }), "g1");
  assert.equal(feedGenerations({}), "");
});

test("what is not shown is said", () => {
  assert.equal(feedUnshown({}), "");
  assert.equal(feedUnshown({ older: { fault: 2, note: 10 }, forgotten: 40 }), "12 older ones are not shown. 40 facts before that are forgotten.");
  assert.equal(feedUnshown({ older: { note: 1 } }), "1 older one is not shown.");
});

test("every outcome has a look, and a fault that ends with a stop has another than a note", () => {
  assert.equal(outcomeLook(row(1)).tone, "ok");
  assert.equal(outcomeLook({ outcome: "stopped", level: "fault" }).tone, "bad");
  assert.equal(outcomeLook({ outcome: "stopped", level: "note" }).tone, "off");
  assert.equal(outcomeLook({ outcome: "unheard of", level: "fault" }).tone, "warn");
});

test("totals count faults and those that are not over", () => {
  const rows = [note(0), row(1), row(2, { outcome: "circuit open" }), row(3, { outcome: "recovering" })];
  assert.deepEqual(feedSummary({ rows }), { faults: 3, open: 2 });
  assert.deepEqual(feedSummary({ rows, older: { fault: 16, note: 2 } }), { faults: 19, open: 2 });
  assert.deepEqual(openCircuits({ devices: [{ name: "gpu0", state: "circuit open" }, { name: "gpu1", state: "running" }] }), ["gpu0"]);
});

test("old faults are not said, a new one is said once, with its recovery", () => {
  const speaker = new FaultSpeaker();
  speaker.take([row(1)], 0);
  assert.equal(speaker.say([row(1)], 10), "");
  speaker.take([row(1), note(2), row(3, { outcome: "recovering" })], 10);
  const rows = [row(1), note(2), row(3)];
  assert.equal(speaker.say(rows, 10.1), "", "it waits for the recovery");
  speaker.take(rows, 10.2);
  assert.equal(speaker.say(rows, 11), "gpu0: context lost, its process ended with SIGKILL, recovered in 33 ms");
  assert.equal(speaker.say(rows, 20), "");
});

test("a note that turns out to be a fault is said", () => {
  const speaker = new FaultSpeaker();
  speaker.take([], 0);
  speaker.take([note(3, { what: "process ended", outcome: "ended" })], 1);
  speaker.take([row(3)], 1.1);
  assert.match(speaker.say([row(3)], 2), /^gpu0: context lost/);
});

test("a storm of faults is said in one sentence, and not again at once", () => {
  const speaker = new FaultSpeaker();
  speaker.take([], 0);
  const storm = Array.from({ length: 50 }, (_, i) => row(i + 1, { outcome: "failed", cause: "", name: "" }));
  speaker.take(storm, 1);
  assert.equal(speaker.say(storm, 2), "gpu0: context lost, failed; gpu0: context lost, failed; and 48 more faults");
  speaker.take([...storm, row(51)], 2.1);
  assert.equal(speaker.say([...storm, row(51)], 4), "");
  assert.notEqual(speaker.say([...storm, row(51)], 6.1), "");
});

test("buttons are there only where they act", () => {
  const open = { devices: [{ name: "gpu0", state: "circuit open" }], faults: ["kill", "hang"] };
  const acting = html(state([row(1)], { ...open, acts: true }));
  assert.match(acting, /data-do="inject"/);
  assert.match(acting, /data-do="reset" data-device="gpu0"/);
  assert.doesNotMatch(acting, /Injecting/);
  const asked = (...asked) => html(state([], { ...open, acts: true, asked }));
  assert.match(asked("hang on gpu0", "kill on gpu0"), /role="status">Injecting hang on gpu0, kill on gpu0…</);
  assert.match(asked(..."abcd"), />Injecting 4 faults…</);
  const watching = html(state([row(1)], open));
  assert.doesNotMatch(watching, /data-do="(inject|reset)"/);
  assert.match(watching, /gpu0: circuit open/);
});

test("nothing to show says so, and so does a state that has not come", () => {
  assert.match(html(null), /Waiting for the first state\./);
  assert.match(html(state([])), /Nothing has happened so far\./);
  assert.match(html(state([note(0)]), { faultsOnly: true, device: "gpu1" }), /No faults on gpu1 so far\./);
  assert.match(html(state([], { closed: true })), /closed · last state/);
});

test("what a fault says is text, whatever it holds", () => {
  const text = html(state([row(1, { cause: "<img src=x onerror=alert(1)>", path: "<b>" })]), { open: new Set(["1"]) });
  assert.doesNotMatch(text, /<img|<b>/);
});
