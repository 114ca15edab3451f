// What lies beside the slices on the axis of time: the notebook's cells and waits, the levels of
// each device's memory, and when slices were taken up. `strips.py` says how they are packed.

export const TIMELINE_STRIPS_KEPT = 5000; // of each, the newest

const TIMELINE_OF_WAITS = 1;
const TIMELINE_OF_LEVELS = 2;
const TIMELINE_OF_QUEUED = 3;
const TIMELINE_SLICE_COLUMNS = 4;

/** What a page has seen of it. Each list is by time, the oldest first. */
export class TimelineStrips {
  cells = []; // [number, start, end, ended, line], end null while it runs
  waits = []; // [start, end]
  levels = new Map(); // by device: [at, bytes]
  queued = new Map(); // by a slice's number: when it was taken up

  /** Take a state, and what was packed beside it (a DataView). */
  take(state, packed) {
    this.cells = timelineJoined(this.cells, state.cells ?? [], 1);
    const found = packed ? timelineUnpacked(packed) : { waits: [], levels: new Map(), queued: [] };
    this.waits = timelineJoined(this.waits, found.waits, 0);
    for (const device of new Set([...this.levels.keys(), ...state.devices])) {
      const told = found.levels.get(state.devices.indexOf(device)) ?? [];
      if (told.length || this.levels.has(device)) this.levels.set(device, timelineJoined(this.levels.get(device) ?? [], told, 0));
    }
    for (const [number, at] of found.queued) this.queued.set(number, at);
    while (this.queued.size > TIMELINE_STRIPS_KEPT) this.queued.delete(this.queued.keys().next().value);
  }

  /** The last entry of a list that begins at a moment or before it; null when none does. */
  static at(list, moment, column = 0) {
    const place = timelineFirstAfter(list, moment, column) - 1;
    return place < 0 ? null : list[place];
  }
}

/** What was known, and what is told from its first moment on, which holds from there. */
export function timelineJoined(known, told, column) {
  if (!told.length) return [];
  const from = told[0][column];
  let end = known.length;
  while (end && known[end - 1][column] >= from) end -= 1;
  return [...known.slice(Math.max(0, end + told.length - TIMELINE_STRIPS_KEPT), end), ...told];
}

/** The place of the first entry of a list by time that begins after a moment. */
export function timelineFirstAfter(list, moment, column = 0) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle][column] > moment) high = middle;
    else low = middle + 1;
  }
  return low;
}

function timelineUnpacked(packed) {
  const read = (i) => packed.getFloat64(i * 8, true);
  const found = { waits: [], levels: new Map(), queued: [] };
  const [first, slices] = [read(0), read(1)];
  let at = 2 + TIMELINE_SLICE_COLUMNS * slices;
  while ((at + 3) * 8 <= packed.byteLength) {
    const [kind, of, count] = [read(at), read(at + 1), read(at + 2)];
    const column = (k, i) => read(at + 3 + k * count + i);
    const pairs = () => Array.from({ length: count }, (_, i) => [column(0, i), column(1, i)]);
    if (kind === TIMELINE_OF_WAITS) found.waits = pairs().map(([start, end]) => [start, Number.isNaN(end) ? null : end]);
    if (kind === TIMELINE_OF_LEVELS) found.levels.set(of, pairs());
    if (kind === TIMELINE_OF_QUEUED) for (let i = 0; i < count; i += 1) if (column(0, i)) found.queued.push([first + i, column(0, i)]);
    at += 3 + count * (kind === TIMELINE_OF_QUEUED ? 1 : 2);
  }
  return found;
}
