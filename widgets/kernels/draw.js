// The kernel table as plain nodes: a header, a search field and filters, and a grid of kernels.

import { workColour } from "../shared/colours.js";
import { h } from "../shared/dom.js";
import { duration } from "../shared/duration.js";
import { clockTime, count, plural } from "../shared/format.js";
import { freshBadge } from "../shared/fresh_badge.js";
import { icon } from "../shared/icons.js";
import { KERNEL_COLUMNS, kernelCellsText, kernelRest, kernelRows } from "./rows.js";

const KERNEL_HELP = { share: "Share of the time of all traced work", cells: "The notebook cells that have sent it", on: "Device and stream" };

/** What only the person who looks decides. */
export function kernelsView() {
  return {
    search: "",
    device: "", // the only one that is shown; all when empty
    by: "total", // the column that rows are sorted by
    order: "descending",
    active: null, // the row that has the keyboard's attention
    chosen: null, // the row that was selected here
    kernel: null, // the name that all views look at, {name, cells}
    stale: null,
    said: "",
  };
}

/** Draw `state` (null before the first one) as `view` sees it. */
export function drawKernels(state, view) {
  const rows = kernelRows(state, view);
  const active = rows.some(({ path }) => path === view.active) ? view.active : rows[0]?.path;
  const rest = kernelRest(state);
  return [
    kernelsHeader(state, view),
    state && kernelsTools(state, view, rows),
    h("div", { key: "scroll", class: `al-kernels-scroll${state?.closed ? " al-kernels-over" : ""}` }, (rows.length > 0 || rest) && kernelsGrid(state, view, rows, rest, active), kernelsNote(state, view, rows, rest)),
    h("div", { key: "said", class: "al-sr", role: "status" }, view.said),
  ].filter(Boolean);
}

function kernelsHeader(state, view) {
  const { kernels = [], rest = {}, untraced } = state ?? {};
  const total = kernels.reduce((sum, row) => sum + row.total, rest.total ?? 0);
  return h(
    "div",
    { key: "header", class: "al-header" },
    h("span", { class: "al-title" }, icon("timeline", 14), h("strong", {}, state?.lab || "accel_lab"), h("span", { class: "al-muted" }, "kernels")),
    h(
      "span",
      { class: "al-chips" },
      state && h("span", { key: "many", class: "al-chip al-off" }, `${plural(kernels.length + (rest.kinds ?? 0), "kernel")}${total ? ` · ${duration(total)}` : ""}`),
      untraced > 0 && h("span", { key: "untraced", class: "al-chip al-warn" }, icon("warn", 12), `${plural(untraced, "message")} not traced`),
    ),
    freshBadge(state, view.stale),
  );
}

function kernelsTools(state, view, rows) {
  const devices = state.devices ?? [];
  return h(
    "div",
    { key: "tools", class: "al-kernels-tools" },
    h("input", { key: "search", class: "al-kernels-search", type: "search", name: "search", placeholder: "Search kernels", "aria-label": "Search kernels", autocomplete: "off", spellcheck: "false" }),
    devices.length > 1 &&
      h(
        "select",
        { key: "device", class: "al-kernels-choice", name: "device", "aria-label": "Only this device" },
        [["", "all devices"], ...devices.map((name) => [name, name])].map(([value, words]) => h("option", { key: value, value }, words)),
      ),
    view.kernel && h("button", { key: "clear", type: "button", class: "al-kernels-button", "data-do": "clear", "aria-label": `Clear the selection of ${view.kernel.name}` }, h("span", { class: "al-kernels-picked" }, view.kernel.name), icon("clear", 12)),
    h("button", { key: "copy", type: "button", class: "al-kernels-button al-kernels-copy", "data-do": "copy", disabled: rows.length === 0 }, "Copy as CSV"),
  );
}

function kernelsGrid(state, view, rows, rest, active) {
  const heads = KERNEL_COLUMNS.map(({ name, title, isNumber }) => {
    const isBy = view.by === name;
    return h(
      "th",
      { key: name, role: "columnheader", scope: "col", class: `al-kernels-${name}${isNumber ? " al-kernels-number" : ""}`, "aria-sort": isBy ? view.order : "none" },
      h("button", { type: "button", class: "al-kernels-head", "data-do": "sort", "data-by": name, title: KERNEL_HELP[name] }, title, isBy && icon(view.order, 12)),
    );
  });
  return h(
    "table",
    { key: "grid", class: "al-table al-kernels-grid", role: "grid", "aria-label": `Kernels of ${state.lab || "the system"}`, "aria-readonly": "true" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads)),
    h("tbody", { role: "rowgroup" }, rows.map((one) => kernelsLine(one, view, one.path === active)), rest && kernelsRest(rest)),
  );
}

function kernelsLine(one, view, isActive) {
  const { path, row, on } = one;
  const isSelected = kernelIsSelected(one, view);
  return h(
    "tr",
    {
      key: path,
      memo: JSON.stringify([row, one.share, isActive, isSelected]),
      class: `al-kernels-row${isSelected ? " al-kernels-chosen" : ""}`,
      role: "row",
      "aria-selected": String(isSelected),
      tabindex: isActive ? 0 : -1,
      "data-path": path,
    },
    h(
      "th",
      { role: "rowheader", scope: "row", class: "al-kernels-name", title: row.name },
      h("span", { class: "al-kernels-swatch", style: `background: var(${workColour(row.name)})`, "aria-hidden": "true" }),
      h("span", { class: "al-kernels-what" }, row.name),
      row.running !== undefined && h("span", { key: "runs", class: "al-word al-busy al-kernels-runs" }, icon("play", 12), h("span", { class: "al-kernels-running" }, "running")),
    ),
    h("td", { role: "gridcell", class: "al-kernels-on", title: on }, on),
    kernelsFigures(one),
    h("td", { role: "gridcell", class: "al-kernels-last" }, kernelsLast(row)),
    h("td", { role: "gridcell", class: "al-kernels-cells", title: kernelCellsText(row) }, kernelCellsText(row)),
  );
}

/** The row of those that have none: it cannot be selected. */
function kernelsRest(rest) {
  return h(
    "tr",
    { key: "rest", memo: JSON.stringify(rest), class: "al-kernels-row al-kernels-rest", role: "row" },
    h("th", { role: "rowheader", scope: "row", class: "al-kernels-name" }, h("span", { class: "al-kernels-swatch" }), h("span", { class: "al-kernels-what" }, rest.row.name)),
    h("td", { role: "gridcell", class: "al-kernels-on" }),
    kernelsFigures(rest),
    h("td", { role: "gridcell", class: "al-kernels-last" }, kernelsLast(rest.row)),
    h("td", { role: "gridcell", class: "al-kernels-cells" }),
  );
}

function kernelsFigures({ row, mean, share }) {
  const time = (name, seconds) => h("td", { key: name, role: "gridcell", class: `al-kernels-${name} al-kernels-number` }, seconds === null ? "" : duration(seconds));
  return [
    h("td", { key: "calls", role: "gridcell", class: "al-kernels-calls al-kernels-number", title: kernelExact(row.calls) }, row.calls < 100_000 ? kernelExact(row.calls) : count(row.calls)),
    time("total", row.calls ? row.total : null),
    time("mean", mean),
    time("longest", row.calls ? row.longest : null),
    h(
      "td",
      { key: "share", role: "gridcell", class: "al-kernels-share al-kernels-number" },
      share !== null && h("span", { class: "al-kernels-percent" }, `${(100 * share).toFixed(1)} %`),
      share !== null && h("span", { class: "al-kernels-bar", "aria-hidden": "true" }, h("span", { style: `width: ${(100 * share).toFixed(1)}%; background: var(${row.device ? workColour(row.name) : "--al-muted"})` })),
    ),
  ];
}

function kernelsLast(row) {
  const lost = row.lost > 0 && h("span", { key: "lost", class: "al-word al-bad", title: `${kernelExact(row.lost)} ended with ${row.lost === 1 ? "its" : "their"} context` }, icon("open", 12), `${count(row.lost)} lost`);
  if (row.running !== undefined) return [h("span", { key: "running", class: "al-word al-busy" }, icon("play", 12), "running"), lost];
  return [row.last !== undefined && h("time", { key: "at", datetime: new Date(row.last * 1000).toISOString() }, clockTime(row.last)), lost];
}

/** A whole number with its thousands apart: 1,203. */
function kernelExact(n) {
  return n.toLocaleString("en");
}

/** Whether all views look at a row: the one that was chosen here, or all of the name that another chose. */
function kernelIsSelected({ path, row }, { chosen, kernel }) {
  return kernel?.name === row.name && (chosen === null || chosen === path);
}

function kernelsNote(state, view, rows, rest) {
  const words = state ? [kernelsNone(state, view, rows), ...kernelsUntold(state, view, rest)].filter(Boolean).join(" ") : "Waiting for the first state.";
  return words && h("p", { key: "note", class: "al-kernels-note" }, words);
}

/** Say why there is no row. */
function kernelsNone(state, view, rows) {
  if (rows.length) return "";
  if (!state.kernels.length) {
    if (state.unrecorded) return `Not recorded: ${state.unrecorded}.`;
    return state.closed ? "The system was closed before any work was traced." : "No work was traced yet.";
  }
  const where = view.device ? ` on ${view.device}` : "";
  return view.search ? `No kernel${where} matches “${view.search}”.` : `No kernel ran${where}.`;
}

/** Say what the rows do not tell. */
function kernelsUntold(state, view, rest) {
  const { kernels, untraced, forgotten, unrecorded } = state;
  return [
    rest && `The ${kernelExact(rest.row.kinds)} kernels that took the least are one row${view.search || view.device ? ", of all devices; they are not searched" : ""}.`,
    untraced > 0 && `${plural(untraced, "message")} ${untraced === 1 ? "was" : "were"} not traced: calls and times are those of the others.`,
    forgotten > 0 && `${plural(forgotten, "earlier slice")} ${forgotten === 1 ? "was" : "were"} forgotten before anything was counted.`,
    kernels.length > 0 && unrecorded && `The rest is not recorded: ${unrecorded}.`,
  ];
}
