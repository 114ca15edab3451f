// The systems of a dashboard as plain nodes: one row each, a button that shows the system below.

import { h } from "../shared/dom.js";
import { count, look, memory, plural } from "../shared/format.js";
import { freshBadge } from "../shared/fresh_badge.js";
import { icon } from "../shared/icons.js";

/** Draw `state` (null before the first); `stale` is how long the dashboard itself is silent. */
export function drawDashboard(state, stale) {
  const systems = state?.systems ?? [];
  return [
    h(
      "div",
      { key: "header", class: "al-header" },
      h("span", { class: "al-title" }, icon("system", 14), h("strong", {}, "accel_lab"), h("span", { class: "al-muted" }, dashboardSummary(systems))),
      h("span", { class: "al-chips" }),
      freshBadge(state, stale),
    ),
    systems.length
      ? h("nav", { key: "systems", "aria-label": "Systems" }, h("ul", { class: "al-dashboard-list" }, systems.map((system) => dashboardRow(system, system.key === state.shown))))
      : state && h("p", { key: "none", class: "al-dashboard-none" }, "No system runs. One appears here as soon as a notebook or a script of yours opens it: ", h("code", {}, "System()")),
    state?.unkept && h("p", { key: "unkept", class: "al-dashboard-none" }, `No scrubber for ${state.unkept}.`),
  ].filter(Boolean);
}

/** How many there are, and in how many processes. */
export function dashboardSummary(systems) {
  const running = systems.filter((system) => !system.ended);
  const processes = new Set(running.map((system) => system.pid)).size;
  const recorded = systems.filter((system) => system.ended === "recorded").length;
  const ended = systems.length - running.length - recorded;
  const all = `${plural(running.length, "system")} in ${processes} ${processes === 1 ? "process" : "processes"}`;
  return [(!recorded || recorded < systems.length) && all, ended && `${ended} ended`, recorded && plural(recorded, "recording")].filter(Boolean).join(" · ");
}

function dashboardRow(system, isShown) {
  const { key, name, program, folder, pid } = system;
  const [tone, glyph, words] = dashboardState(system);
  return h(
    "li",
    { key },
    h(
      "button",
      { type: "button", class: `al-dashboard-row${system.ended && system.ended !== "killed" ? " al-last" : ""}`, "data-system": key, "aria-current": isShown ? "true" : null },
      h("span", { class: "al-dashboard-badge" }, h("span", { class: `al-badge ${tone}` }, icon(glyph, 12), words)),
      h("strong", { class: "al-dashboard-name" }, name),
      h("span", { class: "al-dashboard-place" }, h("span", {}, program), h("span", { class: "al-muted al-dashboard-folder", title: folder }, folder)),
      h("span", { class: "al-muted al-dashboard-figure" }, `pid ${pid}`),
      h("span", { class: "al-muted al-dashboard-figure" }, system.ended ? "" : `up ${dashboardTime(system.up_s)}`),
      h("span", { class: "al-dashboard-devices" }, Object.entries(system.states ?? {}).map(dashboardChip)),
      h("span", { class: "al-dashboard-figure" }, memory(system.used_bytes, system.total_bytes)),
      h("span", { class: "al-dashboard-figure" }, dashboardCounts(system)),
    ),
  );
}

/** Tone, icon and words of what is known of a system. */
export function dashboardState({ ended, stale_s: stale }) {
  if (ended === "recorded") return ["al-off", "restarting", "recording"];
  if (ended === "killed") return ["al-bad", "warn", "ended · process gone"];
  if (ended) return ["al-off", "stopped", "ended"];
  if (stale !== undefined) return ["al-warn", "half-open", `stale ${dashboardTime(stale)}`];
  return ["al-live al-ok", "running", "live"];
}

function dashboardChip([state, n]) {
  const { tone, icon: name } = look(state);
  return h("span", { key: state, class: `al-chip al-${tone}` }, icon(name, 12), `${count(n)} ${state}`);
}

function dashboardCounts({ ended, in_flight: flight, restarts, lost }) {
  const counts = [!ended && flight && `${count(flight)} in flight`, restarts && plural(restarts, "restart"), lost && `${count(lost)} samples lost`];
  return counts.filter(Boolean).join(" · ");
}

/** Whole seconds up to a minute, whole minutes up to an hour, whole hours: it never runs backwards. */
export function dashboardTime(s) {
  if (s < 60) return `${s} s`;
  return s < 3600 ? `${Math.floor(s / 60)} min` : `${Math.floor(s / 3600)} h`;
}
