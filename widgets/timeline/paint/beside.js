// The lanes beside the streams: the notebook's cells and waits, and what a device held and did.

import { TIMELINE_AXIS } from "../lanes.js";
import { timelineBusy, timelineBusyUntil } from "./busy.js";
import { TimelineStrips, timelineFirstAfter } from "../strips.js";
import { timelineCut, timelineLine } from "./fills.js";

const TIMELINE_BAND = 0.07; // how much a cell's band covers
const TIMELINE_CELL_NAMED = 18; // pixels from which a cell has words in it

/** The entries of a list by time that reach into [from, to]. */
function timelineWithin(list, from, to, start, end, now) {
  const found = [];
  for (let i = timelineFirstAfter(list, to, start) - 1; i >= 0; i -= 1) {
    if ((list[i][end] ?? now) < from) break; // they do not overlap
    found.push(list[i]);
  }
  return found.reverse();
}

/** The cells as bands through all lanes, every second one, and the moments of faults as lines. */
export function timelinePaintBands(paint) {
  const { pen, colours, scene, from, to } = paint;
  const { height, now } = scene;
  const chosen = new Set(scene.kernel?.cells ?? []);
  for (const [number, start, end, ended] of timelineWithin(scene.strips?.cells ?? [], from, to, 1, 2, now)) {
    if (number % 2 && ended !== "failed" && !chosen.has(number)) continue;
    const [x0, x1] = [paint.x(start), paint.x(end ?? now)];
    pen.globalAlpha = chosen.has(number) ? 2 * TIMELINE_BAND : TIMELINE_BAND;
    pen.fillStyle = chosen.has(number) ? colours.accent : ended === "failed" ? colours.bad : colours.muted;
    pen.fillRect(x0, TIMELINE_AXIS, Math.max(1, x1 - x0), height);
  }
  pen.globalAlpha = 0.5;
  pen.fillStyle = colours.bad;
  for (const [at, , kind] of scene.state.marks) if (kind === "fault" && at >= from && at <= to) pen.fillRect(Math.round(paint.x(at)), TIMELINE_AXIS, 1, height);
  pen.globalAlpha = 1;
}

/** The cells, each with its number and its first line where these have room. */
export function timelinePaintCells(paint, lane) {
  const { pen, colours, scene, from, to } = paint;
  const y = lane.y - scene.top + 2;
  const height = lane.height - 4;
  const chosen = new Set(scene.kernel?.cells ?? []);
  for (const [number, start, end, ended, line] of timelineWithin(scene.strips.cells, from, to, 1, 2, scene.now)) {
    const left = Math.max(-2, paint.x(start));
    const right = Math.min(scene.width + 2, Math.max(paint.x(end ?? scene.now), left + 2));
    const isBad = ended === "failed";
    pen.fillStyle = isBad ? colours["bad-soft"] : chosen.has(number) ? colours["accent-soft"] : colours.faint;
    pen.fillRect(left, y, right - left, height);
    pen.strokeStyle = isBad ? colours.bad : chosen.has(number) ? colours.accent : colours.muted;
    if (end === null) pen.setLineDash([3, 2]);
    pen.strokeRect(left + 0.5, y + 0.5, Math.max(1, right - left - 1), height - 1);
    pen.setLineDash([]);
    const shown = Math.max(0, left) + 4;
    const room = Math.min(scene.width, right) - shown - 3;
    if (room < TIMELINE_CELL_NAMED) continue;
    pen.fillStyle = isBad ? colours.bad : colours.fg;
    const words = `${isBad ? "✕ " : end === null ? "▶ " : ""}[${number}] ${line}`;
    pen.fillText(timelineCut(pen, words, room), shown, y + height / 2 + 0.5);
  }
}

/** The waits of the notebook's thread, as bars that are at least a pixel wide. */
export function timelinePaintWaits(paint, lane) {
  const { pen, colours, scene, from, to } = paint;
  const y = lane.y - scene.top + 4;
  pen.fillStyle = colours.muted;
  for (const [start, end] of timelineWithin(scene.strips.waits, from, to, 0, 1, scene.now)) {
    const left = Math.max(-2, paint.x(start));
    pen.fillRect(left, y, Math.max(1, Math.min(scene.width + 2, paint.x(end ?? scene.now)) - left), lane.height - 8);
  }
}

/** How busy the busiest stream of a device was, as an area, and its memory as a line over that. */
export function timelinePaintGauge(paint, lane) {
  const { pen, colours, scene, from, to } = paint;
  const bottom = lane.y - scene.top + lane.height - 2;
  const height = lane.height - 4;
  const busy = timelineDeviceBusy(scene, lane.device, [from, to], Math.ceil(scene.width));
  pen.globalAlpha = 0.35;
  pen.fillStyle = colours.muted;
  pen.beginPath();
  busy.forEach((share, x) => share && pen.rect(x, bottom - share * height, 1, share * height));
  pen.fill();
  pen.globalAlpha = 1;
  const levels = scene.strips.levels.get(lane.device);
  const full = timelineFull(scene.state, lane.device, levels);
  const first = Math.max(0, timelineFirstAfter(levels, from) - 1);
  const end = Math.min(paint.x(scene.now), scene.width);
  const up = (bytes) => bottom - (bytes / full) * (height - 1);
  pen.strokeStyle = colours.accent;
  pen.lineWidth = 1.5;
  for (let i = first; i < levels.length && levels[i][0] <= to; i += 1) {
    const [at, bytes] = levels[i];
    const [x0, x1] = [Math.max(0, paint.x(at)), Math.min(end, i + 1 < levels.length ? paint.x(levels[i + 1][0]) : end)];
    if (x1 > x0) timelineLine(pen, x0, up(bytes), x1, up(bytes));
    if (i > first && x0 > 0 && x0 < end) timelineLine(pen, x0, up(levels[i - 1][1]), x0, up(bytes));
  }
  pen.lineWidth = 1;
}

/** How many bytes the top of a device's gauge stands for: a little more than the most that was used. */
export function timelineFull(state, device, levels) {
  const most = levels.reduce((high, [, bytes]) => Math.max(high, bytes), 0);
  return Math.min(state.totals?.[device] || Infinity, most * 1.25) || 1;
}

/** The share of each of `columns` pieces of a window in which the busiest stream of a device worked. */
export function timelineDeviceBusy({ state, ring, now }, device, window, columns) {
  const busy = new Float32Array(columns);
  state.rows.forEach((row, i) => {
    if (ring.tracks[i] && (device === null || row.device === device)) timelineBusy(ring.tracks[i], window, columns, busy);
  });
  for (const [work, , start] of state.running) {
    const { device: of } = state.rows[state.works[work][0]];
    if (device === null || of === device) timelineBusyUntil(busy, start, now, window);
  }
  return busy;
}

/** What a device held at a moment, in bytes; null where that is not known. */
export function timelineLevel(strips, device, at) {
  return TimelineStrips.at(strips.levels.get(device) ?? [], at)?.[1] ?? null;
}
