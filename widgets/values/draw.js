// What chosen arrays held as plain nodes: of each series its figures, its histograms over the looks, and the newest one.

import { h } from "../shared/dom.js";
import { clockTime, count, plural } from "../shared/format.js";
import { freshBadge } from "../shared/fresh_badge.js";
import { icon } from "../shared/icons.js";
import { valuesBars, valuesHeat } from "./chart.js";

/** What only this page knows. */
export function valuesView() {
  return { stale: null };
}

/** Draw `state` (null before the first one) as `view` sees it. */
export function drawValues(state, view) {
  const series = state?.series ?? [];
  return [
    valuesHeader(state, series, view),
    h(
      "div",
      { key: "scroll", class: `al-values-scroll${state?.closed ? " al-values-last" : ""}`, tabindex: 0, role: "region", "aria-label": "Values" },
      series.map(drawSeries),
      series.length === 0 && h("p", { key: "note", class: "al-values-note" }, valuesNote(state)),
    ),
  ];
}

function valuesNote(state) {
  if (!state) return "Waiting for the first look.";
  return state.replay || state.past ? "Nothing was looked at then." : 'Nothing was looked at. lab.observe("weights", w) looks at w.';
}

function valuesHeader(state, series, view) {
  const bad = series.filter(({ nans, infs }) => nans || infs).length;
  return h(
    "div",
    { key: "header", class: "al-header" },
    h("span", { class: "al-title" }, icon("system", 14), h("strong", {}, state?.lab || "accel_lab"), h("span", { class: "al-muted" }, "values")),
    h(
      "span",
      { class: "al-chips" },
      series.length > 1 && h("span", { key: "count", class: "al-chip al-off" }, count(series.length), " series"),
      bad > 0 && h("span", { key: "bad", class: "al-chip al-bad" }, icon("warn", 12), "NaN or Inf in ", count(bad)),
    ),
    freshBadge(state, view.stale),
  );
}

function drawSeries(one) {
  const { name, device, array, look, at, cell, least, most, mean, nans, infs, counts, curve } = one;
  const figure = (label, value, tone = "") => h("div", { key: label, class: "al-values-figure" }, h("dt", { class: "al-muted" }, label), h("dd", { class: tone }, value));
  return h(
    "section",
    { key: `${name} ${device}`, class: "al-values-one", "aria-label": `${name} on ${device}`, "data-series": name, "data-device": device },
    h(
      "div",
      { key: "name", class: "al-values-name" },
      h("strong", {}, name),
      h("span", { class: "al-muted" }, `${array} on ${device}`),
      h("span", { class: "al-muted" }, `${plural(look, "look")}, the last `, h("time", {}, clockTime(at).slice(0, 8)), cell > 0 && `, cell ${cell}`),
    ),
    h(
      "dl",
      { key: "figures", class: "al-values-figures" },
      figure("Least", least ?? "none finite"),
      mean !== undefined && figure("Mean", mean),
      most !== undefined && figure("Most", most),
      nans > 0 && figure("NaN", count(nans), "al-word al-bad"),
      infs > 0 && figure("Inf", count(infs), "al-word al-bad"),
    ),
    h("div", { key: "charts", class: "al-values-charts" }, valuesHeat(curve), valuesBars(counts, least, most)),
  );
}
