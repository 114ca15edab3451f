// The journal view as plain nodes: where it is, what moves it, the strip, and the entries around it.

import { h } from "../shared/dom.js";
import { clockTime, plural } from "../shared/format.js";
import { freshBadge, isGone } from "../shared/fresh_badge.js";
import { icon } from "../shared/icons.js";
import { replayWhere } from "../shared/replay.js";

const JOURNAL_HIGH = 30; // of the tallest bar, in units of the strip
const JOURNAL_APART = 3; // parts of the strip between two drawings of a kind, which would else overlap
const JOURNAL_SHAPES = {
  differs: ["M2 4.4h8M2 7.6h8M8 1.8 4 10.2"],
  alike: ["M2 4.4h8M2 7.6h8"],
  start: ["M3 2.5v7", "M9.5 2.4 4.8 6l4.7 3.6z"],
  back: ["M8.5 2.4 3.8 6l4.7 3.6z"],
  on: ["M3.5 2.4 8.2 6l-4.7 3.6z"],
  end: ["M9 2.5v7", "M2.5 2.4 7.2 6l-4.7 3.6z"],
};

/** What only the person who looks decides or is told. */
export function journalLooks() {
  return {
    stale: null, // seconds, once the kernel has been silent for too long
    dragged: null, // the moment where the pointer holds the cursor
    hovered: null, // the moment where the pointer is
    open: new Set(), // numbers of the entries whose details are shown
    said: "", // the newest news, for screen readers
  };
}

/** Whether the past is shown instead of the system. */
export function journalReplays(state) {
  return Boolean(state) && state.live !== true && state.count > 0;
}

/** Draw `state` (null before the first one) as `view` sees it; what moves it may be drawn `apart`. */
export function drawJournal(state, view, apart = false) {
  return [
    journalHeader(state, view),
    !apart && journalReplays(state) && journalBanner(state),
    !apart && state?.count > 0 && journalControls(state),
    !apart && state?.count > 0 && journalStrip(state, view),
    state?.compared && journalCompared(state),
    state?.dropped > 0 && journalGap(state),
    state?.count > 0 ? journalTable(state, view) : journalNote(state),
    h("div", { key: "said", class: "al-sr", role: "status" }, view.said),
  ].filter(Boolean);
}

/** Draw what moves the journal, apart from its entries. */
export function drawJournalControls(state, view) {
  if (!state?.count) return [h("p", { key: "none", class: "al-muted al-journal-nothing" }, "Nothing to replay yet.")];
  const where = state.live === true ? "live" : `${state.position.toLocaleString("en")} of ${state.count.toLocaleString("en")}`;
  return [journalControls(state), journalStrip(state, view), h("span", { key: "where", class: "al-journal-at", title: state.live === true ? null : replayWhere(state) }, where)];
}

function journalHeader(state, { stale }) {
  const { kind = "journal", name, count = 0, faults = 0, losses = 0, dropped = 0, damage, unread } = state ?? {};
  const noun = kind === "recording" ? "fact" : count === 1 ? "entry" : "entries";
  const many = kind === "recording" ? plural(count, noun) : `${count.toLocaleString("en")} ${noun}`;
  const chip = (key, tone, name, words, title) => h("span", { key, class: `al-chip ${tone}`, title }, icon(name, 12), words);
  return h(
    "div",
    { key: "header", class: "al-header" },
    h("span", { class: "al-title" }, icon("timeline", 14), h("strong", {}, name ? `${kind === "recording" ? "Recording" : "Journal"} of ${name}` : "Journal"), state && h("span", { class: "al-muted" }, many)),
    h(
      "span",
      { class: "al-chips" },
      ...journalFailures(kind, faults, losses).map((words) => chip(words, "al-bad", "warn", words)),
      dropped > 0 && chip("dropped", "al-warn", "half-open", `${dropped.toLocaleString("en")} gone`),
      unread && chip("unread", "al-warn", "half-open", "what follows cannot be read here", unread),
      damage && chip("damage", "al-bad", "open", "damaged", damage),
    ),
    journalReplays(state) && !isGone(stale) ? h("span", { key: "badge", class: "al-badge al-warn" }, icon("restarting", 12), "replay") : freshBadge(state, stale),
  );
}

/** What went wrong, in words: supervision counts as one fault a loss and all requests that it took. */
function journalFailures(kind, faults, losses) {
  if (kind === "recording") return faults ? [`${plural(faults, "fact")} of faults`] : [];
  const failed = faults - losses;
  return [failed > 0 && plural(failed, "failed request"), losses > 0 && `${losses} ${losses === 1 ? "loss" : "losses"} of a context`].filter(Boolean);
}

function journalBanner(state) {
  return h(
    "div",
    { key: "banner", class: "al-journal-banner al-warn" },
    icon("restarting", 12),
    h("strong", {}, "REPLAY"),
    h("span", { class: "al-journal-where" }, replayWhere(state)),
    h("span", { class: "al-journal-hint" }, "what is shown has been, and buttons do nothing to it"),
    state.live === false && journalButton("live", "running", state.closed ? "Back to the last state" : "Back to live"),
  );
}

function journalControls(state) {
  const { position, count, playing = false, speed, speeds, faults } = state;
  return h(
    "div",
    { key: "controls", class: "al-journal-controls" },
    h(
      "span",
      { class: "al-journal-group", role: "group", "aria-label": "Position" },
      journalIconButton("start", "To the start", position === 0),
      journalIconButton("back", "One back", position === 0),
      h("button", { key: "play", type: "button", class: "al-journal-button al-journal-play", "data-do": playing ? "pause" : "play" }, icon(playing ? "pause" : "play", 12), playing ? "Pause" : "Play"),
      journalIconButton("on", "One on", position === count),
      journalIconButton("end", "To the end", position === count && state.live !== true),
    ),
    h(
      "label",
      { class: "al-journal-speed" },
      h("span", { class: "al-muted" }, "Speed"),
      h("select", { class: "al-journal-button", "data-do": "speed", "aria-label": "Speed" }, speeds.map((one) => h("option", { key: one, value: one, selected: one === speed }, `${one}×`))),
    ),
    h("button", { key: "fault", type: "button", class: "al-journal-button", "data-do": "next_fault", disabled: faults === 0 }, icon("warn", 12), "Next fault"),
    h("span", { key: "keys", class: "al-journal-keys al-muted" }, "← → step · Page ↑ ↓ · Home End · space plays · n next fault"),
  );
}

function journalIcon(name) {
  const shapes = JOURNAL_SHAPES[name].map((d) => h("path", { d, fill: d.endsWith("z") ? "currentColor" : "none" }));
  return h("svg", { class: "al-icon", viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" }, shapes);
}

function journalButton(deed, name, words) {
  return h("button", { key: deed, type: "button", class: "al-journal-button", "data-do": deed }, icon(name, 12), words);
}

function journalIconButton(deed, words, disabled) {
  return h(
    "button",
    { key: deed, type: "button", class: "al-journal-button al-journal-small", "data-do": deed, title: words, "aria-label": words, disabled },
    journalIcon(deed),
  );
}

/** The share of the strip before a moment, 0 to 1. */
export function journalShare({ first, last }, at) {
  return last > first ? Math.min(1, Math.max(0, (at - first) / (last - first))) : 1;
}

function journalStrip(state, { dragged, hovered }) {
  const { strip, first, last, position, count } = state;
  const at = dragged ?? state.at;
  const peak = Math.max(1, ...strip.bins);
  const width = strip.bins.length;
  const bars = strip.bins.map((n, i) => (n ? `M${i}.08 ${JOURNAL_HIGH}v-${(2 + Math.sqrt(n / peak) * (JOURNAL_HIGH - 2)).toFixed(1)}h.84V${JOURNAL_HIGH}z` : "")).join("");
  const left = (share) => `left: ${(share * 100).toFixed(2)}%`;
  const within = (share) => `left: clamp(7px, ${(share * 100).toFixed(2)}%, 100% - 7px)`;
  const marks = (kind, name, bins = []) => {
    let drawn = -Infinity;
    return bins.map((bin) => {
      const isApart = bin - drawn >= JOURNAL_APART;
      if (isApart) drawn = bin;
      return h("span", { key: `${kind}${bin}`, class: `al-journal-mark al-journal-${kind}`, style: within((bin + 0.5) / width) }, isApart && icon(name, 12));
    });
  };
  const differing = (state.compared?.found ?? []).filter((one) => one.at !== undefined);
  const word = state.live ? "live" : replayWhere(state);
  return h(
    "div",
    { key: "strip", class: "al-journal-strip" },
    h(
      "div",
      { class: "al-journal-slider", role: "slider", tabindex: 0, "aria-label": "Position", "aria-valuemin": 0, "aria-valuemax": count, "aria-valuenow": position, "aria-valuetext": word },
      h("svg", { key: "bars", class: "al-journal-bars", viewBox: `0 0 ${width} ${JOURNAL_HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" }, h("path", { d: bars })),
      h("span", { key: "past", class: "al-journal-past", style: `width: ${(journalShare(state, at) * 100).toFixed(2)}%` }),
      marks("turn", "restarting", strip.turns),
      marks("fault", "warn", strip.faults),
      differing.map((one) => h("span", { key: `differs ${one.device}`, class: "al-journal-mark al-journal-differs", style: left(journalShare(state, one.at)) }, journalIcon("differs"))),
      hovered !== null && h("span", { key: "hover", class: "al-journal-hover", style: left(journalShare(state, hovered)) }),
      h("span", { key: "cursor", class: "al-journal-cursor", style: left(journalShare(state, at)) }),
    ),
    h(
      "div",
      { class: "al-journal-ends al-muted", "aria-hidden": "true" },
      h("span", {}, clockTime(first)),
      h("span", { class: "al-journal-legend" }, strip.faults && h("span", { class: "al-chip al-bad" }, icon("warn", 12), "fault"), strip.turns && h("span", { class: "al-chip al-busy" }, icon("restarting", 12), "new generation"), differing.length > 0 && h("span", { class: "al-chip al-warn" }, journalIcon("differs"), "differs")),
      h("span", {}, hovered === null ? clockTime(last) : clockTime(hovered)),
    ),
  );
}

function journalTable({ kind, window: rows, position, live }, { open }) {
  const heads = [["entry", kind === "recording" ? "Fact" : "Entry"], ["time", "Time"], ["device", "Device"], kind === "recording" ? ["gen", "Gen"] : ["cell", "Cell"], ["what", "What"], ["outcome", "Outcome"]];
  return h(
    "div",
    { key: "entries", class: "al-journal-scroll", tabindex: 0, role: "region", "aria-label": "Entries" },
    h(
      "table",
      { class: "al-table al-journal-table" },
      h("caption", { class: "al-sr" }, live ? "The newest entries first" : "Entries around the position"),
      h("thead", {}, h("tr", {}, heads.map(([key, name]) => h("th", { key, scope: "col", class: `al-journal-${key}` }, key === "gen" ? h("abbr", { title: "Generation" }, name) : name)))),
      h("tbody", {}, (live ? [...rows].reverse() : rows).flatMap((row) => journalRows(row, position - 1, live, kind, open.has(row.n)))),
    ),
  );
}

/** A row, and its details once they are asked for. */
function journalRows(row, here, live, kind, isOpen) {
  const drawn = journalRow(row, here, live, kind, isOpen);
  return isOpen && row.detail ? [drawn, journalDetails(row)] : [drawn];
}

/** What the journal itself has of an entry: numbers, kind, bytes. */
function journalDetails({ n, detail }) {
  return h(
    "tr",
    { key: `details ${n}`, class: "al-journal-details", memo: JSON.stringify(detail) },
    h("td", {}),
    h("td", { colspan: 5 }, h("ul", { "aria-label": `Details of entry ${n.toLocaleString("en")}` }, detail.map(([what, text], at) => h("li", { key: at }, h("span", { class: "al-muted" }, what), " ", h("code", {}, text))))),
  );
}

function journalRow(row, here, live, kind, isOpen) {
  const { n, at, device = "", generation, cell, what, outcome = "", mark, running = false, detail } = row;
  const fold = detail && h("button", { type: "button", class: `al-journal-fold${isOpen ? " al-journal-open" : ""}`, "data-do": "details", "data-entry": n, "aria-expanded": String(isOpen), "aria-label": `Details of entry ${n.toLocaleString("en")}` }, icon("fold", 12));
  const current = n === here && !live;
  const tone = [current && "al-journal-here", !live && n > here && "al-journal-ahead", mark && `al-journal-is-${mark}`].filter(Boolean).join(" ");
  const sign = mark === "fault" ? [icon("warn", 12), h("span", { class: "al-sr" }, "fault: ")] : mark === "turn" ? [icon("restarting", 12), h("span", { class: "al-sr" }, "new generation: ")] : null;
  return h(
    "tr",
    { key: n, class: `al-journal-row ${tone}`.trim(), "data-n": n, "aria-current": current ? "true" : null, memo: `${n} ${tone} ${outcome} ${what} ${isOpen}` },
    h("th", { scope: "row", class: "al-journal-entry" }, fold, n.toLocaleString("en")),
    h("td", { class: "al-journal-time" }, clockTime(at)),
    h("td", { class: "al-journal-device" }, device),
    kind === "recording" ? h("td", { key: "gen", class: "al-journal-gen" }, generation ? h("span", { class: "al-journal-tag" }, `g${generation}`) : null) : h("td", { key: "cell", class: "al-journal-cell" }, cell ? `cell ${cell}` : ""),
    h("td", { class: "al-journal-what", title: what }, h("span", { class: "al-journal-cut" }, sign, h("code", {}, what))),
    h("td", { class: "al-journal-outcome", title: outcome }, running ? h("span", { class: "al-word al-busy" }, icon("play", 12), outcome) : h("span", { class: "al-journal-cut" }, outcome)),
  );
}

function journalCompared({ compared }) {
  const { with: other, messages, undigested, found } = compared;
  const head = `${messages.toLocaleString("en")} ${messages === 1 ? "message is" : "messages are"} as in ${other}`;
  return h(
    "div",
    { key: "compared", class: "al-journal-compared" },
    h("div", { class: "al-journal-verdict" }, h("span", { class: `al-word ${found.length ? "al-warn" : "al-ok"}` }, journalIcon(found.length ? "differs" : "alike"), h("strong", {}, found.length ? "The runs differ" : "No difference")), h("span", { class: "al-muted" }, undigested ? `${head} · ${undigested.toLocaleString("en")} without a digest of both results` : head)),
    found.map((one) =>
      h(
        "div",
        { key: one.device, class: "al-journal-difference" },
        h("span", { class: "al-journal-why" }, h("strong", {}, one.device), ` ${one.why}`),
        h("dl", {}, h("dt", {}, "here"), h("dd", {}, one.what ? h("code", {}, one.what) : "nothing"), h("dt", {}, "there"), h("dd", {}, one.other ? h("code", {}, one.other) : "nothing")),
        h("button", { type: "button", class: "al-journal-button", "data-do": "seek", "data-position": one.here + 1 }, `Go to entry ${one.here.toLocaleString("en")}`),
      ),
    ),
  );
}

/** Say in full what is gone and why: a journal that begins in the middle looks as one that is whole. */
function journalGap({ dropped, bound }) {
  const why = bound ?? "forgotten or left out for want of room";
  return h("p", { key: "gap", class: "al-journal-note al-muted" }, `${dropped.toLocaleString("en")} entries are gone: ${why}.`);
}

function journalNote(state) {
  const words = state?.unread ? `None of it could be read here: ${state.unread}.` : state ? "Nothing has been sent yet." : "Waiting for the first entries.";
  return h("p", { key: "note", class: "al-journal-note al-muted" }, words);
}
