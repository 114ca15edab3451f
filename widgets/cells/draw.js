// The cells of a session as plain nodes: a slider over them, the text of one, and what differs there from today.

import { h } from "../shared/dom.js";
import { clockTime, plural } from "../shared/format.js";
import { freshBadge } from "../shared/fresh_badge.js";
import { icon } from "../shared/icons.js";
import { cellsSketch } from "./sketch.js";

/** What only this page knows: `asked` is the place that was asked for and has not come. */
export function cellsLooks() {
  return { stale: null, asked: null };
}

/** Draw `state` (null before the first one) as `view` sees it. */
export function drawCells(state, view) {
  return [
    cellsHeader(state, view),
    state?.count > 0 && state.position && cellsControls(state, view),
    h(
      "div",
      { key: "scroll", class: `al-cells-scroll${view.asked === null ? "" : " al-cells-behind"}`, tabindex: 0, role: "region", "aria-label": "What differs from today", "aria-busy": view.asked === null ? null : "true" },
      state?.then ? cellsBody(state) : h("p", { key: "note", class: "al-cells-note" }, cellsNote(state)),
    ),
  ].filter(Boolean);
}

function cellsNote(state) {
  if (!state) return "Waiting for the first look.";
  return state.damage ?? (state.closed ? "Nothing was committed." : "No cell is committed yet.");
}

function cellsHeader(state, { stale }) {
  const { rows = [], path = "" } = state ?? {};
  return h(
    "div",
    { key: "header", class: "al-header" },
    h("span", { class: "al-title" }, icon("timeline", 14), h("strong", {}, path.split("/").at(-1) || "session"), h("span", { class: "al-muted" }, "cells")),
    h("span", { class: "al-chips" }, state?.then && h("span", { key: "changed", class: `al-chip ${rows.length ? "al-warn" : "al-ok"}` }, rows.length ? `${plural(rows.length, "name")} changed since` : "as it is today")),
    freshBadge(state, stale),
  );
}

function cellsControls({ position, count, then, at, closed }, { asked }) {
  const here = asked ?? position;
  const words = asked === null ? `after ${then}` : "looking …";
  const step = (by, name, end) => h("button", { key: name, type: "button", class: "al-cells-button", "data-step": by, "aria-label": name, title: name, disabled: closed || end }, by < 0 ? "◀" : "▶");
  return h(
    "div",
    { key: "controls", class: "al-cells-controls" },
    step(-1, "One cell back", here === 1),
    h("input", { key: "slider", type: "range", class: "al-cells-slider", min: 1, max: count, step: 1, "aria-label": "Cell", "aria-valuetext": `${words}, commit ${here} of ${count}`, disabled: closed || count < 2 }),
    step(1, "One cell on", here === count),
    h("span", { key: "where", class: "al-cells-where", role: "status" }, h("strong", {}, words), " ", h("span", { class: "al-muted" }, `${here} of ${count}`), asked === null && at !== undefined && h("time", { class: "al-muted" }, ` ${clockTime(at).slice(0, 8)}`)),
  );
}

function cellsBody({ then, now, source, rows = [], first, damage, ...lists }) {
  return [
    damage && h("p", { key: "damage", class: "al-cells-note" }, h("span", { class: "al-word al-bad" }, icon("warn", 12), damage)),
    source && h("pre", { key: "source", class: "al-cells-source", tabindex: 0, role: "region", "aria-label": `Text of ${then}` }, source),
    first && h("p", { key: "first", class: "al-cells-first" }, h("span", { class: "al-word al-warn" }, icon("warn", 12), "First message that differs"), " ", h("code", {}, first)),
    rows.map((row) =>
      h(
        "section",
        { key: `row ${row.name}`, class: "al-cells-row", "data-name": row.name, "aria-label": row.name },
        h("div", { class: "al-cells-name" }, h("strong", {}, row.name), h("span", { class: "al-muted" }, row.how)),
        row.sketch ? cellsSketch(row.sketch, `after ${then}`, `${now}, today`, row.name) : row.before && h("dl", { class: "al-cells-pair" }, h("div", {}, h("dt", { class: "al-muted" }, `after ${then}`), h("dd", {}, h("code", {}, row.before))), h("div", {}, h("dt", { class: "al-muted" }, `${now}, today`), h("dd", {}, h("code", {}, row.after)))),
      ),
    ),
    [["new", "New since"], ["gone", "Gone since"], ["same", "As it was"]].map(([key, words]) => lists[key]?.length > 0 && h("p", { key, class: "al-cells-list", "data-list": key }, h("span", { class: "al-muted" }, `${words}: `), lists[key].join(", "))),
  ];
}
