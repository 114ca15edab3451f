// How a strip is drawn to scale: what its gaps may take, and what is too small to be seen.

/** The least width of a block in pixels: less cannot be pointed at. */
export const VRAM_LEAST_PX = 4;
/** The width of a gap that is cut short, in pixels. */
export const VRAM_CUT_PX = 14;

/**
 * The scale of a strip: {cut, total, short, tiny}. A gap of more than `cut` bytes is cut short, so
 * that gaps never take more room than blocks; `total` is what the others and the blocks have,
 * `short` the gaps that are cut, and `tiny` how many pieces are drawn wider than they are.
 */
export function vramScale(pieces, width) {
  const blocks = pieces.reduce((sum, piece) => sum + piece.bytes, 0);
  const gaps = pieces.map((piece) => piece.gap ?? 0).filter((gap) => gap > 0).sort((a, b) => a - b);
  let room = Math.max(1, blocks);
  let cut = Infinity;
  for (const [number, gap] of gaps.entries()) {
    const level = room / (gaps.length - number);
    if (gap > level) {
      cut = level;
      break;
    }
    room -= gap;
  }
  const short = gaps.filter((gap) => gap > cut);
  const total = blocks + gaps.filter((gap) => gap <= cut).reduce((sum, gap) => sum + gap, 0);
  const px = Math.max(1, width - short.length * VRAM_CUT_PX);
  const tiny = pieces.filter((piece) => (piece.bytes / Math.max(1, total)) * px < VRAM_LEAST_PX).length;
  return { cut, total, short, tiny };
}
