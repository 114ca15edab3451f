// How devices reach each other, as plain nodes: a table from each to each, the stronger the colour the faster, and the islands.

import { h } from "../shared/dom.js";
import { plural } from "../shared/format.js";
import { freshBadge } from "../shared/fresh_badge.js";
import { icon } from "../shared/icons.js";

const TOPOLOGY_STRONGEST = 42; // per cent of the colour that the fastest cell has: text is read on it

/** What only this page knows. */
export function topologyView() {
  return { stale: null };
}

/** Draw `state` (null before the first one) as `view` sees it. */
export function drawTopology(state, view) {
  const rows = state?.rows;
  return [
    topologyHeader(state, view),
    h(
      "div",
      { key: "scroll", class: `al-topology-scroll${state?.closed ? " al-topology-last" : ""}`, tabindex: 0, role: "region", "aria-label": "Topology" },
      rows && topologyTable(state),
      rows && h("ul", { key: "notes", class: "al-topology-notes al-muted" }, topologyNotes(state).map((said) => h("li", { key: said }, said))),
      !rows && h("p", { key: "note", class: "al-topology-note" }, topologyNote(state)),
    ),
  ];
}

function topologyNote(state) {
  if (!state) return "Waiting for the first look.";
  if (state.replay || state.past) return "Nobody looked at the links then.";
  return state.devices.length ? "The links are not known yet." : "There is no other device.";
}

function topologyHeader(state, view) {
  const islands = state?.islands?.length ?? 0;
  return h(
    "div",
    { key: "header", class: "al-header" },
    h("span", { class: "al-title" }, icon("system", 14), h("strong", {}, state?.lab || "accel_lab"), h("span", { class: "al-muted" }, "topology")),
    h(
      "span",
      { class: "al-chips" },
      islands > 0 && h("span", { key: "islands", class: "al-chip al-off" }, plural(islands, "island")),
      state?.stale > 0 && h("span", { key: "stale", class: "al-chip al-warn" }, icon("half-open", 12), plural(state.stale, "stale figure")),
    ),
    freshBadge(state, view.stale),
  );
}

function topologyTable({ devices, rows }) {
  return h(
    "table",
    { key: "table", class: "al-topology-table" },
    h("caption", { class: "al-sr" }, "From the device of the row to that of the column"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "al-muted" }, "from \\ to"), devices.map((name) => h("th", { key: name, scope: "col" }, name)))),
    h(
      "tbody",
      {},
      rows.map((row, at) => h("tr", { key: devices[at] }, h("th", { scope: "row" }, devices[at]), row.map((cell, to) => topologyCell(cell, devices[at], devices[to])))),
    ),
  );
}

function topologyCell(cell, from, to) {
  if (!cell) return h("td", { key: to, class: "al-topology-same al-muted", "aria-label": "the same device" }, "-");
  const { link, speed, share = 0, way, stale, apart } = cell;
  const words = [`${from} to ${to}: ${link}`, speed, way && `by ${way}`, stale && "stale"].filter(Boolean).join(", ");
  return h(
    "td",
    {
      key: to,
      class: `al-topology-cell${apart ? " al-topology-apart" : ""}${stale ? " al-topology-stale" : ""}`,
      "data-from": from,
      "data-to": to,
      style: `--al-topology-share: ${(share * TOPOLOGY_STRONGEST).toFixed(1)}%`,
      title: words,
    },
    speed && h("strong", { key: "speed" }, speed),
    h("span", { key: "link" }, link),
    stale && h("span", { key: "stale", class: "al-topology-word" }, icon("half-open", 12), "stale"),
  );
}

function topologyNotes({ islands, measured, stale }) {
  return [
    `${plural(islands.length, "island")}: ${islands.map((names) => names.join(", ")).join("; ")}`,
    measured ? `Measured with ${measured}, by the wall clock; the stronger the colour, the faster.` : "Not measured: lab.topology.measure() copies between all of them.",
    stale > 0 && "Stale figures are of a context that is no more: lab.topology.measure(anew=False).",
  ].filter(Boolean);
}
