// What is around the picture of a simulation, as plain nodes: a header, buttons, sliders, measures.

import { h } from "../shared/dom.js";
import { freshBadge } from "../shared/fresh_badge.js";
import { icon } from "../shared/icons.js";

const SLIDER_STEPS = 200;

/** What only this page knows. */
export function canvasView() {
  return { stale: null };
}

/** Whether the picture is of a context that is no more. */
export function canvasIsLost(state) {
  return Boolean(state) && !state.closed && state.frame > 0 && (state.state !== "running" || state.generation !== state.painted);
}

/** The header, of `state` (null before the first one). */
export function drawCanvasHead(state, view) {
  return [
    h(
      "div",
      { key: "header", class: "al-header" },
      h("span", { class: "al-title" }, icon("device", 14), h("strong", {}, state?.title || "simulation"), state && h("span", { class: "al-muted" }, `${state.lab}/${state.device}`)),
      h(
        "span",
        { class: "al-chips" },
        state && h("span", { key: "steps", class: "al-chip al-off" }, `step ${state.steps.toLocaleString("en")}`),
        state?.playing && !state.closed && h("span", { key: "rate", class: "al-chip al-off" }, `${Math.round(state.rate)} pictures/s`),
        state?.generation > 1 && h("span", { key: "generation", class: "al-chip al-off" }, `generation ${state.generation}`),
        canvasIsLost(state) && h("span", { key: "lost", class: "al-chip al-warn" }, icon("restarting", 12), canvasWord(state)),
      ),
      freshBadge(state, view.stale),
    ),
  ];
}

/** What is said over a picture that is of a context that is no more. */
export function canvasWord(state) {
  return state.state === "running" ? "rebuilding" : state.state;
}

/** The buttons, sliders and measures below the picture. */
export function drawCanvasPanel(state) {
  if (!state) return [h("p", { key: "note", class: "al-canvas-note" }, "Waiting for the first picture.")];
  const off = state.closed || Boolean(state.looks_on);
  return [
    state.looks_on ||
      h(
        "div",
        { key: "buttons", class: "al-canvas-buttons", role: "group", "aria-label": "Playing" },
        canvasButton(state.playing ? "pause" : "play", state.playing ? "Pause" : "Play", off),
        canvasButton("step", "Step", off),
        state.film?.running ? canvasButton("stop", "Stop recording", off) : canvasButton("record", "Record", off),
      ),
    h("div", { key: "controls", class: "al-canvas-controls" }, state.controls.map((one) => canvasControl(one, off))),
    h("div", { key: "measures", class: "al-canvas-measures" }, state.measures.map(([name, value]) => h("div", { key: name }, h("span", { class: "al-muted" }, name), h("span", {}, canvasNumber(value))))),
    state.film && canvasFilm(state.film),
    state.problem && h("p", { key: "problem", class: "al-canvas-problem al-warn" }, icon("warn", 12), state.problem),
  ].filter((one) => one && one !== true);
}

/** What is said of the film that is being recorded, or was the last. */
function canvasFilm({ running, told, failed }) {
  const shape = failed ? "warn" : running ? "record" : "timeline";
  const tone = failed ? " al-warn" : running ? " al-canvas-recording" : " al-off";
  return h("p", { key: "film", class: `al-canvas-film${tone}` }, icon(shape, shape === "timeline" ? 14 : 12), running ? `recording ${told}` : told);
}

const BUTTON_SHAPES = { step: "fold", stop: "stopped" };

function canvasButton(what, words, off) {
  const shape = BUTTON_SHAPES[what] ?? what;
  return h("button", { key: words, class: "al-canvas-button", type: "button", "data-do": what, disabled: off }, icon(shape, 12), words);
}

function canvasControl({ name, low, high, value, choices }, off) {
  const label = h("span", { class: "al-canvas-name" }, name);
  if (choices) {
    const options = choices.map((word, i) => h("option", { key: word, value: i, selected: i === value }, word));
    return h("label", { key: name, class: "al-canvas-control" }, label, h("select", { "data-control": name, disabled: off }, options));
  }
  return h(
    "label",
    { key: name, class: "al-canvas-control" },
    label,
    h("input", { type: "range", min: low, max: high, step: (high - low) / SLIDER_STEPS, value, "data-control": name, disabled: off }),
    h("output", { class: "al-canvas-value" }, canvasNumber(value)),
  );
}

/** A number in few characters. */
export function canvasNumber(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}
