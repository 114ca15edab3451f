// What is around the picture, as plain nodes: a header, tools, the names of the streams, a legend,
// a line about one slice, and the newest slices as a table.

import { workColour } from "../shared/colours.js";
import { h } from "../shared/dom.js";
import { count, look, plural, unseen } from "../shared/format.js";
import { freshBadge } from "../shared/fresh_badge.js";
import { icon } from "../shared/icons.js";
import { timelineHeight, timelineIsOf, timelinePath } from "./lanes.js";
import { timelineMapDraw } from "./time/minimap.js";
import { timelineClock, timelineDuration, timelineExact, timelineName } from "./time/scale.js";
import { timelineCellsInWords, timelineLength } from "./told.js";

const TIMELINE_LISTED = 20; // slices in the table
const TIMELINE_NAMED_IN_LEGEND = 8;
const TIMELINE_LONG_S = 1; // what runs for so long is named below the picture
const TIMELINE_LONGEST = 3; // of these, the longest
const TIMELINE_HELP = "Wheel or + and − zoom, drag or arrows pan, shift and drag brush. Home shows everything, End follows live.";
const TIMELINE_PLOT_HELP = `${TIMELINE_HELP} S brushes what is shown, Escape takes the brush away.`;

/** Draw `view`: state, ring, lanes, mode, span, selection, active, detail, said, stale, tabled, id. */
export function timelineDraw(view) {
  return [timelineHeader(view), timelineTools(view), timelineMapDraw(view), timelineBody(view), timelineNow(view), timelineFoot(view), timelineTable(view), h("div", { key: "said", class: "al-sr", role: "status" }, view.said)].filter(Boolean);
}

function timelineHeader({ state, ring, stale }) {
  const missed = state ? ring.notShown(state) : 0;
  const done = state ? state.rows.reduce((sum, row) => sum + row.count, 0) : 0;
  const running = state?.running.length ?? 0;
  return h(
    "div",
    { key: "header", class: "al-header" },
    h("span", { class: "al-title" }, icon("timeline", 14), h("strong", {}, state?.name || "accel_lab"), h("span", { class: "al-muted" }, "timeline")),
    h(
      "span",
      { class: state?.closed ? "al-chips al-last" : "al-chips" },
      state && !(state.unrecorded && !state.rows.length) && h("span", { key: "done", class: "al-chip al-off timeline-done" }, `${timelineExact(done)} done`),
      state?.unrecorded && h("span", { key: "unrecorded", class: "al-chip al-warn timeline-unrecorded", title: state.unrecorded }, icon("half-open", 12), "not recorded"),
      running > 0 && h("span", { key: "running", class: "al-chip al-ok timeline-running" }, icon("running", 12), `${count(running)} running`),
      missed > 0 && h("span", { key: "missed", class: "al-chip al-warn timeline-missed", title: timelineWhy(state) }, icon("half-open", 12), `${timelineExact(missed)} not shown`),
    ),
    timelineBadge(state, stale),
  );
}

function timelineWhy({ untraced }) {
  const dropped = untraced ? ` ${timelineExact(untraced)} of them were dropped on the device.` : "";
  return `Slices that were traced before this page saw them, or that are older than the newest 100 000.${dropped}`;
}

function timelineBadge(state, stale) {
  const calm = (text) => h("span", { key: "badge", class: "al-badge al-calm" }, icon("half-open", 12), text);
  if (state?.of) return calm(state.of);
  const isRecorded = state && state.at !== undefined && !state.replay && !state.closed && stale === null;
  return isRecorded ? calm("recorded") : freshBadge(state, stale);
}

function timelineTools({ mode, span, state, shown }) {
  const button = (deed, text, more = {}) => h("button", { key: deed, type: "button", class: "timeline-button", "data-do": deed, ...more }, text);
  const [from, to] = shown;
  return h(
    "div",
    { key: "tools", class: "timeline-tools" },
    button("follow", "Follow live", { "aria-pressed": String(mode === "follow"), title: "End", disabled: Boolean(state?.closed) }),
    button("all", "Everything", { "aria-pressed": String(mode === "all"), title: "Home" }),
    button("out", "Zoom out", { title: "−" }),
    button("in", "Zoom in", { title: "+" }),
    h("span", { class: "al-muted timeline-shown" }, `${timelineDuration(to - from)} shown`),
    span && button("unbrush", `Brush ${timelineDuration(span[1] - span[0])} ×`, { "aria-label": `Take the brush of ${timelineDuration(span[1] - span[0])} away`, title: "Escape" }),
    h("span", { class: "timeline-space" }),
    button("export", "Export", { title: "Chrome trace: opens in Perfetto", disabled: !state }),
  );
}

function timelineBody(view) {
  const { state, lanes, active, selection, id } = view;
  const options = lanes.filter((lane) => lane.row !== null);
  const groups = (state?.devices ?? []).map((device) => {
    const selected = timelineIsOf(timelinePath(state, device), selection);
    const below = options.filter((lane) => lane.device === device);
    return h(
      "div",
      { key: device, class: selected ? "timeline-device timeline-selected" : "timeline-device", role: below.length ? "group" : null, "aria-label": below.length ? device : null },
      h("div", { key: "heading", class: "timeline-heading", "data-device": device, "aria-hidden": below.length ? "true" : null, role: below.length ? null : "option", "aria-selected": below.length ? null : String(selected), "aria-disabled": below.length ? null : "true" }, icon("device", 14), h("strong", {}, device), timelineDoes(state, device), !below.length && !state.states?.[device] && h("span", { class: "al-muted", title: state.unrecorded }, state.unrecorded ? "not recorded" : "nothing seen")),
      lanes.some((lane) => lane.kind === "gauge" && lane.device === device) && h("div", { key: "gauge", class: "timeline-gauge al-muted", "aria-hidden": "true", title: "The area is the share of time in which its busiest stream worked, the line its used memory." }, "busy, memory"),
      below.map(({ row }) => timelineOption(state.rows[row], row, row === active, selected)),
    );
  });
  return h(
    "div",
    { key: "body", class: state?.closed ? "timeline-body al-last" : "timeline-body", tabindex: -1 },
    h(
      "div",
      { class: "timeline-names" },
      h("div", { class: "timeline-corner al-muted" }, "Stream"),
      lanes.filter(({ device }) => device === null).map(({ kind }) => timelineOfNotebook(kind, state)),
      groups.length > 0 && h("div", { key: "list", role: "listbox", "aria-label": "Streams", "aria-describedby": `${id}-keys` }, groups),
      h("p", { key: "keys", id: `${id}-keys`, class: "al-sr" }, "Up and down go from stream to stream, left and right from slice to slice, Enter selects the device."),
    ),
    h(
      "div",
      { key: "plot", class: "timeline-plot", style: `block-size: ${timelineHeight(lanes)}px` },
      h("canvas", { key: "canvas", class: "timeline-canvas", role: "application", tabindex: 0, "aria-label": `Timeline of ${state?.name || "the system"}`, "aria-describedby": `${id}-summary` }),
      h("p", { key: "summary", id: `${id}-summary`, class: "al-sr timeline-summary" }, timelineSummary(view)),
      lanes.length === 0 && h("p", { key: "none", class: "timeline-none al-muted" }, state ? timelineNone(state) : "Waiting for the first look."),
    ),
  );
}

/** The name of a lane of the notebook. */
function timelineOfNotebook(kind, state) {
  const missing = kind === "cells" && !state.cells?.length && state.cells_unrecorded;
  return h("div", { key: kind, class: `timeline-of-${kind}` }, kind === "cells" ? "Cells" : "Host waits", missing && h("span", { class: "al-muted", title: missing }, " not recorded"));
}

/** What a device does that has no context at work, as "starting". */
function timelineDoes({ states = {} }, device) {
  const word = states[device];
  return word && h("span", { key: "state", class: `al-word al-${look(word).tone}` }, icon(look(word).icon, 12), word);
}

/** Say why there is no lane. */
function timelineNone(state) {
  if (state.unrecorded) return `Work is not recorded: ${state.unrecorded}.`;
  return state.name ? "This system has no devices." : unseen(state);
}

function timelineOption({ device, stream, count: done, passed = 0 }, row, isActive, selected) {
  return h(
    "div",
    { key: `row ${row}`, class: "timeline-stream", role: "option", "aria-selected": String(selected), tabindex: isActive ? 0 : -1, "data-row": row, "data-device": device },
    h("span", { class: "al-sr" }, `${device} `),
    h("span", { class: "timeline-label" }, stream),
    h("span", { class: "al-muted timeline-count" }, h("span", { class: "al-sr" }, ", "), passed ? `${count(done)} of ${count(done + passed)}` : count(done), h("span", { class: "al-sr" }, passed ? " traced one by one" : " done")),
  );
}

/** What the picture shows, in words. */
export function timelineSummary(view) {
  const { state, ring, shown, now } = view;
  if (!state) return "Nothing was seen yet.";
  const rows = state.rows.map(({ device, stream, count: done, longest }) => `${device} ${stream}: ${done} done${done ? `, the longest ${timelineDuration(longest)}` : ""}`);
  const lost = state.rows.filter((row) => row.lost).map(({ device, stream, lost: { count: n, last, seconds: s } }) => `${device} ${stream}: ${last} ended with its context after ${timelineDuration(s)}${n > 1 ? `, and ${n - 1} earlier` : ""}`);
  const running = state.running.map(([work, seq, start]) => `${timelineName(state.works[work][1], seq, state.works[work][2])} runs on ${state.rows[state.works[work][0]].device}${now - start >= TIMELINE_LONG_S ? ` for ${Math.floor(now - start)} s` : ""}`);
  const changes = state.marks.filter(([, , kind]) => kind === "generation").map(([, device, , text]) => `${device} ${text}`);
  const missed = ring.notShown(state);
  return [
    `Shown is from ${timelineClock(shown[0], 3)} to ${timelineClock(shown[1], 3)}.`,
    rows.length ? `${rows.join("; ")}.` : state.unrecorded ? "" : "No work was seen yet.",
    state.unrecorded && `Work is not recorded: ${state.unrecorded}.`,
    running.length > 0 && `${running.join("; ")}.`,
    lost.length > 0 && `${lost.join("; ")}.`,
    changes.length > 0 && `Generation changes: ${changes.slice(-5).join("; ")}.`,
    missed > 0 && `${timelineExact(missed)} slices are not shown.`,
    timelineCellsInWords(view.state, view.strips, now),
    TIMELINE_PLOT_HELP,
  ].filter(Boolean).join(" ");
}

/** The last line: what the pointer is at takes the place of the legend's names, so that both take one line. */
function timelineFoot(view) {
  return h("div", { key: "foot", class: "timeline-foot" }, timelineLegend(view), timelineDetail(view));
}

function timelineLegend({ state, ring }) {
  const entry = (key, shapes, ...words) => h("span", { key, class: "timeline-entry" }, h("svg", { class: `timeline-swatch timeline-${key}`, viewBox: "0 0 18 12", width: 18, height: 12, "aria-hidden": "true" }, shapes), words);
  const names = state ? ring.names(state.works, TIMELINE_NAMED_IN_LEGEND) : [];
  const box = h("rect", { x: 0.5, y: 0.5, width: 17, height: 11, class: "timeline-box" });
  const dots = [2, 6, 10, 14].flatMap((x) => [2, 7].map((y) => h("rect", { x: x + (y > 2 ? 2 : 0) - 0.5, y, width: 2, height: 2, class: "timeline-ink" })));
  return h(
    "details",
    { key: "legend", class: "timeline-legend al-muted" },
    h("summary", { title: TIMELINE_HELP }, "Legend", names.length > 0 && h("span", { key: "names", class: "timeline-entries", role: "group", "aria-label": "The most frequent names, by colour" }, names.map(([name, held]) => timelineLegendName(name, held)))),
    h(
      "div",
      { class: "timeline-entries" },
      entry("kernel", [h("rect", { x: 0.5, y: 0.5, width: 17, height: 11, class: "timeline-ink" })], "kernel"),
      entry("copy", [box, h("path", { d: "M1 9 9 1M5 11 15 1M11 11l6-6", class: "timeline-stroke" })], "copy"),
      entry("function", [box, dots], "function"),
      entry("open", [h("path", { d: "M1 1h12l4 2.5-4 2.5 4 2.5-4 2.5H1z", class: "timeline-stroke" })], "still running"),
      entry("lost", [h("path", { d: "M1 1h16v10H1z", class: "timeline-stroke" }), h("path", { d: "M1 4l6 7M5 1l8 10M11 1l6 7.5", class: "timeline-stroke" })], "ended with its context"),
      entry("fine", [h("path", { d: "M1 12V8h2v4M4 12V3h2v9M7 12V6h2v6M10 12V2h2v10M13 12V9h2v3", class: "timeline-ink" })], "finer than a pixel: height is the busy share"),
      entry("untraced", [box, h("path", { d: "M3 1v10M7 1v10M11 1v10M15 1v10", class: "timeline-stroke" })], "busy, not traced one by one"),
      entry("joint", [h("path", { d: "M1 2h12M5 10h8", class: "timeline-joint" }), h("path", { d: "M13 2v8", class: "timeline-stroke" })], "collective operation, across its devices"),
      entry("rule", [h("path", { d: "M9 0v12", class: "timeline-stroke", "stroke-dasharray": "3 2" })], "new generation"),
      entry("fault", [h("circle", { cx: 9, cy: 6, r: 5, class: "timeline-stroke" }), h("path", { d: "M7 4l4 4M11 4 7 8", class: "timeline-stroke" })], "fault"),
    ),
    h("p", { class: "timeline-keys" }, TIMELINE_HELP),
  );
}

/** A name in the legend, with its colour. */
function timelineLegendName(name, held) {
  const box = h("svg", { class: "timeline-swatch", viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" }, h("rect", { x: 0, y: 0, width: 12, height: 12, rx: 2, style: `fill: var(${workColour(name)})` }));
  return h("span", { key: name, class: "timeline-entry timeline-name", title: `${plural(held, "slice")} here` }, box, name);
}

/** What has been running for long, the longest first, in words: ["saxpy #5 on gpu0/jit for 12 s"]. */
export function timelineLong(state, now) {
  const long = (state?.running ?? []).filter(([work, , start]) => now - start >= TIMELINE_LONG_S && state.works[work][2] !== "untraced").sort((a, b) => a[2] - b[2]);
  const words = long.slice(0, TIMELINE_LONGEST).map(([work, seq, start]) => {
    const [row, name] = state.works[work];
    return `${name} #${seq} on ${state.rows[row].device}/${state.rows[row].stream} for ${timelineDuration(now - start)}`;
  });
  return long.length > TIMELINE_LONGEST ? [...words, `and ${long.length - TIMELINE_LONGEST} more`] : words;
}

function timelineNow({ state, now }) {
  const long = timelineLong(state, now);
  return long.length > 0 && h("div", { key: "now", class: "timeline-now" }, icon("running", 12), h("strong", {}, "running"), ` ${long.join(", ")}`);
}

function timelineDetail({ detail }) {
  return h("div", { key: "detail", class: "timeline-detail", "aria-hidden": "true" }, detail && [h("span", { class: "timeline-what" }, detail.what), detail.text]);
}

function timelineTable({ state, ring, tabled, now }) {
  const body = tabled && state ? [...state.running.map((one) => timelineRunningRow(state, one, now)), ...ring.newest(TIMELINE_LISTED).map(({ row, place }) => timelineDoneRow(state, ring.tracks[row], place))] : [];
  const heads = ["Slice", "Device", "Stream", "Message", "Kind", "Start", "Duration"];
  return h(
    "details",
    { key: "newest", class: "timeline-newest" },
    h("summary", {}, "Newest slices as a table"),
    tabled && h("div", { key: "scroll", class: "timeline-scroll", tabindex: 0, role: "region", "aria-label": "Newest slices" }, h("table", { class: "timeline-table" }, h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))), h("tbody", {}, body))),
  );
}

function timelineCells(key, first, state, work, seq, start, length) {
  const [row, name, kind] = state.works[work];
  const { device, stream } = state.rows[row];
  const cells = [device, stream, timelineName(name, seq, kind), kind, timelineClock(start, 6), length];
  return h("tr", { key, memo: `${first} ${cells.join(" ")}` }, h("th", { scope: "row" }, first), cells.map((cell) => h("td", {}, cell)));
}

function timelineRunningRow(state, [work, seq, start], now) {
  return timelineCells(`r${work} ${seq}`, "running", state, work, seq, start, timelineDuration(now - start));
}

function timelineDoneRow(state, track, i) {
  const length = timelineLength(track.end[i] - track.start[i], state.works[track.work[i]][3]);
  return timelineCells(track.number[i], timelineExact(track.number[i]), state, track.work[i], track.seq[i], track.start[i], length);
}

