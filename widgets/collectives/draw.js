// The worlds of a system as plain nodes: of each its ring, its ranks, what it does and how it healed.

import { h } from "../shared/dom.js";
import { clockTime, count, plural } from "../shared/format.js";
import { freshBadge } from "../shared/fresh_badge.js";
import { icon } from "../shared/icons.js";
import { collectivesWord } from "./look.js";
import { drawRing } from "./ring.js";

const BUS_HEIGHT = 24;
const BUS_BAR = 4; // units from one bar to the next
const BUS_BARS = 48;
const LISTED_RANKS = 24;

/** What only this page knows. */
export function collectivesView() {
  return {
    selection: null, // the actor that all views look at
    steps: {}, // of each world the step of its ring that is shown, from 1; 0 for none
    stale: null,
  };
}

/** Draw `state` (null before the first one) as `view` sees it. */
export function drawCollectives(state, view) {
  const worlds = state?.worlds ?? [];
  return [
    collectivesHeader(state, worlds, view),
    h(
      "div",
      { key: "scroll", class: `al-collectives-scroll${state?.closed ? " al-collectives-last" : ""}`, tabindex: 0, role: "region", "aria-label": "Worlds" },
      worlds.map((world) => drawWorld(world, state.lab, view)),
      worlds.length === 0 && h("p", { key: "note", class: "al-collectives-note" }, collectivesNote(state)),
    ),
    h("p", { key: "said", class: "al-sr", role: "status" }, collectivesSaid(worlds)),
  ];
}

function collectivesNote(state) {
  if (!state) return "Waiting for the first look.";
  return state.replay || state.past ? "No world was seen then." : "No world was opened. lab.world() makes one of all devices.";
}

function collectivesHeader(state, worlds, view) {
  const ill = worlds.filter((world) => world.state === "forming" || world.state === "given up").length;
  return h(
    "div",
    { key: "header", class: "al-header" },
    h("span", { class: "al-title" }, icon("system", 14), h("strong", {}, state?.lab || "accel_lab"), h("span", { class: "al-muted" }, "collectives")),
    h(
      "span",
      { class: "al-chips" },
      worlds.length > 1 && h("span", { key: "worlds", class: "al-chip al-off" }, plural(worlds.length, "world")),
      ill > 0 && h("span", { key: "ill", class: "al-chip al-warn" }, icon("warn", 12), `${count(ill)} not whole`),
    ),
    freshBadge(state, view.stale),
  );
}

/** The newest thing that became of a world: a screen reader hears it. */
function collectivesSaid(worlds) {
  const rows = worlds.flatMap(({ name, healing = [] }) => healing.slice(0, 1).map((row) => ({ name, ...row })));
  const newest = rows.reduce((one, other) => (one && one.at >= other.at ? one : other), null);
  return newest ? `${newest.name}: epoch ${newest.epoch} ${newest.word} ${newest.what}` : "";
}

function drawWorld(world, lab, view) {
  const { name, state, epoch, ranks, done, failed, op, late, bus, ended, healing, ring } = world;
  const shown = ring ? Math.min(view.steps[name] ?? 0, ring.steps.length) : 0;
  return h(
    "section",
    { key: name, class: "al-collectives-world", "aria-label": name, "data-world": name },
    h(
      "div",
      { key: "name", class: "al-collectives-name" },
      h("strong", {}, name),
      collectivesWord(state),
      h("span", { class: "al-collectives-epoch" }, `epoch ${epoch}`),
      h("span", { class: "al-muted" }, plural(ranks.length, "rank")),
      h("span", { class: "al-muted" }, `${count(done)} done`),
      failed && h("span", { key: "failed", class: "al-word al-bad" }, icon("warn", 12), `${count(failed)} failed`),
    ),
    h("div", { key: "ring", class: "al-collectives-ring" }, drawRing(world, shown ? ring.steps[shown - 1] : null), ring && worldSteps(name, ring, shown)),
    h(
      "div",
      { key: "beside", class: "al-collectives-beside" },
      worldOperation(op, state),
      worldRanks(ranks, lab, view),
      h("div", { key: "figures", class: "al-collectives-figures" }, late && worldLate(late), bus && worldBus(bus)),
    ),
    h("div", { key: "below", class: "al-collectives-below" }, ended && worldEnded(ended), healing && worldHealing(healing)),
  );
}

/** The steps of a ring, to go through one by one. */
function worldSteps(world, { call, part, steps }, shown) {
  const button = (to, words, label) => h("button", { key: words, type: "button", class: "al-collectives-step", "data-world-step": world, "data-step": to, disabled: to < 0 || to > steps.length ? "" : null, "aria-label": label }, words);
  return h(
    "div",
    { key: "steps", class: "al-collectives-steps", role: "group", "aria-label": `Steps of ${call}` },
    h("div", { key: "buttons" }, button(shown - 1, "‹", "Step back"), h("span", { key: "which" }, shown ? `step ${shown} of ${steps.length}` : `${plural(steps.length, "step")} of ${part}`), button(shown + 1, "›", "Next step")),
    shown > 0 && h("p", { key: "words", class: "al-muted", role: "status" }, stepWords(steps[shown - 1])),
  );
}

/** What happens in a step: who sends which part to whom, and what is done with it there. */
export function stepWords([phase, parts]) {
  const sent = parts.map((part, rank) => `part ${part} from ${rank} to ${(rank + 1) % parts.length}`);
  return `${sent.join(", ")}; ${phase === "folds" ? "there it is reduced with what that rank has" : "there it is kept"}`;
}

/** What is under way, in a sentence. */
function worldOperation(op, state) {
  if (!op) return h("p", { key: "op", class: "al-collectives-op al-muted" }, state === "whole" ? "Nothing is under way." : `The world is ${state}.`);
  const { call, what, algorithm, missing, more, bytes } = op;
  return h(
    "p",
    { key: "op", class: "al-collectives-op" },
    h("span", { key: "what" }, h("strong", {}, call), what && ` of ${what}`, algorithm && `, ${algorithm}`, op.for ? `, for ${op.for}` : ", not begun"),
    missing && h("span", { key: "missing", class: "al-word al-warn" }, icon("half-open", 12), `waits for ${missing.join(", ")}`),
    more && h("span", { key: "more", class: "al-muted" }, `${count(more)} more queued, ${bytes} in all`),
  );
}

/** The rows of ranks; of very many those that are not as most are. */
export function listedRanks(ranks) {
  const rows = ranks.map((one, rank) => ({ ...one, rank }));
  if (rows.length <= LISTED_RANKS) return { shown: rows, rest: 0, common: "" };
  const many = new Map();
  for (const { word } of rows) many.set(word, (many.get(word) ?? 0) + 1);
  const common = [...many].reduce((one, other) => (other[1] > one[1] ? other : one))[0];
  const shown = rows.filter(({ word }) => word !== common).slice(0, LISTED_RANKS);
  return { shown, rest: rows.length - shown.length, common: shown.length < rows.length - many.get(common) ? "of any state" : common };
}

function worldRanks(ranks, lab, { selection }) {
  const head = (title, name) => h("th", { key: title, scope: "col", class: name }, title);
  const { shown, rest, common } = listedRanks(ranks);
  return h(
    "table",
    { key: "ranks", class: "al-table al-collectives-table al-collectives-ranks" },
    h("caption", { class: "al-sr" }, "Ranks"),
    h("thead", {}, h("tr", {}, head("Rank", "al-collectives-rank"), head("Device"), head("State"), head("Began", "al-collectives-number al-collectives-began"), head("Usually", "al-collectives-number al-collectives-usual"))),
    h(
      "tbody",
      {},
      shown.map(({ device, word, after, usual, rank }) => {
        const path = `${lab}/${device}`;
        const isRelated = Boolean(selection) && (selection === path || selection.startsWith(`${path}/`));
        return h(
          "tr",
          { key: device, class: isRelated ? "al-collectives-related" : null, "data-device": device },
          h("td", { class: "al-collectives-rank" }, String(rank)),
          h("th", { scope: "row" }, h("button", { type: "button", class: "al-collectives-device", "data-path": path, "aria-pressed": String(isRelated) }, device)),
          h("td", {}, collectivesWord(word)),
          h("td", { class: "al-collectives-number al-collectives-began" }, after),
          h("td", { class: "al-collectives-number al-collectives-usual" }, usual),
        );
      }),
      rest > 0 && h("tr", { key: "rest" }, h("td", { class: "al-collectives-rank" }), h("td", { class: "al-muted", colspan: 4 }, `and ${plural(rest, "more rank")}: ${common}`)),
    ),
  );
}

function worldLate({ device, by, of, warn }) {
  return h(
    "div",
    { key: "late", class: "al-collectives-figure" },
    h("div", { class: "al-muted" }, "Begins last"),
    h("div", { class: warn ? "al-word al-warn" : null }, warn && icon("half-open", 12), h("strong", {}, device), h("span", {}, ` by ${by}`)),
    h("div", { class: "al-muted" }, `median of ${of}`),
  );
}

function worldBus({ bars, newest, best, link }) {
  const from = BUS_BARS - bars.length;
  const rect = (share, i) => {
    const height = Math.max(1, share * (BUS_HEIGHT - 1));
    return h("rect", { key: i, x: (from + i) * BUS_BAR, y: Number((BUS_HEIGHT - height).toFixed(1)), width: BUS_BAR - 1, height: Number(height.toFixed(1)) });
  };
  return h(
    "div",
    { key: "bus", class: "al-collectives-figure al-collectives-bus" },
    h("div", { class: "al-muted" }, "Bus bandwidth"),
    h("div", {}, h("strong", {}, newest), h("span", { class: "al-muted" }, ` best ${best}`)),
    link && h("div", { key: "link", class: "al-muted", title: "The slowest copy from a rank to the next one, by lab.topology.measure()" }, `slowest link ${link}`),
    h("svg", { class: "al-collectives-bars", viewBox: `0 0 ${BUS_BARS * BUS_BAR} ${BUS_HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" }, bars.map(rect)),
  );
}

function worldEnded(ended) {
  const head = (title, name) => h("th", { key: title, scope: "col", class: name }, title);
  return h(
    "table",
    { key: "ended", class: "al-table al-collectives-table al-collectives-ended" },
    h("caption", { class: "al-sr" }, "Last operations"),
    h("thead", {}, h("tr", {}, head("Last operations"), head("Of"), head("Way", "al-collectives-way"), head("Took", "al-collectives-number"), head("Bus", "al-collectives-number"), head("Last to begin", "al-collectives-lastly"))),
    h(
      "tbody",
      {},
      ended.map(({ group, call, what, algorithm, took, bandwidth, last, failure }) =>
        h(
          "tr",
          { key: group },
          h("th", { scope: "row" }, call),
          h("td", {}, what),
          failure
            ? [
                h("td", { key: "way", class: "al-collectives-way" }, algorithm),
                h("td", { key: "failed", colspan: 2, title: failure }, h("span", { class: "al-word al-bad" }, icon("warn", 12), "failed"), h("span", { class: "al-muted al-collectives-reason" }, ` ${failure}`)),
                h("td", { key: "last", class: "al-muted al-collectives-lastly", title: failure }, failure),
              ]
            : [
                h("td", { key: "way", class: "al-collectives-way" }, algorithm),
                h("td", { key: "took", class: "al-collectives-number" }, took),
                h("td", { key: "bus", class: "al-collectives-number" }, bandwidth),
                h("td", { key: "last", class: "al-collectives-lastly" }, last),
              ],
        ),
      ),
    ),
  );
}

function worldHealing(healing) {
  return h(
    "ol",
    { key: "healing", class: "al-collectives-healing", "aria-label": "Epochs, the newest first" },
    healing.map(({ at, epoch, word, what }) =>
      h("li", { key: `${at} ${word}` }, h("time", { class: "al-muted" }, clockTime(at)), h("span", { class: "al-collectives-epoch" }, `epoch ${epoch}`), collectivesWord(word), h("span", { class: "al-collectives-why", title: what }, what)),
    ),
  );
}
