// The health strip as plain nodes: a group a source, in it a tile a reading.

import { h } from "../shared/dom.js";
import { plural } from "../shared/format.js";
import { freshBadge } from "../shared/fresh_badge.js";
import { HEALTH_WINDOW_S, healthPath } from "./tracks.js";
import { icon } from "../shared/icons.js";

export const HEALTH_SPARK = { width: 120, height: 22 };

/** What only this page knows. */
export function healthView() {
  return {
    tracks: null, // of each source, see `healthTracks`
    cursor: null, // the moment that all views look at
    selection: null, // the actor that all views look at
    stale: null,
  };
}

/** Draw `state` (null before the first one) as `view` sees it. */
export function drawHealth(state, view) {
  const sources = state?.sources ?? [];
  return [
    healthHeader(state, view),
    h(
      "div",
      { key: "scroll", class: `al-health-scroll${state?.closed ? " al-health-last" : ""}`, tabindex: 0, role: "region", "aria-label": "Readings" },
      sources.map((source, i) => healthSource(state, source, view.tracks?.[i], view)),
      sources.length === 0 && h("p", { key: "note", class: "al-health-note" }, healthNote(state)),
    ),
  ];
}

/** Say why there is no reading. */
function healthNote(state) {
  if (state?.unrecorded) return `Not recorded: ${state.unrecorded}.`;
  if (state?.closed) return "The system was closed before anything was read.";
  return state?.replay ? "Nothing of it was read yet." : "Waiting for the first readings.";
}

function healthHeader(state, view) {
  const warned = (state?.sources ?? []).flatMap(({ readings }) => readings).filter(({ warn }) => warn).length;
  return h(
    "div",
    { key: "header", class: "al-header" },
    h("span", { class: "al-title" }, icon("system", 14), h("strong", {}, state?.lab || "accel_lab"), h("span", { class: "al-muted" }, "health")),
    h(
      "span",
      { class: "al-chips" },
      warned > 0 && h("span", { key: "warned", class: "al-chip al-warn" }, icon("warn", 12), plural(warned, "warning")),
      state && h("span", { key: "window", class: "al-chip al-off" }, "last 2 minutes"),
    ),
    freshBadge(state, view.stale),
  );
}

function healthSource(state, source, track, view) {
  const path = `${state.lab}/${source.name}`;
  const isRelated = Boolean(view.selection) && (view.selection === path || view.selection.startsWith(`${path}/`));
  return h(
    "div",
    { key: source.name, class: `al-health-source${isRelated ? " al-health-related" : ""}`, role: "group", "aria-label": source.name },
    h("div", { class: "al-health-name" }, icon(source.name === "notebook" ? "context" : "device", 14), h("strong", {}, source.name), source.model && h("span", { class: "al-muted" }, source.model)),
    h("ul", { class: "al-health-tiles" }, source.readings.map((reading, i) => healthTile(reading, source, track && { times: track.times, values: track.values[i] }, view))),
  );
}

function healthTile(reading, source, track, view) {
  const { name, words, missing, limit, means, warn } = reading;
  return h(
    "li",
    { key: name, class: `al-health-tile${warn ? " al-warn al-health-warn" : ""}`, "data-reading": name },
    h("div", { class: "al-health-what" }, h("span", {}, name), warn && h("span", { class: "al-word" }, icon("warn", 12), warn)),
    missing
      ? h("div", { key: "missing", class: "al-health-missing al-muted" }, missing)
      : h("div", { key: "value", class: "al-health-value" }, h("strong", {}, words), limit && h("span", { class: "al-muted" }, limit)),
    means && h("div", { key: "means", class: "al-health-means al-muted" }, means),
    !missing && healthSpark(reading, source.at, track, view.cursor),
  );
}

function healthSpark({ top, peak }, now, track, cursor) {
  if (!track) return null;
  const { width, height } = HEALTH_SPARK;
  const path = healthPath(track.times, track.values, now, top, width, height);
  const at = cursor === null ? -1 : ((cursor - now + HEALTH_WINDOW_S) / HEALTH_WINDOW_S) * width;
  return h(
    "div",
    { key: "spark", class: "al-health-past" },
    h(
      "svg",
      { class: "al-health-spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      h("path", { class: "al-health-base", d: `M0 ${height - 0.5}H${width}` }),
      path && h("path", { key: "line", class: "al-health-line", d: path }),
      at >= 0 && at <= width && h("path", { key: "cursor", class: "al-health-cursor", d: `M${at.toFixed(1)} 0V${height}` }),
    ),
    peak && h("span", { class: "al-health-peak al-muted" }, `peak ${peak}`),
  );
}
