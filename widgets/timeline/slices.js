// Which slice is where: under the pointer, picked, and beside the picked one.
//
// A slice is {work, seq, start, end, more?}; one that still runs has end null. What is picked is
// {row, number} where it has finished, {row, seq} where it runs.

import { TIMELINE_AXIS } from "./lanes.js";
import { timelineFirstAfter } from "./strips.js";
import { TIMELINE_FOLLOWED_S, timelineShown, timelineTimeAt } from "./time/range.js";

export const TIMELINE_GRIP = 3; // pixels around a slice that count as it
const TIMELINE_LEAST_EXTENT_S = 1e-4;

/** From the first start to now, or to the last end of what has ended: [from, to]. */
export function timelineExtent({ state, ring, now }) {
  const starts = state ? state.running.map(([, , start]) => start) : [];
  const known = ring.extent();
  const from = Math.min(...starts, ...(known ? [known[0]] : []));
  const to = state?.closed && known ? known[1] : now;
  if (!Number.isFinite(from)) return [to - TIMELINE_FOLLOWED_S, to];
  return [from, Math.max(to, known?.[1] ?? to, from + TIMELINE_LEAST_EXTENT_S)];
}

/** What lies at a point: {row, number or seq, slice}, {row: null, mark, cell, wait or gauge}, {row}, or null. */
export function timelineUnder(view, { x, y }) {
  const { state, lanes, top, width } = view;
  const lane = lanes.find((one) => one.y <= y + top && y + top < one.y + one.height);
  if (!lane || y < TIMELINE_AXIS) return null;
  const [from, to] = timelineShown(view);
  const grip = (TIMELINE_GRIP * (to - from)) / width;
  const at = timelineTimeAt(view, x);
  if (lane.kind === "cells") return timelineOf("cell", timelineReaching(view.strips.cells, at, grip, 1, 2, view.now));
  if (lane.kind === "waits") return timelineOf("wait", timelineReaching(view.strips.waits, at, grip, 0, 1, view.now));
  if (lane.kind === "gauge") return { row: null, gauge: { device: lane.device, at } };
  if (lane.kind === "heading") {
    const mark = timelineMarkAt(state, lane.device, at, grip);
    return mark ? { row: null, mark } : null;
  }
  return timelineRunningAt(view, lane.row, at, grip) ?? timelineFinishedAt(view, lane.row, at, grip) ?? { row: lane.row };
}

function timelineOf(noun, found) {
  return found && { row: null, [noun]: found };
}

/** The entry of a list by time that reaches to a moment, give or take a grip; null when none does. */
function timelineReaching(list, at, grip, start, end, now) {
  const place = timelineFirstAfter(list, at + grip, start) - 1;
  return place >= 0 && (list[place][end] ?? now) >= at - grip ? list[place] : null;
}

/** The cross of a fault stands to the left of its moment, what is written of other marks to the right. */
function timelineMarkAt(state, device, at, grip) {
  return state.marks.find(([when, where, kind]) => where === device && Math.abs(when - at - (kind === "fault" ? grip * 2.6 : -grip * 5)) < grip * 5);
}

function timelineRunningAt({ state, now }, row, at, grip) {
  const one = state.running.find(([work, , start]) => state.works[work][0] === row && start - grip <= at && at <= Math.max(now, start) + grip);
  return one && { row, seq: one[1], slice: timelineRunningSlice(one) };
}

function timelineFinishedAt({ ring, strips }, row, at, grip) {
  const track = ring.tracks[row];
  const found = track?.near(at, grip);
  return found && { row, number: track.number[found.place], slice: timelineSlice(track, found.place, strips, found.count - 1) };
}

function timelineSlice(track, i, strips, more = 0) {
  return { work: track.work[i], seq: track.seq[i], start: track.start[i], end: track.end[i], more, queued: strips?.queued.get(track.number[i]) ?? null };
}

function timelineRunningSlice([work, seq, start, queued]) {
  return queued === undefined ? { work, seq, start, end: null } : { work, seq, start, end: null, queued };
}

/** The slice that is picked; null when none is, or when it is no longer here. */
export function timelinePicked({ state, ring, strips, picked }) {
  if (!picked) return null;
  const track = ring.tracks[picked.row];
  const place = picked.number === undefined ? -1 : (track?.placeOf(picked.number) ?? -1);
  if (place >= 0) return timelineSlice(track, place, strips);
  const one = state.running.find(([work, seq]) => seq === picked.seq && state.works[work][0] === picked.row);
  return one ? timelineRunningSlice(one) : null;
}

/**
 * What is picked next when `by` slices of a row are passed over; null when the row is empty. Where
 * nothing of the row is picked, the newest is the first before.
 */
export function timelineNeighbour({ state, ring, picked }, row, by) {
  const track = ring.tracks[row];
  const running = state.running.filter(([work]) => state.works[work][0] === row).map(([, seq]) => ({ row, seq }));
  const head = track?.head ?? 0;
  const size = track?.size ?? 0;
  const total = size + running.length;
  if (!total) return null;
  let at = total;
  if (picked?.row === row && picked.number !== undefined) at = track.placeOf(picked.number) - head;
  else if (picked?.row === row) at = size + running.findIndex((one) => one.seq === picked.seq);
  const to = Math.min(total - 1, Math.max(0, at + by));
  return to < size ? { row, number: track.number[head + to] } : running[to - size];
}
