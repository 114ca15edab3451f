// The ranks of a world around a ring, as a drawing; the table beside it says the same in words.

import { h } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { collectivesLook } from "./look.js";

const RING_RADIUS = 66;
const RING_GAP = 4; // between an arc and a rank
const RING_NAMED = 12; // from more ranks on there is no room for their names
const RING_NUMBERED = 24;

/** Where rank `k` of `n` is, radians clockwise from the top. */
export function ringAngle(k, n) {
  return (2 * Math.PI * k) / n;
}

/** The pairs of ranks between which a tree sends: a binomial one, with its root at rank 0. */
export function treeEdges(n) {
  return Array.from({ length: Math.max(0, n - 1) }, (_, i) => [i + 1, (i + 1) & i]);
}

/** Draw the ring of a world; `step` is one of its ring's, [phase, parts], of which the parts are drawn on their way. */
export function drawRing({ ranks, op }, step = null) {
  const n = ranks.length;
  const size = n > RING_NUMBERED ? 5 : n > RING_NAMED ? 9 : 14;
  const lost = ({ word }) => word === "lost" || word === "starting";
  const moves = Boolean(op) && ranks.every(({ word }) => word === "arrived");
  const isTree = op?.algorithm === "tree" && (op.call === "all_reduce" || op.call === "barrier");
  const tone = (from, to, isWay) => (step ? "moving" : lost(ranks[from]) || lost(ranks[to]) ? "broken" : moves && isWay ? "moving" : "still");
  return h(
    "svg",
    { class: "al-ring", viewBox: "-116 -102 232 204", "aria-hidden": "true" },
    n > 1 && ranks.map((_, k) => ringArc(k, n, size, tone(k, (k + 1) % n, op?.algorithm === "ring"), !isTree || step)),
    step && ranks.map((_, k) => ringPart(k, n, step[1][k])),
    isTree && !step && treeEdges(n).map(([from, to]) => ringChord(from, to, n, size, tone(from, to, true))),
    ringCentre(op),
    ranks.map((rank, k) => ringRank(rank, k, n, size)),
  );
}

function ringPoint(angle, radius = RING_RADIUS) {
  return [radius * Math.sin(angle), -radius * Math.cos(angle)];
}

function ringArc(k, n, size, tone, isWay) {
  const trim = (size + RING_GAP) / RING_RADIUS;
  const [from, to] = [ringAngle(k, n) + trim, ringAngle(k + 1, n) - trim];
  if (to <= from) return null;
  const middle = (from + to) / 2;
  const [x, y] = ringPoint(middle).map(ringNumber);
  return h(
    "g",
    { key: `arc ${k}`, class: `al-ring-${tone}` },
    h("path", { class: "al-ring-way", d: `M${ringPoint(from).map(ringNumber)}A${RING_RADIUS} ${RING_RADIUS} 0 ${to - from > Math.PI ? 1 : 0} 1 ${ringPoint(to).map(ringNumber)}` }),
    isWay && n <= RING_NAMED && h("path", { class: "al-ring-head", d: "M-3.6 -3.4 3 0-3.6 3.4z", transform: `translate(${x} ${y}) rotate(${ringNumber((middle * 180) / Math.PI)})` }),
  );
}

/** The part that rank `k` sends, halfway to the next one. */
function ringPart(k, n, part) {
  const [x, y] = ringPoint((ringAngle(k, n) + ringAngle(k + 1, n)) / 2).map(ringNumber);
  return h(
    "g",
    { key: `part ${k}`, class: "al-ring-part", transform: `translate(${x} ${y})` },
    h("rect", { x: -9, y: -8, width: 18, height: 16, rx: 3 }),
    h("text", { y: 4 }, String(part)),
  );
}

function ringChord(from, to, n, size, tone) {
  const [[x1, y1], [x2, y2]] = [ringPoint(ringAngle(from, n)), ringPoint(ringAngle(to, n))];
  const share = (size + RING_GAP) / Math.hypot(x2 - x1, y2 - y1);
  const along = (part) => [x1 + (x2 - x1) * part, y1 + (y2 - y1) * part].map(ringNumber);
  return h("g", { key: `chord ${from}`, class: `al-ring-${tone}` }, h("path", { class: "al-ring-way", d: `M${along(share)}L${along(1 - share)}` }));
}

function ringCentre(op) {
  if (!op) return null;
  const lines = [op.call, op.what, op.for].filter(Boolean);
  return h(
    "g",
    { key: "centre", class: "al-ring-centre" },
    lines.map((line, i) => h("text", { key: i, class: i === 0 ? "al-ring-call" : "al-ring-of", y: 4 + 14 * (i - (lines.length - 1) / 2) }, line)),
  );
}

function ringRank({ device, word }, k, n, size) {
  const { name, tone } = collectivesLook(word);
  const angle = ringAngle(k, n);
  const [x, y] = ringPoint(angle).map(ringNumber);
  const [side, height] = [Math.sin(angle), Math.cos(angle)];
  const anchor = Math.abs(side) < 0.3 ? "middle" : side > 0 ? "start" : "end";
  const [tx, ty] = anchor === "middle" ? [0, height > 0 ? -size - 6 : size + 15] : [Math.sign(side) * (size + 5), 4];
  return h(
    "g",
    { key: `rank ${k}`, class: `al-ring-rank al-${tone}`, "data-word": word, transform: `translate(${x} ${y})` },
    h("circle", { r: size }),
    n <= RING_NUMBERED && h("text", { class: "al-ring-number", y: 4 }, String(k)),
    n <= RING_NAMED && h("text", { class: "al-ring-name", x: ringNumber(tx), y: ringNumber(ty), "text-anchor": anchor }, device),
    n <= RING_NAMED && h("g", { class: "al-ring-glyph", transform: `translate(${size - 7} ${-size - 5})` }, h("circle", { class: "al-ring-under", cx: 6, cy: 6, r: 7 }), icon(name, 12)),
  );
}

function ringNumber(value) {
  return Number(value.toFixed(1));
}
