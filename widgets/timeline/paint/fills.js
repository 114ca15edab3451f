// What work is filled with: its colour tells its name, its pattern what kind it is.

import { WORK_COLOURS, workColour } from "../../shared/colours.js";

/** The kinds of work, each with a pattern of its own. */
export const TIMELINE_KINDS = ["kernel", "copy", "function"];

const timelineShades = new Map(); // by name; a page sees few
const TIMELINE_SHADES = 4096; // names that are remembered

/** Which of the colours of work a name has: 0 to 7. */
export function timelineShade(name) {
  let shade = timelineShades.get(name);
  if (shade !== undefined) return shade;
  shade = Number(workColour(name).at(-1));
  if (timelineShades.size >= TIMELINE_SHADES) timelineShades.clear();
  timelineShades.set(name, shade);
  return shade;
}

/** The colours of a view's element, as the style sheets have them now. */
export function timelineColours(root) {
  const style = root.ownerDocument.defaultView.getComputedStyle(root);
  const read = (name) => style.getPropertyValue(name).trim();
  const names = ["bg", "fg", "muted", "line", "faint", "accent", "accent-soft", "bad", "bad-soft", "work-text"];
  const colours = Object.fromEntries(names.map((name) => [name, read(`--al-${name}`)]));
  colours.work = Array.from({ length: WORK_COLOURS }, (_, i) => read(`--al-work-${i}`));
  return colours;
}

/** The fills of one picture; each is made when it is first asked for. */
export class TimelineFills {
  #pen;
  #colours;
  #made = new Map();

  constructor(pen, colours) {
    this.#pen = pen;
    this.#colours = colours;
  }

  /** Kernels are solid, copies are hatched, functions are dotted; `shade` is that of the name. */
  of(kind, shade) {
    const colour = this.#colours.work[shade];
    if (kind === "kernel") return colour;
    return this.#once(`${kind} ${shade}`, () => {
      const isCopy = kind === "copy";
      return this.#tile(colour, isCopy ? 0.25 : 0.4, (ink) => {
        if (isCopy) timelineHatch(ink, 2.2, 6, 0);
        else {
          ink.fillRect(0, 0, 2, 2);
          ink.fillRect(3, 3, 2, 2);
        }
      });
    });
  }

  /** What is left of work that ended with its context: pale, hatched the other way. */
  lost(shade) {
    return this.#once(`lost ${shade}`, () => this.#tile(this.#colours.work[shade], 0.12, (ink) => timelineHatch(ink, 1.2, 0, 6)));
  }

  /** What stands for messages that were not traced one by one: pale, with upright lines. */
  get untraced() {
    return this.#once("untraced", () => this.#tile(this.#colours.muted, 0.3, (ink) => ink.fillRect(2, 0, 1, 6)));
  }

  #once(key, make) {
    if (!this.#made.has(key)) this.#made.set(key, make());
    return this.#made.get(key);
  }

  /** A pattern of small squares: a shade of a colour, and in that colour what `draw` draws. */
  #tile(colour, shade, draw) {
    const tile = this.#pen.canvas.ownerDocument.createElement("canvas");
    tile.width = tile.height = 6;
    const ink = tile.getContext("2d");
    ink.fillStyle = this.#colours.bg;
    ink.fillRect(0, 0, 6, 6);
    ink.fillStyle = ink.strokeStyle = colour;
    ink.globalAlpha = shade;
    ink.fillRect(0, 0, 6, 6);
    ink.globalAlpha = 1;
    draw(ink);
    return this.#pen.createPattern(tile, "repeat");
  }
}

function timelineHatch(ink, width, from, to) {
  ink.lineWidth = width;
  for (const x of [-6, 0, 6]) timelineLine(ink, x, from, x + 6, to);
}

/** Draw a line from one point to another. */
export function timelineLine(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

/** A text cut to the pixels that there are; empty where nearly nothing of it would be left. */
export function timelineCut(pen, text, room) {
  const width = pen.measureText(text).width;
  if (width <= room) return text;
  const kept = Math.floor((text.length * room) / width) - 1;
  return kept >= 2 ? `${text.slice(0, kept)}…` : "";
}
