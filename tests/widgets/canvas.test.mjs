import assert from "node:assert/strict";
import { test } from "node:test";

import { html } from "../../widgets/canvas/canvas.js";
import { canvasIsLost, canvasNumber } from "../../widgets/canvas/draw.js";

const state = (more = {}) => ({
  lab: "lab",
  title: "fluid",
  device: "gpu0",
  state: "running",
  generation: 1,
  playing: true,
  rate: 29.6,
  frame: 3,
  painted: 1,
  steps: 1200,
  size: [4, 6],
  measures: [["dye", 0.25]],
  controls: [
    { name: "lift", low: -1, high: 1, value: 0.5 },
    { name: "show", low: 0, high: 1, value: 1, choices: ["dye", "speed"] },
  ],
  closed: false,
  ...more,
});

test("a header says what, where, how far and how fast", () => {
  const text = html(state());
  for (const words of ["fluid", "lab/gpu0", "step 1,200", "30 pictures/s"]) assert.match(text, new RegExp(words));
  assert.doesNotMatch(text, /generation/);
  assert.match(html(state({ generation: 2, painted: 2 })), /generation 2/);
});

test("each control is a slider or a choice, and none can be moved once it is closed", () => {
  const text = html(state());
  assert.match(text, /<input type="range" min="-1" max="1" step="0.01" value="0.5" data-control="lift">/);
  assert.match(text, /<option value="1" selected="">speed<\/option>/);
  assert.match(html(state({ closed: true })), /data-control="lift" disabled=""/);
});

test("it offers to play what stands still", () => {
  assert.match(html(state()), /data-do="pause"/);
  assert.match(html(state({ playing: false })), /data-do="play"/);
});

test("it offers to record, and says how far a film is or why there is none", () => {
  assert.match(html(state()), /data-do="record"/);
  const film = { running: true, told: "fluid.gif: 34 pictures, 1.4 s", failed: false };
  const running = html(state({ film }));
  assert.match(running, /data-do="stop"/);
  assert.doesNotMatch(running, /data-do="record"/);
  assert.match(running, /al-canvas-recording.*recording fluid\.gif: 34 pictures/s);
  const done = html(state({ film: { ...film, running: false } }));
  assert.match(done, /data-do="record"/);
  assert.doesNotMatch(done, /recording|al-warn/);
  assert.match(html(state({ film: { running: false, told: "<none>", failed: true } })), /al-warn.*&#60;none&#62;/s);
});

test("who looks on is offered nothing to press or to move", () => {
  const text = html(state({ looks_on: true }));
  assert.doesNotMatch(text, /data-do/);
  assert.match(text, /data-control="lift" disabled=""/);
  assert.match(text, /data-control="show" disabled=""/);
});

test("a picture is of a lost context until there is one of the next", () => {
  assert.equal(canvasIsLost(state()), false);
  assert.equal(canvasIsLost(state({ state: "restarting" })), true);
  assert.equal(canvasIsLost(state({ generation: 2 })), true);
  assert.equal(canvasIsLost(state({ generation: 2, painted: 2 })), false);
  assert.equal(canvasIsLost(state({ state: "stopped", closed: true })), false);
  assert.equal(canvasIsLost(null), false);
  assert.match(html(state({ generation: 2 })), /rebuilding/);
});

test("numbers are short, and a problem is said", () => {
  assert.deepEqual([0, 0.123456, 12345.678, 1234567, 0.00001234, -2.5].map(canvasNumber), ["0", "0.1235", "12350", "1.23e+6", "1.23e-5", "-2.5"]);
  assert.match(html(state({ problem: "CircuitOpen: <no>" })), /CircuitOpen: &#60;no&#62;/);
  assert.match(html(null), /Waiting for the first picture/);
});
