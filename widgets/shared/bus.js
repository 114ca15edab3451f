// What the views on one page share: what is selected, which moment is shown, whether it goes on.

import { STALE_AFTER_S } from "./freshness.js";

/**
 * Keys: `selection` (the path of an actor, as "lab1/gpu0", or null), `cursor` (the moment that the
 * pointer is at, wall seconds, or null), `moment` (the one that was chosen to be seen, {at}, or null
 * once the journal is moved), `span` ([from, to] wall seconds that were brushed, or null),
 * `kernel` ({name, cells}: the work of a name that was chosen, and the cells that sent it, or null),
 * `paused` (whether the views hold still), `stale` (seconds without a word from the kernel, or what
 * became of it in words, or null), `gone` (the same words: nothing more comes, and nobody obeys),
 * `patience` (after how many of these it is called stale),
 * `closed` (whether the system has ended), `replay` (what is shown instead of now, as text, or null).
 */
export class Bus {
  #values = { selection: null, cursor: null, moment: null, span: null, kernel: null, paused: false, stale: null, gone: null, patience: STALE_AFTER_S, closed: false, replay: null };
  #watchers = new Map(); // key -> Set of callbacks
  #send;

  constructor(send = () => {}) {
    this.#send = send;
  }

  get(key) {
    return this.#values[key];
  }

  /** Set a key; who watches it is called at once, unless nothing changed. */
  set(key, value) {
    if (this.#values[key] === value) return;
    this.#values[key] = value;
    for (const callback of [...(this.#watchers.get(key) ?? [])]) callback(value);
  }

  /** Call `callback` with each new value of a key. Returns a function that ends that. */
  watch(key, callback) {
    if (!this.#watchers.has(key)) this.#watchers.set(key, new Set());
    this.#watchers.get(key).add(callback);
    return () => this.#watchers.get(key).delete(callback);
  }

  /** Have Python do something: `{do: NAME, …}` becomes `view.do_NAME(…)`. */
  command(message) {
    this.#send(message);
  }
}
