// Which colour and pattern a kind of owner has: the same one wherever and whenever it is drawn.

import { WORK_COLOURS, workColour } from "../shared/colours.js";

const PATTERNS = 4; // plain, dots, bars, rows; `vram.css` draws them

/** "Gemm" of "Gemm #12". */
export function vramKind(owner) {
  return owner.split(" #", 1)[0];
}

/** What a block is called: its variable, the first of several; else the message that made it. */
export function vramName({ kept, owner }) {
  if (!kept) return owner;
  return kept.length > 1 ? `${kept[0]} +${kept.length - 1}` : kept[0];
}

/**
 * The looks of the kinds that a view has met. A kind's name decides its colour; a second kind of
 * the same colour gets another pattern.
 */
export class VramLooks {
  #looks = new Map(); // kind -> {hue, pattern}
  #met = Array(WORK_COLOURS).fill(0);

  /** The look of a kind: {hue, pattern}. */
  of(kind) {
    let look = this.#looks.get(kind);
    if (!look) {
      const hue = Number(workColour(kind).split("-").at(-1));
      this.#looks.set(kind, (look = { hue, pattern: this.#met[hue]++ % PATTERNS }));
    }
    return look;
  }
}
