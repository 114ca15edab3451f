// How long cells ran, out of a kernel's messages, and who is told.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Cells } from "../../widgets/labextension/long_cells.js";
import { Notices } from "../../widgets/labextension/notices.js";

const at = (s) => new Date(1_700_000_000_000 + 1000 * s).toISOString();
const said = (request, msg_type, s, content = {}) => ({ header: { msg_type, date: at(s) }, parent_header: { msg_type: "execute_request", msg_id: request }, content });
const cell = (request, from, to, ...between) => [said(request, "status", from, { execution_state: "busy" }), said(request, "execute_input", from, { execution_count: 3 }), ...between, said(request, "status", to, { execution_state: "idle" })];

function ended(...messages) {
  const told = [];
  const cells = new Cells((one) => told.push(one));
  for (const message of messages) cells.hear(message);
  return told;
}

test("a cell is told at its end, with its number and how it ended", () => {
  assert.deepEqual(ended(...cell("a", 10, 75)), [{ number: 3, seconds: 65, outcome: "done" }]);
  assert.equal(ended(...cell("a", 10, 75, said("a", "error", 74, { ename: "ValueError" })))[0].outcome, "failed");
  assert.equal(ended(...cell("a", 10, 75, said("a", "error", 74, { ename: "KeyboardInterrupt" })))[0].outcome, "cancelled");
});

test("what is no cell, or began before the page was there, is not told", () => {
  assert.deepEqual(ended(said("a", "status", 75, { execution_state: "idle" })), []);
  assert.deepEqual(ended({ header: { msg_type: "status", date: at(1) }, parent_header: {}, content: { execution_state: "idle" } }), []);
  const other = { header: { msg_type: "status", date: at(1) }, parent_header: { msg_type: "comm_msg", msg_id: "b" }, content: { execution_state: "idle" } };
  assert.deepEqual(ended(other), []);
});

/** A page with one kernel; `page.run(seconds)` has a cell run for so long. */
function page({ state = "open", composite = {} } = {}) {
  const shown = new Map(); // id of a notice -> [text, type]
  const heard = [];
  const link = { state, kernel: { id: "k", iopubMessage: { connect: (callback) => heard.push(callback) } } };
  const kernels = { all: () => [{ link, name: "a.ipynb", path: "in/a.ipynb" }], listen: () => {} };
  const visited = [];
  const notification = {
    emit: (text, type, { actions }) => {
      const id = `n${shown.size + visited.length}${Math.random()}`;
      shown.set(id, [text, type, actions[0].callback]);
      return id;
    },
    dismiss: (id) => shown.delete(id),
  };
  const settings = { get: (name) => ({ composite: composite[name] }), set: async (name, value) => void (composite[name] = value) };
  const notices = new Notices({ kernels, notification, settings, show: (path) => visited.push(path) });
  const run = (seconds) => cell("r", 0, seconds).forEach((message) => heard.forEach((hear) => hear(null, message)));
  return { run, link, notices, visited, shown: () => [...shown.values()] };
}

test("only a cell of over a minute is told, and the next takes its place", () => {
  const { run, shown, visited } = page();
  run(59);
  assert.deepEqual(shown(), []);
  run(61);
  run(125);
  assert.equal(shown().length, 1);
  const [text, type, show] = shown()[0];
  assert.deepEqual([text, type], ["a.ipynb: cell [3] done after 2 min", "success"]);
  show();
  assert.deepEqual(visited, ["in/a.ipynb"]);
});

test("a kernel without accel_lab, or a switch that is off, has no notice", async () => {
  for (const state of ["absent", "restarted"]) {
    const { run, shown } = page({ state });
    run(600);
    assert.deepEqual(shown(), []);
  }
  const { run, shown, notices } = page({ composite: { notify: true, notifyAfter: 1 } });
  await notices.turn();
  run(600);
  assert.deepEqual(shown(), []);
  await notices.turn();
  run(600);
  assert.equal(shown().length, 1);
});
