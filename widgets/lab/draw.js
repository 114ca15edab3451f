// The lab's own pieces as plain nodes: the bar above all parts, and the head of a pane.

import { h } from "../shared/dom.js";
import { freshBadge, isGone } from "../shared/fresh_badge.js";
import { icon } from "../shared/icons.js";
import { replayBadge } from "../shared/replay.js";
import { drawCrash } from "./crash.js";

/** What is known of the page that the bar shows; see `bus.js`. */
export function labBarView(bus) {
  const keys = ["selection", "span", "paused", "stale", "replay"];
  return Object.fromEntries(keys.map((key) => [key, bus.get(key)]));
}

/** The bar: whose lab it is, what all parts look at, how fresh it is, and whether it goes on. */
export function drawLabBar(state, { selection, span, paused, stale, replay }) {
  const name = state?.tree?.root?.name;
  return [
    h("span", { key: "name", class: "al-title" }, icon("system", 14), h("strong", {}, name ?? "accel_lab")),
    state?.running && labRunning(state.running),
    state?.crash && drawCrash(state.crash, !state.closed && !replay && !isGone(stale)),
    h(
      "span",
      { key: "shared", class: "al-lab-shared" },
      selection && labPick("selection", "Selected", labShort(selection, name)),
      span && labPick("span", "Span", labSeconds(span[1] - span[0])),
    ),
    h(
      "span",
      { key: "fresh", class: "al-lab-fresh" },
      replay && replayBadge(replay),
      paused ? h("span", { key: "paused", class: "al-badge al-warn" }, icon("pause", 12), "paused") : (!replay || isGone(stale)) && freshBadge(state, stale),
      labGoOn(state, paused, replay),
    ),
  ].filter(Boolean);
}

/** What a device has been at the longest, for how long, and how many others there are. */
function labRunning({ what, how_long: howLong, more }) {
  return h(
    "span",
    { key: "running", class: "al-lab-running" },
    icon("play", 12),
    h("span", { class: "al-sr" }, "running "),
    h("strong", {}, what),
    h("span", { class: "al-lab-how-long" }, ` · ${howLong}`),
    more && h("span", { key: "more", class: "al-muted" }, `+${more} more`),
  );
}

/** The button that has the page hold still, or go on with what is now. */
function labGoOn(state, paused, replay) {
  const button = (deed, name, words) => h("button", { key: deed, type: "button", class: "al-lab-button", "data-do": deed }, icon(name, 12), words);
  if (paused) return button("pause", "play", "Follow live");
  if (replay && state?.journal?.live === false) return button("live", "play", state.journal.closed ? "Back to the end" : "Back to live");
  return !state?.closed && button("pause", "pause", "Pause");
}

/** Something that all parts look at, with a button to look away. */
function labPick(key, what, words) {
  return h(
    "span",
    { key, class: "al-lab-pick" },
    h("span", { class: "al-muted" }, `${what} `),
    h("span", { class: "al-lab-picked" }, words),
    h("button", { type: "button", class: "al-lab-clear", "data-do": "clear", "data-key": key, "aria-label": `Clear ${what.toLowerCase()}` }, icon("clear", 12)),
  );
}

/**
 * The head of a pane: the button that folds it, and its parts as tabs when there are several.
 *
 * A part by itself has a header with its title, which is drawn here only while the pane is folded.
 */
export function drawLabHead({ tabs, shown, open }) {
  const title = tabs.map((tab) => tab.title).join(", ");
  const shownId = tabs.find(({ name }) => name === shown).id;
  return [
    h(
      "button",
      { key: "fold", type: "button", class: "al-lab-fold", "data-do": "fold", "aria-expanded": String(open), "aria-controls": shownId, "aria-label": title },
      h("span", { class: `al-fold${open ? " al-open" : ""}` }, icon("fold", 12)),
      tabs.length === 1 && !open && h("span", { key: "title", class: "al-lab-title" }, title),
    ),
    tabs.length > 1 && h("div", { key: "tabs", class: "al-lab-tabs", role: "tablist", "aria-label": title }, tabs.map((tab) => labTab(tab, tab.name === shown))),
  ].filter(Boolean);
}

function labTab({ name, title, id }, isShown) {
  return h("button", { key: name, type: "button", class: "al-lab-tab", role: "tab", "aria-selected": String(isShown), "aria-controls": id, tabindex: isShown ? 0 : -1, "data-do": "tab", "data-tab": name }, title);
}

/** A path without the name of the system, which stands beside it. */
function labShort(path, name) {
  return path.startsWith(`${name}/`) ? path.slice(name.length + 1) : path;
}

/** A stretch of time: 340 µs, 12.5 ms, 2.4 s. */
export function labSeconds(s) {
  const [scale, unit] = s < 1e-3 ? [1e6, "µs"] : s < 1 ? [1e3, "ms"] : [1, "s"];
  return `${Number((s * scale).toPrecision(3))} ${unit}`;
}
