// How old a state is, when the kernel's clock and the browser's may disagree.

/** Seconds without any word from the kernel after which a view calls itself stale, at least. */
export const STALE_AFTER_S = 1.8;

const LATE = 1.2; // of the longest silence while all is well: a word may take a while to get here
const REMEMBERED = 20; // delays; after a clock was set, that many stamps later all is well again

/**
 * Follows the stamps of a publisher. The quickest of the last stamps that arrived live tells the
 * difference between the clocks; the first one, found when a page opens, may be of any age.
 */
export class Freshness {
  #stamp = 0;
  #delays = [];

  /** Take the stamp found at the start (wall seconds of the kernel). */
  found(stamp) {
    this.#stamp = stamp;
  }

  /** Take a stamp that arrived at `now` (wall seconds of the browser). */
  arrived(stamp, now) {
    this.#stamp = stamp;
    this.#delays.push(now - stamp);
    if (this.#delays.length > REMEMBERED) this.#delays.shift();
  }

  /** Seconds since the newest stamp; 0 before there is one. */
  age(now) {
    const offset = this.#delays.length ? Math.min(...this.#delays) : 0;
    return this.#stamp ? Math.max(0, now - this.#stamp - offset) : 0;
  }

  /** Whether the publisher has been silent for more than `after` seconds. */
  isStale(now, after = STALE_AFTER_S) {
    return this.age(now) > after;
  }
}

/** After how many seconds a view is stale that is silent for `silence` seconds while all is well. */
export function staleAfter(silence) {
  return Math.max(STALE_AFTER_S, LATE * (silence ?? 0));
}
