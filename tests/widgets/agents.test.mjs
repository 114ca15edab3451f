import assert from "node:assert/strict";
import { test } from "node:test";

import { html } from "../../widgets/agents/agents.js";
import { agentEdgeWords, agentNodeWords } from "../../widgets/agents/draw.js";

const node = (name, more = {}) => ({ name, x: 80, y: 40, width: 148, height: 46, ...more });
const edge = (from, to, more = {}) => ({ from, to, path: "M0.0,0.0C0.0,1.0 0.0,1.0 0.0,2.0", end: [0, 2], label: [0, 1], ...more });
const agent = (nodes, edges, more = {}) => ({ name: "agent", state: "running", waiting: 0, running: 0, answered: 0, width: 160, height: 200, nodes, edges, ...more });
const state = (...agents) => ({ lab: "lab", agents, closed: false });

test("without an agent it says how to make one", () => {
  assert.match(html(null), /Waiting for the first look/);
  assert.match(html(state()), /No graph was made\. GraphAgent/);
  assert.match(html({ ...state(), past: true }), /No graph was seen then/);
});

test("a node that runs, one that failed, and the ends look otherwise", () => {
  const text = html(state(agent([node("START"), node("a", { running: 2, failed: 1 }), node("b", { failed: 1 }), node("c", { done: 12345 }), node("END")], [])));
  assert.match(text, /al-agents-node al-agents-end" data-node="START"/);
  assert.match(text, /al-agents-node al-agents-running" data-node="a".*2 running, 1 failed/);
  assert.match(text, /al-agents-node al-agents-failed" data-node="b"/);
  assert.match(text, /al-agents-node al-agents-idle" data-node="c".*12k done/);
  assert.match(text, /<svg class="al-agents-graph"[^>]*aria-hidden="true"/);
});

test("an edge says how often it was taken, whether a function chooses it, and whether it joins", () => {
  const edges = [edge("a", "b", { taken: 3, chosen: true }), edge("b", "a", { back: true }), edge("c", "b", { joins: true })];
  const text = html(state(agent([node("a"), node("b"), node("c")], edges)));
  assert.match(text, /al-agents-edge al-agents-chosen al-agents-taken" data-from="a" data-to="b"/);
  assert.match(text, /points="0,2 7,-2 7,6"/);
  assert.match(text, /maybe b<.*b with others</);
  assert.deepEqual([agentEdgeWords({ joins: true, taken: 2 }), agentEdgeWords({})], ["all 2", ""]);
  assert.equal(agentNodeWords({ done: 1 }), "1 done");
});

test("a long name is cut in the drawing and whole in the table, and none is markup", () => {
  const name = "<a node with a very long name>";
  const text = html(state(agent([node(name)], [], { steps: [{ at: 1, run: 7, node: name }] })));
  assert.match(text, />&#60;a node with a very…</);
  assert.match(text, /scope="row">&#60;a node with a very long name&#62;/);
  assert.match(text, /run 7/);
});
