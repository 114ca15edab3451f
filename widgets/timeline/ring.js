// The newest slices that this page has seen, by row, ready to be searched.

/** How many slices a page keeps; beyond that the oldest go. */
export const TIMELINE_KEPT = 100_000;

const TIMELINE_HEAD_BYTES = 16; // two numbers before the columns

/**
 * The finished work of one stream, by start. `reach` is the latest end up to a place, so a place can
 * be searched by time even where slices overlap.
 */
class TimelineTrack {
  head = 0;
  tail = 0;
  start = new Float64Array(64);
  end = new Float64Array(64);
  reach = new Float64Array(64);
  seq = new Float64Array(64);
  number = new Float64Array(64);
  work = new Uint32Array(64);

  get size() { return this.tail - this.head; }

  push(number, start, end, seq, work) {
    if (this.tail === this.start.length) this.#makeRoom();
    let at = this.tail;
    // A stream works in order, so this loop ends at once but where the clock was set back.
    while (at > this.head && this.start[at - 1] > start) at -= 1;
    if (at < this.tail) for (const column of this.#columns()) column.copyWithin(at + 1, at, this.tail);
    this.tail += 1;
    this.start[at] = start;
    this.end[at] = end;
    this.seq[at] = seq;
    this.number[at] = number;
    this.work[at] = work;
    for (let i = at; i < this.tail; i += 1) {
      this.reach[i] = i > this.head ? Math.max(this.reach[i - 1], this.end[i]) : this.end[i];
    }
  }

  #columns() { return [this.start, this.end, this.reach, this.seq, this.number, this.work]; }

  #makeRoom() {
    const length = Math.max(64, this.size * 2);
    for (const name of ["start", "end", "reach", "seq", "number", "work"]) {
      const old = this[name];
      this[name] = new old.constructor(length);
      this[name].set(old.subarray(this.head, this.tail));
    }
    this.tail -= this.head;
    this.head = 0;
  }

  /** The first place whose slice, or one before it, ends at `at` or later; `tail` when none does. */
  from(at) {
    let low = this.head;
    let high = this.tail;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.reach[middle] < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The slice nearest to `at`, no further than `tolerance` away, and how many there are: {place, count}. */
  near(at, tolerance) {
    let place = -1;
    let nearest = Infinity;
    let count = 0;
    for (let i = this.from(at - tolerance); i < this.tail && this.start[i] <= at + tolerance; i += 1) {
      const away = Math.max(0, this.start[i] - at, at - this.end[i]);
      if (away > tolerance) continue;
      count += 1;
      if (away <= nearest) [nearest, place] = [away, i];
    }
    return count ? { place, count } : null;
  }

  /** The place of a slice by its number; -1 when it is not here. */
  placeOf(number) {
    for (let i = this.tail - 1; i >= this.head; i -= 1) if (this.number[i] === number) return i;
    return -1;
  }
}

/** All tracks together; slices have consecutive numbers, so what is missing can be counted. */
export class TimelineRing {
  tracks = []; // by row
  held = 0;
  counts = []; // of each work, how many slices are held
  version = 0; // another one when the slices are others
  #next = 0;
  #kept;

  constructor(kept = TIMELINE_KEPT) {
    this.#kept = kept;
  }

  /**
   * Take what `Tally.pack` packed (a DataView); `works` ([[row, name, kind]]) say whose row is whose.
   * A slice whose work is not known yet, and what follows it, is left for the next time.
   */
  add(packed, works) {
    const first = packed.getFloat64(0, true);
    const count = packed.getFloat64(8, true);
    if (first + count < this.#next) this.#clear(); // a recording was wound back
    const column = (k) => {
      const from = packed.byteOffset + TIMELINE_HEAD_BYTES + k * count * 8;
      return new Float64Array(packed.buffer.slice(from, from + count * 8)); // aligned
    };
    const [start, end, seq, work] = [0, 1, 2, 3].map(column);
    for (let i = Math.max(0, this.#next - first); i < count; i += 1) {
      const row = works[work[i]]?.[0];
      if (row === undefined) return;
      while (this.tracks.length <= row) this.tracks.push(new TimelineTrack());
      this.tracks[row].push(first + i, start[i], end[i], seq[i], work[i]);
      this.held += 1;
      this.counts[work[i]] = (this.counts[work[i]] ?? 0) + 1;
      this.version += 1;
      this.#next = first + i + 1;
    }
    while (this.held > this.#kept) this.#drop();
  }

  #clear() {
    this.tracks = [];
    this.held = 0;
    this.counts = [];
    this.version += 1;
    this.#next = 0;
  }

  #drop() {
    const filled = this.tracks.filter((track) => track.size);
    const oldest = filled.reduce((a, b) => (b.number[b.head] < a.number[a.head] ? b : a));
    this.counts[oldest.work[oldest.head]] -= 1;
    oldest.head += 1;
    this.held -= 1;
  }

  /** From the first start to the last end, or null when there is nothing. */
  extent() {
    const filled = this.tracks.filter((track) => track.size);
    if (!filled.length) return null;
    return [Math.min(...filled.map((t) => t.start[t.head])), Math.max(...filled.map((t) => t.reach[t.tail - 1]))];
  }

  /** The newest slices by number, the newest first: [{row, place}]. */
  newest(count) {
    const found = this.tracks.flatMap((track, row) => {
      const places = [];
      for (let i = track.tail - 1; i >= track.head && places.length < count; i -= 1) places.push({ row, place: i, number: track.number[i] });
      return places;
    });
    return found.sort((a, b) => b.number - a.number).slice(0, count);
  }

  /** The names that most slices here have, the most frequent first: [[name, count]]; `works` name them. */
  names(works, most) {
    const counts = new Map();
    this.counts.forEach((count, work) => {
      const [, name, kind] = works[work] ?? [];
      if (count > 0 && kind !== "untraced") counts.set(name, (counts.get(name) ?? 0) + count);
    });
    return [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).slice(0, most);
  }

  /** What was traced and is not here: it left the ring, came before this page, or was dropped. */
  notShown({ traced, untraced }) {
    return Math.max(0, traced - this.held) + untraced;
  }
}
