// The trainers of a system as plain nodes: of each its figures, its curves, where the time of a step goes on each
// rank, and what was done again.

import { h } from "../shared/dom.js";
import { clockTime, count, plural } from "../shared/format.js";
import { freshBadge } from "../shared/fresh_badge.js";
import { icon } from "../shared/icons.js";
import { trainingChart } from "./chart.js";

/** The parts of a step, as a rank's `seconds` has them: each a word, a class, and what it is. */
const TRAINING_PARTS = [
  ["Computing", "computing", "All else of the step: computing, copies, sending and idle time"],
  ["Communication", "exchanging", "In collectives that all ranks had begun, by the notebook's clock"],
  ["Waiting", "waiting", "In collectives that another rank had not begun, by the notebook's clock"],
];
const TRAINING_LISTED = 8;

/** What only this page knows. */
export function trainingView() {
  return { stale: null };
}

/** Draw `state` (null before the first one) as `view` sees it. */
export function drawTraining(state, view) {
  const runs = state?.runs ?? [];
  return [
    trainingHeader(state, runs, view),
    h(
      "div",
      { key: "scroll", class: `al-training-scroll${state?.closed ? " al-training-last" : ""}`, tabindex: 0, role: "region", "aria-label": "Training" },
      runs.map(drawRun),
      runs.length === 0 && h("p", { key: "note", class: "al-training-note" }, trainingNote(state)),
    ),
  ];
}

function trainingNote(state) {
  if (!state) return "Waiting for the first look.";
  return state.replay || state.past ? "No step was seen then." : "No step was trained. train.Trainer(device, …).run(100) trains.";
}

function trainingHeader(state, runs, view) {
  const restarts = runs.reduce((sum, run) => sum + (run.restarts?.length ?? 0), 0);
  return h(
    "div",
    { key: "header", class: "al-header" },
    h("span", { class: "al-title" }, icon("system", 14), h("strong", {}, state?.lab || "accel_lab"), h("span", { class: "al-muted" }, "training")),
    h(
      "span",
      { class: "al-chips" },
      runs.length > 1 && h("span", { key: "count", class: "al-chip al-off" }, plural(runs.length, "trainer")),
      restarts > 0 && h("span", { key: "restarts", class: "al-chip al-warn" }, icon("restarting", 12), plural(restarts, "restart")),
    ),
    freshBadge(state, view.stale),
  );
}

function drawRun(run) {
  const { name, step, at, loss = "not finite", rate, norm, speed, took, mean_of: meanOf, curve, ranks, restarts = [] } = run;
  const figure = (label, value, title) => h("div", { key: label, class: "al-training-figure", title }, h("dt", { class: "al-muted" }, label), h("dd", {}, value));
  const marks = restarts.map((one) => ({ step: one.step, title: `Step ${one.step} was done again: ${one.why.join("; ")}` }));
  return h(
    "section",
    { key: name, class: "al-training-one", "aria-label": name, "data-trainer": name },
    h("div", { key: "name", class: "al-training-name" }, h("strong", {}, name), h("span", { class: "al-muted" }, "last step ", h("time", {}, clockTime(at).slice(0, 8)))),
    h(
      "dl",
      { key: "figures", class: "al-training-figures" },
      figure("Step", count(step)),
      speed && figure(`${speed[1][0].toUpperCase()}${speed[1].slice(1)} a second`, speed[0]),
      figure("A step", took, `mean of ${plural(meanOf, "step")}`),
    ),
    h(
      "div",
      { key: "charts", class: "al-training-charts" },
      trainingChart("Loss", "loss", curve.steps, curve.loss, loss, marks),
      trainingChart("Learning rate", "rate", curve.steps, curve.rate, rate),
      trainingChart("Gradient norm", "norm", curve.steps, curve.norm, norm ?? "not finite"),
    ),
    trainingRanks(ranks, meanOf),
    restarts.length > 0 && trainingRestarts(restarts),
  );
}

function trainingRanks(ranks, meanOf) {
  const longest = Math.max(...ranks.map(({ seconds }) => seconds.reduce((sum, part) => sum + part, 0)), 1e-9);
  return h(
    "table",
    { key: "ranks", class: "al-table al-training-ranks", "aria-label": `Where the time of a step goes, mean of ${plural(meanOf, "step")}` },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col", class: "al-training-rank" }, "Rank"),
        h("th", { scope: "col", class: "al-training-bars" }, "A step"),
        TRAINING_PARTS.map(([word, part, title]) => h("th", { key: part, scope: "col", class: "al-training-number", title }, h("span", { class: `al-training-swatch al-training-${part}`, "aria-hidden": "true" }), word)),
      ),
    ),
    h(
      "tbody",
      {},
      ranks.map(({ device, seconds, words }) =>
        h(
          "tr",
          { key: device, "data-rank": device },
          h("th", { scope: "row" }, device),
          h(
            "td",
            { class: "al-training-bars" },
            h("div", { class: "al-training-bar", "aria-hidden": "true" }, TRAINING_PARTS.map(([, part], i) => h("span", { key: part, class: `al-training-${part}`, style: `width: ${((100 * seconds[i]) / longest).toFixed(2)}%` }))),
          ),
          TRAINING_PARTS.map(([, part], i) => h("td", { key: part, class: "al-training-number" }, words[i])),
        ),
      ),
    ),
  );
}

function trainingRestarts(restarts) {
  return h(
    "ol",
    { key: "restarts", class: "al-training-restarts", "aria-label": "Newest restarts" },
    restarts.slice(0, TRAINING_LISTED).map(({ at, step, why, again }) =>
      h(
        "li",
        { key: at },
        h("time", { class: "al-muted" }, clockTime(at)),
        h("span", { class: "al-word al-warn" }, icon("restarting", 12), `step ${step} done again${again > 1 ? `, and ${again - 1} before it` : ""}`),
        h("span", { class: "al-muted al-training-why", title: why.join("; ") }, why.join("; ")),
      ),
    ),
  );
}
