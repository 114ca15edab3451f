// The memory of every device as plain nodes: strips by address, and a table of the largest blocks.
//
// A state: {lab, devices, kinds: [[kind, bytes]], closed, acts?, said?, unrecorded?, unplaced?}. A device: {name, state?,
// generation, now?, used, total?, room?, count, strip, lost?, lost_in, lost_count, lost_bytes};
// without `generation` it was not seen yet, `now` is its generation when that is another one. A
// piece of a strip is a block {ids, owner, what, bytes, memory?, kept?, gap?}, or a bundle of blocks that
// are not listed {small, bytes, gap?, unplaced?}; `gap` is how many bytes lie before it that no
// block has. `history` is as in `history.js`. `kept: [[what, bytes]]` of a device or a state is what
// the host has of it beside that. Lost blocks were those of generation `lost_in`, and are held though they are gone. What `%%gpu` cells
// have left is in `objects: [{name, space, what, bytes, kept}]`, of `object_count`.

import { h } from "../shared/dom.js";
import { bufferNumber, bytes, count, look, percent, plural, unseen } from "../shared/format.js";
import { freshBadge } from "../shared/fresh_badge.js";
import { icon } from "../shared/icons.js";
import { vramHistory } from "./history.js";
import { VramLooks, vramKind, vramName } from "./look.js";
import { vramScale } from "./scale.js";

/** How many rows the table has before it is asked for all. */
export const VRAM_ROWS = 10;

/** What only the person who looks decides; every view of a state has its own. */
export function vramView() {
  return {
    looks: new VramLooks(),
    active: new Map(), // strip -> the key of its block that Tab leads to
    pointed: null, // the key of the block under the pointer
    focused: null, // the key of the block with the focus
    chosen: null, // the key of the block that was clicked
    selection: null, // the path of the actor that is selected on the page
    all: false, // whether the table shows every listed block
    width: 900, // of a strip, in pixels
    now: 0, // wall seconds, when the state was made
    stale: null, // seconds, once the kernel has been silent for too long
    said: "", // what became of the last command
  };
}

/** The strips of a state: [{strip, device, path, generation, pieces: [[key, piece]], lost}]. */
export function vramStrips(state) {
  return (state?.devices ?? []).flatMap((device) => {
    const path = `${state.lab}/${device.name}`;
    const strip = { strip: device.name, device, path, generation: device.generation, lost: false, pieces: vramKeyed(device.name, device.strip ?? []) };
    if (!device.lost) return [strip];
    return [strip, { ...strip, strip: `${device.name} lost`, generation: device.lost_in, lost: true, pieces: vramKeyed(`${device.name} lost`, device.lost) }];
  });
}

function vramKeyed(strip, pieces) {
  let last = "first";
  return pieces.map((piece) => {
    last = piece.ids ? piece.ids[0] : `after ${last}`;
    return [`${strip} ${last}`, piece];
  });
}

/** Every listed block, the largest first: [{key, block, device, path, generation, lost}]. */
export function vramRows(state) {
  const rows = vramStrips(state).flatMap(({ pieces, device, path, generation, lost }) => pieces.filter(([, piece]) => piece.ids).map(([key, block]) => ({ key, block, device: device.name, path, generation, lost })));
  return rows.sort((a, b) => b.block.bytes - a.block.bytes);
}

/** Draw a state, or null before the first one, as `view` sees it. */
export function vramDraw(state, view) {
  for (const [kind] of state?.kinds ?? []) view.looks.of(kind);
  const rows = vramRows(state);
  return [
    vramHeader(state, view),
    vramLegend(state, rows, view),
    ...vramStrips(state).map((strip) => vramSection(strip, state, view)),
    vramKept(state),
    vramNote(state, view),
    rows.length > 0 && vramInspector(state, rows, view),
    rows.length > 0 && vramTable(state, rows, view),
    vramObjects(state),
    h("p", { key: "said", class: view.said ? "vram-said" : "vram-said vram-silent", role: "status" }, view.said),
  ].filter(Boolean);
}

function vramHeader(state, view) {
  const devices = state?.devices ?? [];
  const used = devices.reduce((sum, device) => sum + (device.used ?? 0), 0);
  return h(
    "div",
    { key: "header", class: "al-header" },
    h("span", { class: "al-title" }, icon("device", 14), h("strong", {}, "Memory"), state && h("span", { class: "al-muted" }, [state.lab, plural(devices.length, "device"), `${state.unrecorded ? "at least " : ""}${bytes(used)} in use`].filter(Boolean).join(" · "))),
    h("span", { class: "vram-rest" }),
    freshBadge(state, view.stale),
  );
}

function vramLegend(state, rows, { looks }) {
  const kinds = state?.kinds ?? [];
  const pieces = (state?.devices ?? []).flatMap((device) => device.strip ?? []);
  const entry = (key, classes, words) => h("li", { key, class: "vram-entry" }, h("span", { class: `vram-swatch ${classes}`, "aria-hidden": "true" }), words);
  const entries = [
    ...kinds.map(([kind, size]) => entry(`kind ${kind}`, vramClasses(kind, looks), [h("span", { class: "vram-kind" }, kind), h("span", { class: "al-muted" }, bytes(size))])),
    pieces.some((piece) => piece.small) && entry("small", "vram-bundle", "small blocks"),
    pieces.some((piece) => piece.gap) && entry("gap", "vram-gap", "gap: free, or not ours"),
    rows.some((row) => row.lost) && entry("lost", "vram-lost", "lost but kept"),
  ].filter(Boolean);
  return entries.length > 0 && h("ul", { key: "legend", class: "vram-legend", "aria-label": "Who made the blocks" }, entries);
}

function vramClasses(kind, looks) {
  const { hue, pattern } = looks.of(kind);
  return `vram-hue${hue} vram-pattern${pattern}`;
}

function vramSection(strip, state, view) {
  const { device, path, lost, pieces } = strip;
  const isSelected = view.selection === path || view.selection?.startsWith(`${path}/`);
  const scale = vramScale(pieces.map(([, piece]) => piece), view.width);
  const label = lost ? `Lost blocks of ${device.name} that are kept` : `Blocks of ${device.name} by address`;
  return h(
    "div",
    { key: `strip ${strip.strip}`, class: `vram-device${isSelected ? " vram-selected" : ""}${state.closed ? " vram-last" : ""}`, "data-path": path },
    lost ? vramLostHead(device) : vramHead(device, isSelected, state),
    pieces.length > 0 && h("div", { key: "strip", class: lost ? "vram-strip vram-thin" : "vram-strip", role: "listbox", "aria-orientation": "horizontal", "aria-label": label, "data-strip": strip.strip }, pieces.flatMap(([key, piece]) => vramPiece(key, piece, strip, view, scale))),
    !lost && vramHistory(device, state.replay?.at ?? view.now),
    !lost && device.generation !== undefined && !pieces.length && h("p", { key: "empty", class: "vram-empty" }, state.unrecorded ? `Not recorded: ${state.unrecorded}.` : "Nothing is allocated."),
  );
}

function vramHead(device, isSelected, { unrecorded }) {
  const { name, state, generation, now, used, total, room, count: blocks } = device;
  const seen = generation !== undefined;
  const words = seen && [total ? `${bytes(used)} of ${bytes(total)} in use (${percent(used, total)})` : `${unrecorded ? "at least " : ""}${bytes(used)} in use`, plural(blocks, "block"), unrecorded ? unrecorded : room === undefined ? "what is free is not known" : `a new block may have ${bytes(room)} at most`];
  const { tone, icon: glyph } = look(state ?? "running");
  return h(
    "div",
    { key: "head", class: "vram-head" },
    h("strong", { "aria-current": isSelected ? "true" : null }, name),
    seen && h("span", { class: "al-sr" }, `generation ${generation}`),
    seen && h("span", { class: "vram-tag", "aria-hidden": "true" }, `g${generation}`),
    state && state !== "running" && h("span", { key: "state", class: `al-word al-${tone}` }, icon(glyph, 12), state),
    now !== undefined && h("span", { key: "now", class: "al-word al-warn" }, `as it was in generation ${generation}, now at ${now}`),
    seen && total > 0 && h("span", { key: "meter", class: "vram-meter", role: "meter", "aria-label": `Memory of ${name}`, "aria-valuemin": 0, "aria-valuemax": total, "aria-valuenow": Math.min(used, total), "aria-valuetext": `${bytes(used)} of ${bytes(total)}` }, used > 0 && h("span", { class: "vram-fill", style: `width: ${Math.min(100, (100 * used) / total).toFixed(1)}%` })),
    h("span", { key: "words", class: "vram-words" }, seen ? words.join(" · ") : "not seen yet"),
  );
}

function vramLostHead({ lost_in, lost_count, lost_bytes }) {
  return h("div", { key: "head", class: "vram-head" }, h("span", { class: "vram-words" }, `${plural(lost_count, "block")} of generation ${lost_in} lost with it, ${bytes(lost_bytes)}: no memory any more, but names hold them`));
}

function vramPiece(key, piece, strip, view, scale) {
  const keys = strip.pieces.map(([own]) => own);
  const wanted = view.active.get(strip.strip);
  const isActive = key === (keys.includes(wanted) ? wanted : keys[0]);
  const isPointed = key === view.pointed || key === view.focused;
  const isChosen = key === view.chosen;
  const kind = piece.ids && vramKind(piece.owner);
  const classes = [
    "vram-block",
    piece.ids ? vramClasses(kind, view.looks) : "vram-bundle",
    strip.lost && "vram-lost",
    isPointed && "vram-pointed",
    isChosen && "vram-chosen",
  ];
  const node = h(
    "div",
    {
      key,
      memo: JSON.stringify([piece, strip.generation, isActive, isPointed, isChosen]),
      class: classes.filter(Boolean).join(" "),
      role: "option",
      "aria-label": vramDescribe(piece, strip),
      "aria-selected": String(isChosen),
      tabindex: isActive ? 0 : -1,
      style: `flex-grow: ${Math.max(1, piece.bytes)}`,
      "data-key": key,
    },
    h("span", { class: `vram-label${piece.kept ? " vram-variable" : ""}`, "aria-hidden": "true" }, piece.ids ? vramName(piece) : `${count(piece.small)} small`),
  );
  return piece.gap ? [vramGap(key, piece.gap, scale), node] : [node];
}

/** A gap as wide as it is large, or cut short where that would leave no room for blocks. */
function vramGap(key, gap, { cut }) {
  const isShort = gap > cut;
  const title = `gap of ${bytes(gap)}: free, or not ours${isShort ? "; drawn shorter than it is" : ""}`;
  return h("span", { key: `gap ${key}`, class: `vram-gap${isShort ? " vram-short" : ""}`, style: isShort ? null : `flex-grow: ${gap}`, title, "aria-hidden": "true" });
}

/** One piece of a strip in a sentence. */
export function vramDescribe(piece, { generation, lost = false }) {
  if (!piece.ids) return `${plural(piece.small, "small block")} · ${bytes(piece.bytes)} together${piece.unplaced ? " · where is not known" : ""}`;
  return [
    piece.kept ? piece.kept.join(", ") : "no variable found that keeps it",
    bytes(piece.bytes),
    piece.what,
    piece.memory && piece.memory !== "pool" && `${piece.memory} memory`,
    `made by ${piece.owner}`,
    `generation ${generation}${lost ? ", lost with it" : ""}`,
    vramBuffers(piece.ids),
  ].filter(Boolean).join(" · ");
}

/** "buffer 3", or "buffers 3, f1": as people call them; the full numbers stand in `data-ids`. */
function vramBuffers(ids) {
  return `${ids.length === 1 ? "buffer" : "buffers"} ${ids.map(bufferNumber).join(", ")}`;
}

/** What the host keeps beside the devices' memory, so that it is not taken for a part of that. */
function vramKept(state) {
  const rows = [
    ...(state?.kept ?? []).map(([what, size]) => [what, size]),
    ...(state?.devices ?? []).flatMap(({ name, kept = [] }) => kept.map(([what, size]) => [`${name}: ${what}`, size])),
  ];
  if (!rows.length) return null;
  return h(
    "div",
    { key: "kept", class: "vram-kept" },
    h("span", { class: "vram-swatch vram-host", "aria-hidden": "true" }),
    h("strong", {}, "On the host, not in device memory"),
    h("ul", { "aria-label": "What the host keeps" }, rows.map(([what, size]) => h("li", { key: what }, h("span", { class: "al-muted" }, `${what} `), bytes(size)))),
  );
}

function vramNote(state, view) {
  if (!state) return h("p", { key: "note", class: "vram-note" }, "Waiting for the first snapshot.");
  const devices = state.devices ?? [];
  if (!devices.length) return h("p", { key: "note", class: "vram-note" }, state.lab ? "This system has no devices." : unseen(state));
  if (!devices.some((device) => device.strip?.length)) return null;
  if (state.unplaced) return h("p", { key: "note", class: "vram-note" }, `Blocks in the order in which they were made: ${state.unplaced}.`);
  const scales = devices.map((device) => vramScale(device.strip ?? [], view.width));
  const tiny = scales.reduce((sum, scale) => sum + scale.tiny, 0);
  const short = scales.flatMap((scale) => scale.short);
  const words = [
    "Blocks in the order of their addresses; blocks and gaps are as wide as they are large.",
    tiny > 0 && `Not to scale: ${plural(tiny, "block")} too small for that, drawn 4 px wide.`,
    short.length > 0 && `Not to scale: ${plural(short.length, "gap")} cut short at // (${short.slice(-3).reverse().map(bytes).join(", ")}${short.length > 3 ? ", …" : ""}).`,
    "Less than 64 KiB between two is no gap.",
  ];
  return h("p", { key: "note", class: "vram-note" }, words.filter(Boolean).join(" "));
}

/** All about the block under the pointer or with the focus, else the chosen one, else the largest. */
function vramInspector(state, rows, view) {
  const pieces = vramStrips(state).flatMap((strip) => strip.pieces.map(([key, piece]) => ({ key, piece, strip })));
  const at = (key) => key && pieces.find((one) => one.key === key);
  const { piece, strip } = at(view.pointed) ?? at(view.focused) ?? at(view.chosen) ?? at(rows[0].key);
  return h("div", { key: "inspector", class: "vram-inspector", "aria-hidden": "true" }, h("span", { class: "vram-path" }, strip.device.name), vramDescribe(piece, strip));
}

const VRAM_HEADS = { Buffer: "vram-ids", Array: "vram-what", Type: "vram-what", Size: "vram-number", Gen: "vram-generation", Memory: "vram-memory", "Made by": "vram-maker", "Kept by": "vram-keeper" };
const VRAM_COLUMNS = ["Device", "Variable", "Size", "Memory", "Gen", "Array", "Made by", "Buffer"];

function vramTable(state, rows, view) {
  const every = state.devices.reduce((sum, device) => sum + (device.count ?? 0) + (device.lost_count ?? 0), 0);
  const shown = view.all ? rows : rows.slice(0, VRAM_ROWS);
  const acts = Boolean(state.acts && !state.closed);
  const heads = VRAM_COLUMNS.map((title) => h("th", { key: title, scope: "col", class: VRAM_HEADS[title] }, title === "Gen" ? h("abbr", { title: "Generation" }, title) : title));
  const more = rows.length > VRAM_ROWS && h("button", { key: "more", type: "button", class: "vram-button", "data-do": "all", "aria-expanded": String(view.all) }, view.all ? `Show the largest ${VRAM_ROWS}` : `Show ${count(rows.length)}`);
  return h(
    "div",
    { key: "table", class: "vram-below" },
    h("div", { class: "vram-toolbar" }, h("strong", {}, "Largest blocks"), h("span", { class: "al-muted vram-shown" }, every > shown.length ? `${count(shown.length)} of ${count(every)}${every > rows.length ? `; ${count(every - rows.length)} are not listed` : ""}` : ""), more),
    h(
      "div",
      { class: "vram-scroll", role: "region", tabindex: 0, "aria-label": "Table of the largest blocks" },
      h(
        "table",
        { class: "al-table vram-table", "aria-label": `Largest blocks of ${state.lab}` },
        h("thead", {}, h("tr", {}, heads, acts && h("th", { key: "acts", scope: "col", class: "vram-acts" }, "Actions"))),
        h("tbody", {}, shown.map((row) => vramRow(row, acts, view))),
      ),
    ),
  );
}

function vramRow({ key, block, device, generation, lost }, acts, view) {
  const isPointed = key === view.pointed || key === view.focused;
  const isChosen = key === view.chosen;
  const kind = vramKind(block.owner);
  return h(
    "tr",
    { key, memo: JSON.stringify([block, generation, acts, isPointed, isChosen]), class: `vram-row${isPointed ? " vram-pointed" : ""}${isChosen ? " vram-chosen" : ""}`, "data-key": key },
    h("td", {}, device),
    h("th", { scope: "row", class: "vram-named vram-code" }, h("span", { class: `vram-swatch ${vramClasses(kind, view.looks)}${lost ? " vram-lost" : ""}`, "aria-hidden": "true" }), block.kept ? block.kept.join(", ") : h("span", { class: "al-muted" }, "no variable found"), isChosen && h("span", { class: "al-sr" }, " (chosen)")),
    h("td", { class: "vram-number" }, bytes(block.bytes)),
    h("td", { class: "vram-memory" }, block.memory ?? ""),
    h("td", { class: "vram-generation" }, lost ? `${generation}, lost` : generation),
    h("td", { class: "vram-what vram-code" }, block.what),
    h("td", { class: "vram-maker" }, block.owner),
    h("td", { class: "vram-ids" }, block.ids.map(bufferNumber).join(", ")),
    acts && h("td", { key: "acts", class: "vram-acts" }, block.kept && !lost && vramActs(device, block)),
  );
}

/** Every listed object, the largest first: [{device, generation, object}]. */
export function vramObjectRows(state) {
  const rows = (state?.devices ?? []).flatMap(({ name, generation, objects = [] }) => objects.map((object) => ({ device: name, generation, object })));
  return rows.sort((a, b) => b.object.bytes - a.object.bytes);
}

const VRAM_OBJECT_COLUMNS = ["Device", "Object", "Type", "Size", "Gen", "Kept by"];

function vramObjects(state) {
  const rows = vramObjectRows(state);
  if (!rows.length) return null;
  const every = state.devices.reduce((sum, device) => sum + (device.object_count ?? 0), 0);
  const acts = Boolean(state.acts && !state.closed);
  const heads = VRAM_OBJECT_COLUMNS.map((title) => h("th", { key: title, scope: "col", class: VRAM_HEADS[title] }, title === "Gen" ? h("abbr", { title: "Generation" }, title) : title));
  const words = ["what they hold may be in blocks, too", every > rows.length && `${count(rows.length)} of ${count(every)}`];
  return h(
    "div",
    { key: "objects", class: "vram-below" },
    h("div", { class: "vram-toolbar" }, h("strong", {}, "Objects of %%gpu cells"), h("span", { class: "al-muted vram-shown" }, words.filter(Boolean).join(" · "))),
    h(
      "div",
      { class: "vram-scroll", role: "region", tabindex: 0, "aria-label": "Table of objects of %%gpu cells" },
      h(
        "table",
        { class: "al-table vram-table", "aria-label": `Objects of %%gpu cells of ${state.lab}` },
        h("thead", {}, h("tr", {}, heads, acts && h("th", { key: "acts", scope: "col", class: "vram-acts" }, "Actions"))),
        h("tbody", {}, rows.map((row) => vramObjectRow(row, acts))),
      ),
    ),
  );
}

function vramObjectRow({ device, generation, object }, acts) {
  const { name, space, what, bytes: size, kept } = object;
  return h(
    "tr",
    { key: `${device} ${space} ${name}`, memo: JSON.stringify([object, generation, acts]), class: "vram-object" },
    h("td", {}, device),
    h("th", { scope: "row", class: "vram-code" }, name),
    h("td", { class: "vram-what vram-code", title: what }, what),
    h("td", { class: "vram-number" }, bytes(size)),
    h("td", { class: "vram-generation" }, generation),
    h("td", { class: "vram-keeper vram-code" }, kept.join(", ")),
    acts && h("td", { key: "acts", class: "vram-acts" }, vramDrop(device, object)),
  );
}

function vramDrop(device, { name, space }) {
  const what = `object ${name} of ${device}`;
  return h("button", { type: "button", class: "vram-button", "data-do": "drop", "data-device": device, "data-space": space, "data-name": name, "aria-label": `Drop ${what}`, title: `Drop ${what}: cells forget it, and what uses it later fails with StaleRef` }, "Drop");
}

function vramActs(device, { ids, kept }) {
  const what = `${kept[0]} of ${device} (${vramBuffers(ids)})`;
  const button = (deed, word, effect) => h("button", { key: deed, type: "button", class: "vram-button", "data-do": deed, "data-device": device, "data-ids": ids.join(" "), "aria-label": `${word} ${what}`, title: `${word} ${what}: ${effect}` }, word);
  return [
    button("free", "Free", "its memory is given back at once, and what uses it later fails with StaleRef"),
    button("checkpoint", "Checkpoint", "a copy of its contents is kept on the host, so that a loss does not take them"),
  ];
}
