import assert from "node:assert/strict";
import { test } from "node:test";

import { adaptHost, decode } from "../../../widgets/shared/host.js";

class Model {
  values = { state: 1 };
  listeners = [];
  saved = 0;

  get(name) { return this.values[name]; }
  set(name, value) { this.values[name] = value; }
  save_changes() { this.saved += 1; }
  on(event, callback) { this.listeners.push([event, callback]); }
  off(event, callback) { this.listeners = this.listeners.filter(([e, c]) => e !== event || c !== callback); }
  fire(event, ...args) { for (const [e, c] of this.listeners) if (e === event) c(...args); }
}

test("a listener gets the value, whatever the host passes", () => {
  const model = new Model();
  const seen = [];
  adaptHost({ model }).listen("state", (value) => seen.push(value));
  model.values.state = 2;
  model.fire("change:state", "useless", "arguments");
  assert.deepEqual(seen, [2]);
});

test("close removes every listener and no other", () => {
  const model = new Model();
  const host = adaptHost({ model });
  model.on("change:state", () => {});
  host.listen("state", () => {});
  host.listen("stamp", () => {});
  host.close();
  assert.equal(model.listeners.length, 1);
});

test("set saves at once", () => {
  const model = new Model();
  adaptHost({ model }).set("state", 3);
  assert.equal(model.get("state"), 3);
  assert.equal(model.saved, 1);
});

test("a message leaves through anywidget's model or Panel's view", () => {
  const sent = [];
  const model = new Model();
  adaptHost({ model: Object.assign(new Model(), { send: (m) => sent.push(["anywidget", m]) }) }).send(1);
  adaptHost({ model, view: { model_proxy: { send_msg: (m) => sent.push(["panel", m]) } } }).send(2);
  assert.deepEqual(sent, [["anywidget", 1], ["panel", 2]]);
});

test("bytes become JSON, and no bytes become null", () => {
  const body = new TextEncoder().encode('{"root": "ü"}');
  assert.deepEqual(decode(new DataView(body.buffer)), { root: "ü" });
  assert.equal(decode(new DataView(new ArrayBuffer(0))), null);
  assert.equal(decode(null), null);
});

test("a kernel that restarts or dies is told in words, until the view is closed", () => {
  const connected = new Set();
  const statusChanged = { connect: (slot) => connected.add(slot), disconnect: (slot) => connected.delete(slot) };
  const model = Object.assign(new Model(), { send: () => {}, widget_manager: { kernel: { statusChanged } } });
  const said = [];
  const host = adaptHost({ model });
  host.whenGone((words) => said.push(words));
  for (const status of ["busy", "idle", "restarting", "autorestarting", "dead"]) for (const slot of connected) slot(null, status);
  model.fire("comm_live_update");
  assert.deepEqual(said, ["kernel restarted", "kernel restarted", "kernel died", "kernel restarted"]);
  host.close();
  assert.deepEqual([connected.size, model.listeners.length], [0, 0]);
  const panel = new Model();
  adaptHost({ model: panel, view: {} }).whenGone(() => {});
  assert.equal(panel.listeners.length, 0, "Panel has no such event");
});
