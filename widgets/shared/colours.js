// A colour for each kernel's or message's name: the same in every view, on every page, on every day.

/** How many colours there are; `theme.css` defines as many. */
export const WORK_COLOURS = 8;

const WORK_HASH_FROM = 0x811c9dc5; // FNV-1a of 32 bits
const WORK_HASH_BY = 0x01000193;

/** The CSS custom property that has the colour of a name, as `--al-work-3`. Names may share one. */
export function workColour(name) {
  let hash = WORK_HASH_FROM;
  for (const byte of new TextEncoder().encode(name)) hash = Math.imul(hash ^ byte, WORK_HASH_BY) >>> 0;
  return `--al-work-${((hash ^ (hash >>> 15)) >>> 0) % WORK_COLOURS}`;
}
