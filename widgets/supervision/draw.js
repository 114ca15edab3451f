// The supervision feed as plain nodes: a header, filters and buttons, and a treegrid of incidents.

import { h } from "../shared/dom.js";
import { clockTime, plural } from "../shared/format.js";
import { freshBadge } from "../shared/fresh_badge.js";
import { icon } from "../shared/icons.js";
import { feedConfirm } from "./confirm.js";
import { feedActor, feedCause, feedCauseParts, feedGenerations, feedRows, feedSummary, feedUnshown, openCircuits, outcomeLook } from "./rows.js";

const FEED_ASKED = 3; // of more faults that are to come it is only said how many

/** What only the person who looks decides. */
export function feedView() {
  return {
    faultsOnly: false,
    device: "", // the only one that is shown; all when empty
    open: new Set(), // numbers of incidents whose steps are shown, as text
    active: null, // the row that has the keyboard's attention
    confirm: null, // {fault, device} that is to be injected, once that is confirmed
    chosen: null, // the incident that was clicked
    selection: null, // the actor that all views look at
    stale: null,
    said: "",
  };
}

/** Draw `state` (null before the first one) as `view` sees it. */
export function drawSupervision(state, view) {
  const visible = feedRows(state?.rows, view);
  const active = visible.some((row) => row.path === view.active) ? view.active : visible[0]?.path;
  return [
    feedHeader(state, view),
    state && feedTools(state, view),
    ...openCircuits(state).map((device) => feedCircuit(device, state)),
    h(
      "div",
      { key: "scroll", class: `al-supervision-scroll${state?.closed ? " al-supervision-last" : ""}` },
      visible.length > 0 && feedGrid(visible, active, state, view),
      feedNote(state, visible, view),
    ),
    h("div", { key: "said", class: "al-sr", role: "status" }, view.said),
  ].filter(Boolean);
}

function feedHeader(state, view) {
  const { faults, open } = feedSummary(state ?? {});
  return h(
    "div",
    { key: "header", class: "al-header" },
    h("span", { class: "al-title" }, icon("system", 14), h("strong", {}, state?.lab || "accel_lab"), h("span", { class: "al-muted" }, "supervision")),
    h("span", { class: "al-chips" }, state && h("span", { class: `al-chip ${open ? "al-bad" : "al-off"}` }, icon(open ? "warn" : "running", 12), feedCount(faults, open))),
    freshBadge(state, view.stale),
  );
}

function feedCount(faults, open) {
  if (!faults) return "no faults";
  return `${plural(faults, "fault")}${open ? ` · ${open} not over` : ""}`;
}

function feedTools(state, view) {
  const devices = state.devices ?? [];
  const level = (name, words, pressed) => h("button", { key: name, type: "button", class: "al-supervision-button", "data-do": name, "aria-pressed": String(pressed) }, words);
  return h(
    "div",
    { key: "tools", class: "al-supervision-tools" },
    h("span", { key: "levels", class: "al-supervision-group", role: "group", "aria-label": "Which rows" }, level("all", "All", !view.faultsOnly), level("faults", "Faults", view.faultsOnly)),
    devices.length > 1 && feedChoice("device", "Only this device", [["", "all devices"], ...devices.map(({ name }) => [name, name])]),
    state.acts && view.confirm && feedConfirm(view.confirm, state),
    state.acts &&
      !view.confirm &&
      h(
        "span",
        { key: "inject", class: "al-supervision-group al-supervision-inject", role: "group", "aria-label": "Inject a fault" },
        feedChoice("fault", "Fault", state.faults.map((fault) => [fault, fault])),
        devices.length > 1 && feedChoice("target", "On this device", devices.map(({ name }) => [name, name])),
        h("button", { key: "go", type: "button", class: "al-supervision-button", "data-do": "inject" }, icon("warn", 12), "Inject fault"),
      ),
    state.acts && h("span", { key: "asked", class: "al-muted", role: "status" }, feedAsked(state.asked ?? [])),
  );
}

/** Say which faults a device has not come to yet. */
function feedAsked(asked) {
  if (!asked.length) return "";
  return `Injecting ${asked.length > FEED_ASKED ? plural(asked.length, "fault") : asked.join(", ")}…`;
}

function feedChoice(name, label, options) {
  return h(
    "select",
    { key: name, class: "al-supervision-choice", name, "aria-label": label },
    options.map(([value, words]) => h("option", { key: value, value }, words)),
  );
}

function feedCircuit(device, state) {
  return h(
    "div",
    { key: `circuit ${device}`, class: "al-supervision-circuit al-bad" },
    h("span", { class: "al-word" }, icon("open", 12), `${device}: circuit open`),
    h("span", { class: "al-supervision-why" }, "It lost its context too often; its requests fail."),
    state.acts && h("button", { type: "button", class: "al-supervision-button", "data-do": "reset", "data-device": device, "aria-label": `Reset circuit of ${device}` }, icon("restarting", 12), "Reset circuit"),
  );
}

const FEED_COLUMNS = [
  ["time", "Time"],
  ["outcome", "Outcome"],
  ["actor", "Actor"],
  ["what", "What and why"],
  ["decision", "Decision"],
  ["generation", "Gen"],
  ["took", "Recovery"],
];

function feedGrid(visible, active, state, view) {
  const heads = FEED_COLUMNS.map(([name, title]) => h("th", { role: "columnheader", scope: "col", class: `al-supervision-${name}` }, name === "generation" ? h("abbr", { title: "Generation" }, title) : title));
  return h(
    "table",
    { key: "grid", class: "al-table al-supervision-grid", role: "treegrid", "aria-label": `Supervision of ${state.lab || "the system"}, the newest first`, "aria-readonly": "true" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads)),
    h("tbody", { role: "rowgroup" }, visible.map((line) => (line.level === 1 ? feedLine(line, line.path === active, state, view) : feedStep(line, line.path === active)))),
  );
}

function feedLine(line, isActive, state, view) {
  const { row, path, position, size, open } = line;
  const { tone, icon: name } = outcomeLook(row);
  const isChosen = view.chosen === path;
  const isRelated = Boolean(view.selection) && feedIsWithin(`${state.lab}/${row.path}`, view.selection);
  const { code, cause } = feedCauseParts(row);
  const decisions = (row.decisions ?? []).join(" · ");
  const generations = feedGenerations(row);
  return h(
    "tr",
    {
      key: path,
      memo: JSON.stringify([row, position, size, open, isActive, isChosen, isRelated]),
      class: `al-supervision-row al-${tone} al-supervision-${row.level}${isChosen ? " al-supervision-chosen" : ""}${isRelated ? " al-supervision-related" : ""}`,
      role: "row",
      "aria-level": 1,
      "aria-posinset": position,
      "aria-setsize": size,
      "aria-expanded": String(open),
      "aria-selected": String(isChosen),
      tabindex: isActive ? 0 : -1,
      "data-path": path,
    },
    h(
      "td",
      { role: "gridcell", class: "al-supervision-time" },
      h("span", { class: `al-supervision-fold${open ? " al-supervision-open" : ""}`, "data-do": "turn" }, icon("fold", 12)),
      h("time", { datetime: new Date(row.at * 1000).toISOString() }, clockTime(row.at)),
    ),
    h("td", { role: "gridcell", class: "al-supervision-outcome" }, h("span", { class: "al-word" }, icon(name, 12), row.outcome)),
    h("th", { role: "rowheader", scope: "row", class: "al-supervision-actor" }, feedActor(row)),
    h(
      "td",
      { role: "gridcell", class: "al-supervision-what" },
      h("div", { class: "al-supervision-line" }, h("span", { class: "al-supervision-event" }, row.what), (code || cause) && h("span", { class: "al-supervision-cause al-muted" }, code && h("span", { class: "al-supervision-code" }, code), code && cause ? ": " : "", cause)),
      // Where the column of decisions has no place.
      decisions && h("div", { key: "decided", class: "al-supervision-decided" }, h("span", { class: "al-muted" }, "Decision "), decisions),
    ),
    h("td", { role: "gridcell", class: "al-supervision-decision" }, decisions),
    h("td", { role: "gridcell", class: "al-supervision-generation" }, generations && h("span", { class: "al-supervision-tag" }, generations)),
    h("td", { role: "gridcell", class: "al-supervision-took" }, row.took),
  );
}

function feedStep({ path, at, text, position, size }, isActive) {
  return h(
    "tr",
    {
      key: path,
      memo: JSON.stringify([at, text, position, size, isActive]),
      class: "al-supervision-row al-supervision-step",
      role: "row",
      "aria-level": 2,
      "aria-posinset": position,
      "aria-setsize": size,
      tabindex: isActive ? 0 : -1,
      "data-path": path,
    },
    h("td", { role: "gridcell", class: "al-supervision-time" }, at !== null && h("time", { datetime: new Date(at * 1000).toISOString() }, clockTime(at))),
    // Not over all columns: those that a narrow page hides would still take their place.
    h("td", { role: "gridcell", class: "al-supervision-said", colspan: 3 }, text),
    ["decision", "generation", "took"].map((name) => h("td", { key: name, role: "gridcell", class: `al-supervision-${name}` })),
  );
}

function feedNote(state, visible, view) {
  const words = () => {
    if (!state) return "Waiting for the first state.";
    if (visible.length) return feedUnshown(state);
    const none = view.faultsOnly ? "No faults" : "Nothing has happened";
    return [`${none}${view.device ? ` on ${view.device}` : ""} so far.`, feedUnshown(state)].filter(Boolean).join(" ");
  };
  return words() && h("p", { key: "note", class: "al-supervision-note" }, words());
}

function feedIsWithin(path, other) {
  return path === other || path.startsWith(`${other}/`);
}
