// Which colour and pattern a kind of owner has: the same one wherever and whenever it is drawn.

const HUES = 8;
const PATTERNS = 4; // plain, dots, bars, rows; `vram.css` draws them

/** "Gemm" of "Gemm #12". */
export function vramKind(owner) {
  return owner.split(" #", 1)[0];
}

/**
 * The looks of the kinds that a view has met. A kind's name decides its colour; a second kind of
 * the same colour gets another pattern.
 */
export class VramLooks {
  #looks = new Map(); // kind -> {hue, pattern}
  #met = Array(HUES).fill(0);

  /** The look of a kind: {hue, pattern}. */
  of(kind) {
    let look = this.#looks.get(kind);
    if (!look) {
      const hue = vramHash(kind) % HUES;
      this.#looks.set(kind, (look = { hue, pattern: this.#met[hue]++ % PATTERNS }));
    }
    return look;
  }
}

/** FNV-1a with 32 bits, folded: its low bits alone are alike for names that are alike. */
function vramHash(text) {
  let hash = 0x811c9dc5;
  for (const character of text) hash = Math.imul(hash ^ character.codePointAt(0), 0x01000193) >>> 0;
  return (hash ^ (hash >>> 15)) >>> 0;
}
