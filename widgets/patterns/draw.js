// The patterns of a system as plain nodes: of each its figures, its parts and what it decided last.

import { h } from "../shared/dom.js";
import { clockTime, count, look, plural } from "../shared/format.js";
import { freshBadge } from "../shared/fresh_badge.js";
import { icon } from "../shared/icons.js";

/** How a request may end without an answer. */
const PATTERN_ENDS = ["failed", "expired", "cancelled", "refused"];
const PATTERN_BAD = new Set(["failed", "expired"]);

/** The icon and the tone of what a part does; one that this file does not know still shows its word. */
const PATTERN_WORDS = {
  serves: ["running", "ok"],
  avoided: ["half-open", "warn"],
  drains: ["restarting", "busy"],
  lost: ["open", "bad"],
  "on trial": ["starting", "busy"],
  kept: ["idle", "off"],
  reads: ["running", "ok"],
  writes: ["play", "busy"],
};

/** What only this page knows. */
export function patternsView() {
  return { stale: null };
}

/** Draw `state` (null before the first one) as `view` sees it. */
export function drawPatterns(state, view) {
  const patterns = state?.patterns ?? [];
  return [
    patternsHeader(state, patterns, view),
    h(
      "div",
      { key: "scroll", class: `al-patterns-scroll${state?.closed ? " al-patterns-last" : ""}`, tabindex: 0, role: "region", "aria-label": "Patterns" },
      patterns.map(drawPattern),
      patterns.length === 0 && h("p", { key: "note", class: "al-patterns-note" }, patternsNote(state)),
    ),
  ];
}

function patternsNote(state) {
  if (!state) return "Waiting for the first look.";
  return state.replay || state.past ? "No pattern was seen then." : "No pattern was made. DynamicBatchingServer(lab, function) is one.";
}

function patternsHeader(state, patterns, view) {
  const sum = (name) => patterns.reduce((total, one) => total + (one[name] ?? 0), 0);
  const failed = sum("failed");
  return h(
    "div",
    { key: "header", class: "al-header" },
    h("span", { class: "al-title" }, icon("system", 14), h("strong", {}, state?.lab || "accel_lab"), h("span", { class: "al-muted" }, "patterns")),
    h(
      "span",
      { class: "al-chips" },
      patterns.length > 1 && h("span", { key: "count", class: "al-chip al-off" }, plural(patterns.length, "pattern")),
      failed > 0 && h("span", { key: "failed", class: "al-chip al-bad" }, icon("warn", 12), `${count(failed)} failed`),
    ),
    freshBadge(state, view.stale),
  );
}

function patternWord(word, [name, tone]) {
  return h("span", { class: `al-word al-${tone}` }, icon(name, 12), word);
}

function drawPattern(pattern) {
  const { name, kind, state, parts, decisions, noun, unlisted } = pattern;
  const { icon: glyph, tone } = look(state);
  return h(
    "section",
    { key: name, class: "al-patterns-one", "aria-label": name, "data-pattern": name },
    h("div", { key: "name", class: "al-patterns-name" }, h("strong", {}, name), patternWord(state, [glyph, tone]), h("span", { class: "al-muted" }, kind)),
    patternFigures(pattern),
    (parts || decisions) &&
      h("div", { key: "below", class: `al-patterns-below${parts && decisions ? " al-patterns-both" : ""}` }, parts && patternParts(noun, parts, unlisted), decisions && patternDecisions(decisions)),
  );
}

/** What is counted and timed: each a label above its value. */
function patternFigures(pattern) {
  const { waiting, running, answered, calls, size, reruns, p50, p99, more = [] } = pattern;
  const figure = (label, value, tone) =>
    h("div", { key: label, class: "al-patterns-figure" }, h("dt", { class: "al-muted" }, label), h("dd", { class: tone && `al-word al-${tone}` }, tone === "bad" && icon("warn", 12), value));
  return h(
    "dl",
    { key: "figures", class: "al-patterns-figures" },
    figure("Waiting", count(waiting)),
    figure("Running", count(running), running > 0 && "busy"),
    figure("Answered", count(answered)),
    PATTERN_ENDS.filter((end) => pattern[end]).map((end) => figure(end[0].toUpperCase() + end.slice(1), count(pattern[end]), PATTERN_BAD.has(end) ? "bad" : "warn")),
    calls && figure("Calls", count(calls)),
    size && figure("A call", size),
    reruns && figure("Reruns", count(reruns), "warn"),
    p50 && figure("p50", p50),
    p99 && figure("p99", p99),
    more.map(([what, value]) => figure(what[0].toUpperCase() + what.slice(1), value)),
  );
}

function patternParts(noun, parts, unlisted) {
  const words = parts.some(({ word }) => word);
  const counted = ["waiting", "running", "done", "failed"].filter((what) => what === "running" || what === "done" || parts.some((part) => part[what]));
  const details = parts.some(({ detail }) => detail);
  const title = noun[0].toUpperCase() + noun.slice(1);
  const head = (text, name) => h("th", { key: text, scope: "col", class: name }, text);
  const columns = 1 + words + counted.length + details;
  return h(
    "table",
    { key: "parts", class: "al-table al-patterns-table" },
    h("caption", { class: "al-sr" }, `${title}s`),
    h("thead", {}, h("tr", {}, head(title), words && head("State", "al-patterns-state"), counted.map((what) => head(what[0].toUpperCase() + what.slice(1), "al-patterns-number")), details && head("Detail", "al-patterns-detail"))),
    h(
      "tbody",
      {},
      parts.map((part, place) =>
        h(
          "tr",
          { key: place, class: part.running ? "al-patterns-at" : null, "data-part": part.name },
          h("th", { scope: "row", title: part.name }, part.name),
          words && h("td", { key: "word" }, part.word && patternWord(part.word, PATTERN_WORDS[part.word] ?? ["half-open", "warn"])),
          counted.map((what) => h("td", { key: what, class: `al-patterns-number${what === "failed" && part.failed ? " al-patterns-bad" : ""}` }, count(part[what] ?? 0))),
          details && h("td", { key: "detail", class: "al-muted al-patterns-detail", title: part.detail }, part.detail),
        ),
      ),
      unlisted && h("tr", { key: " rest" }, h("td", { class: "al-muted", colspan: columns }, `and ${count(unlisted)} more`)),
    ),
  );
}

function patternDecisions(decisions) {
  return h(
    "ol",
    { key: "decisions", class: "al-patterns-decisions", "aria-label": "Newest decisions" },
    decisions.map(({ at, what, of, why }) =>
      h("li", { key: `${at} ${what} ${of}` }, h("time", { class: "al-muted" }, clockTime(at)), h("span", { class: "al-patterns-what" }, what, of && ` ${of}`), h("span", { class: "al-muted al-patterns-why", title: why }, why)),
    ),
  );
}
