// The device tree as plain nodes: a header, a treegrid, and a line that spells one row out.

import { h } from "../shared/dom.js";
import { bytes, count, look, memory, percent, plural, unseen } from "../shared/format.js";
import { freshBadge } from "../shared/fresh_badge.js";
import { icon } from "../shared/icons.js";
import { doing, isTroubled, rows, summary, walk } from "./rows.js";

/** From this many rows on there is a filter. */
export const FILTER_BEYOND = 24;

export const SPARK = { width: 48, height: 15 };

/** What only the person who looks decides; every view of a state has its own. */
export function initialView() {
  return {
    folded: new Set(), // paths
    opened: new Set(), // paths of rows for actors at rest, which are folded unless they are here
    recent: new Set(), // paths of actors that did something a moment ago
    active: null, // the path that has the keyboard's attention
    selected: null, // the path that all views look at
    pointed: null, // the path under the pointer
    filter: "",
    troubledOnly: false,
    marked: new Set(), // paths that restarted a moment ago
    sparks: new Map(), // path -> path data of how busy it was
    stale: null, // seconds, once the kernel has been silent for too long
    said: "", // the newest news, for screen readers
  };
}

/** Draw `state` ({root, closed, unrecorded?}, or null before the first one) as `view` sees it. */
export function draw(state, view) {
  const root = state?.root ?? null;
  const lacking = state?.unrecorded ?? {};
  const visible = visibleRows(state, view);
  const isLarge = rows(root, { folded: new Set(), lacking }).length > FILTER_BEYOND;
  const active = visible.some((row) => row.path === view.active) ? view.active : visible[0]?.path;
  return [
    header(root, state, view, isLarge),
    root && isLarge && toolbar(root, visible, view),
    h("div", { key: "scroll", class: state?.closed ? "al-scroll al-last" : "al-scroll" }, visible.length > 0 && grid(root, visible, active, { ...view, lacking }), note(root, visible, state, view)),
    inspector(visible, active, { ...view, lacking }),
    h("div", { key: "said", class: "al-sr", role: "status" }, view.said),
  ].filter(Boolean);
}

/** The rows that are drawn; what was busy a moment ago, or is looked at, keeps its own. */
export function visibleRows(state, view) {
  const kept = new Set([...view.recent, ...view.marked]);
  const looked = new Set([view.selected, view.active]);
  return rows(state?.root ?? null, { ...view, kept, looked, lacking: state?.unrecorded });
}

function header(root, state, view, isLarge) {
  const { devices, actors, states } = summary(root, state?.unrecorded);
  const isTold = !isLarge && (view.troubledOnly || [...walk(root)].some(([, actor]) => isTroubled(actor)));
  return h(
    "div",
    { key: "header", class: "al-header" },
    h("span", { class: "al-title" }, icon("system", 14), h("strong", {}, root?.name ?? "accel_lab"), root && h("span", { class: "al-muted" }, `${plural(devices, "device")} · ${plural(actors, "actor")}`)),
    h("span", { class: state?.closed ? "al-chips al-last" : "al-chips" }, [...states].map(chip), isTold && attention(view)),
    freshBadge(state, view.stale),
  );
}

/** The button that leaves only what is in trouble; a small tree has it while something is. */
function attention({ troubledOnly }) {
  return h("button", { key: "trouble", type: "button", class: "al-button", "data-do": "trouble", "aria-pressed": String(troubledOnly) }, icon("half-open", 12), "Needs attention");
}

function chip([state, n]) {
  const { tone, icon: name } = look(state);
  return h("span", { key: state, class: `al-chip al-${tone}` }, icon(name, 12), `${count(n)} ${state}`);
}

function toolbar(root, visible, view) {
  const { troubledOnly, filter } = view;
  const total = summary(root).actors;
  const shown = visible.filter(({ quiet }) => !quiet).length;
  return h(
    "div",
    { key: "toolbar", class: "al-toolbar" },
    h("input", { type: "search", class: "al-filter", placeholder: "Filter actors", "aria-label": "Filter actors" }),
    attention(view),
    h("button", { type: "button", class: "al-button", "data-do": "fold" }, "Fold devices"),
    h("button", { type: "button", class: "al-button", "data-do": "unfold" }, "Unfold all"),
    h("span", { class: "al-muted al-shown" }, filter || troubledOnly || shown < total ? `${shown} of ${total} shown` : ""),
  );
}

const COLUMNS = [
  ["name", "Actor"],
  ["state", "State"],
  ["work", "Work"],
  ["generation", "Gen"],
  ["mailbox", "Mailbox"],
  ["flight", "In flight"],
  ["memory", "Memory"],
  ["restarts", "Restarts"],
];
const TITLES = { work: "Messages a second, and the share of the time at work, in the last second", generation: "Generation", restarts: "Restarts" };

function grid(root, visible, active, view) {
  const heads = COLUMNS.map(([name, title]) => h("th", { role: "columnheader", scope: "col", class: `al-${name}` }, TITLES[name] ? h("abbr", { title: TITLES[name] }, title) : title));
  return h(
    "table",
    { key: "grid", class: "al-table al-grid", role: "treegrid", "aria-label": `Actors of ${root.name}`, "aria-readonly": "true" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads)),
    h("tbody", { role: "rowgroup" }, visible.map((row) => line(row, row.path === active, view))),
  );
}

function line(row, isActive, { marked, sparks, selected, lacking }) {
  const { actor, path, level, position, size, open } = row;
  const isMarked = marked.has(path);
  const isSelected = path === selected;
  const spark = sparks.get(path) ?? "";
  const { children, ...own } = actor;
  const does = doing(actor, lacking);
  const tone = look(actor.state).tone;
  return h(
    "tr",
    {
      key: path,
      memo: JSON.stringify([own, level, position, size, open, row.inside, row.quiet, isActive, isMarked, isSelected, spark, Object.keys(lacking)]),
      class: `al-row al-kind-${actor.kind} al-${tone}${isMarked ? " al-restarted" : ""}${actor.running ? " al-runs" : ""}${isSelected ? " al-selected" : ""}`,
      role: "row",
      "aria-level": level,
      "aria-posinset": position,
      "aria-setsize": size,
      "aria-selected": isSelected ? "true" : null,
      "aria-expanded": open === null ? null : String(open),
      tabindex: isActive ? 0 : -1,
      "data-path": path,
    },
    nameCell(row),
    h("td", { role: "gridcell", class: "al-state" }, isMarked && actor.state === "running" ? h("span", { key: "mark", class: "al-word al-busy al-mark" }, icon("restarting", 12), "restarted") : h("span", { class: `al-word al-${look(does).tone}` }, icon(look(does).icon, 12), does)),
    h("td", { role: "gridcell", class: "al-work" }, work(actor, spark)),
    h("td", { role: "gridcell", class: "al-generation" }, generation(actor)),
    row.quiet ? blank("mailbox") : number("mailbox", actor.mailbox, lacking.mailbox),
    row.quiet ? blank("flight") : number("flight", actor.in_flight, lacking["in flight"]),
    h("td", { role: "gridcell", class: "al-memory" }, meter(actor)),
    row.quiet ? blank("restarts") : number("restarts", actor.restarts, lacking.restarts),
  );
}

function nameCell({ actor, level, open, inside, quiet }) {
  const detail = quiet?.join(", ") ?? actor.detail;
  const hidden = inside && h("span", { class: "al-inside" }, `+${count(inside.actors)}`, h("span", { class: "al-sr" }, " folded"));
  const trouble = inside?.trouble && h("span", { class: `al-word al-${look(inside.trouble).tone}` }, icon(look(inside.trouble).icon, 12), inside.trouble);
  return h(
    "th",
    { role: "rowheader", scope: "row", class: "al-name" },
    h(
      "span",
      { class: "al-branch" },
      h("span", { class: "al-guides", style: `--level: ${level - 1}` }),
      h("span", { class: `al-fold${open ? " al-open" : ""}`, "data-do": open === null ? null : "turn" }, open !== null && icon("fold", 12)),
      icon(actor.kind, 14),
      h("span", { class: "al-label" }, quiet ? actor.name.replace(/ actors$/, "") : actor.name, quiet && h("span", { class: "al-actors" }, " actors")),
      h("span", { class: "al-sr" }, `, ${actor.kind}`),
      hidden,
      trouble,
      actor.running && h("span", { key: "running", class: "al-run" }, actor.running),
      detail && h("span", { key: "detail", class: "al-detail al-muted" }, detail),
    ),
  );
}

/** What an actor did in the last second, where that is known, and how busy it was before. */
function work({ rate, busy }, spark) {
  if (!rate && !busy && !spark) return null;
  return h(
    "span",
    { class: "al-did" },
    sparkline(spark),
    h("span", { class: "al-figure al-share" }, busy ? percent(busy, 1) : "", busy && h("span", { class: "al-sr" }, " busy,")),
    h("span", { class: "al-figure al-rate" }, rate ? `${rateOf(rate)}/s` : "", rate && h("span", { class: "al-sr" }, " messages")),
  );
}

/** Messages a second: 0.4, 12, 1400, 12k. */
function rateOf(rate) {
  return rate < 9.95 ? String(Number(rate.toFixed(1))) : count(Math.round(rate));
}

function generation({ generation }) {
  if (generation === undefined) return null;
  return [h("span", { class: "al-sr" }, `generation ${generation}`), h("span", { class: "al-tag", "aria-hidden": "true" }, `g${generation}`)];
}

function blank(name) {
  return h("td", { role: "gridcell", class: `al-${name}` });
}

function number(name, value, why) {
  return h("td", { role: "gridcell", class: `al-${name}` }, figure(value, why));
}

/** A count; `why` says that none is recorded of this moment, and then there is no zero. */
function figure(value = 0, why) {
  if (why && !value) return h("span", { class: "al-figure al-zero", title: `not recorded: ${why}` }, h("span", { "aria-hidden": "true" }, "–"), h("span", { class: "al-sr" }, "not recorded"));
  return h("span", { class: value ? "al-figure" : "al-figure al-zero" }, count(value));
}

function sparkline(path) {
  if (!path) return h("span", { key: "none", class: "al-spark" });
  const { width, height } = SPARK;
  const area = `${path}V${height}H${path.slice(1, path.indexOf(" "))}Z`;
  return h("svg", { key: "spark", class: "al-spark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" }, h("path", { class: "al-area", d: area }), h("path", { d: path }));
}

function meter({ name, kind, used_bytes: used, total_bytes: total }) {
  if (used === undefined) return kind === "device" ? h("span", { class: "al-muted" }, "not known") : null;
  const whole = memory(used, total);
  const text = h("span", { class: "al-figure", title: whole, "data-used": bytes(used) }, whole);
  if (!total) return text;
  const share = Math.min(1, used / total);
  const level = share > 0.95 ? "al-bad" : share > 0.8 ? "al-warn" : "al-calm";
  return h(
    "span",
    { class: "al-usage" },
    h(
      "span",
      { class: `al-meter ${level}`, role: "meter", "aria-label": `Memory of ${name}`, "aria-valuemin": 0, "aria-valuemax": total, "aria-valuenow": used, "aria-valuetext": `${bytes(used)} of ${bytes(total)}` },
      share > 0 && h("span", { class: "al-fill", style: `width: ${(share * 100).toFixed(1)}%` }),
    ),
    text,
  );
}

function note(root, visible, state, { filter, troubledOnly }) {
  const text = () => {
    if (!state) return "Waiting for the first snapshot.";
    if (!root) return unseen(state);
    if (!visible.length) return troubledOnly && !filter ? "Nothing needs attention." : "No actor matches.";
    return summary(root).devices ? "" : "This system has no devices.";
  };
  return text() && h("p", { key: "note", class: "al-note" }, text());
}

/** The lines below: all about the row under the pointer, else the selected or the active one, else the first in trouble. */
function inspector(visible, active, view) {
  const at = (path) => path && visible.find((row) => row.path === path);
  const row = at(view.pointed) ?? at(view.selected) ?? at(view.active) ?? visible.find(({ actor }) => isTroubled(actor)) ?? at(active);
  return h(
    "div",
    { key: "inspector", class: "al-inspector", "aria-hidden": "true" },
    h("div", {}, row && h("span", { class: "al-path" }, row.quiet ? row.actor.name : row.path), row && (row.quiet ? row.quiet.join(", ") : describe(row.actor, view.lacking))),
    h("div", {}, [row?.actor.running, row?.actor.detail].filter(Boolean).join(" · ")),
  );
}

/** One actor in a sentence, its detail apart. */
export function describe(actor, lacking = {}) {
  const told = (value, topic, words) => (!value && lacking[topic] ? `${words} not recorded` : `${count(value ?? 0)} ${words}`);
  const share = actor.total_bytes ? ` (${percent(actor.used_bytes ?? 0, actor.total_bytes)})` : "";
  return [
    `${actor.kind}, ${doing(actor, lacking)}`,
    actor.generation !== undefined && `generation ${actor.generation}`,
    told(actor.mailbox, "mailbox", "in the mailbox"),
    told(actor.in_flight, "in flight", "in flight"),
    actor.rate > 0 && `${rateOf(actor.rate)} messages/s`,
    actor.busy > 0 && `${percent(actor.busy, 1)} busy`,
    actor.used_bytes !== undefined && `${memory(actor.used_bytes, actor.total_bytes)}${share}`,
    actor.restarts > 0 && plural(actor.restarts, "restart"),
  ].filter(Boolean).join(" · ");
}
