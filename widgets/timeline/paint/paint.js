// The picture: an axis, slices, density where they are finer than a pixel, rules and the cursor.

import { WORK_COLOURS } from "../../shared/colours.js";
import { TIMELINE_AXIS, timelineIsOf, timelinePath } from "../lanes.js";
import { timelineClock, timelineDigits, timelineDuration, timelineName, timelineTicks } from "../time/scale.js";
import { timelinePaintArrows } from "./arrows.js";
import { timelinePaintBands, timelinePaintCells, timelinePaintGauge, timelinePaintWaits } from "./beside.js";
import { timelinePaintJoints } from "./joint.js";
import { TIMELINE_KINDS, TimelineFills, timelineCut, timelineLine, timelineShade } from "./fills.js";

const TIMELINE_BOX = 2; // pixels from which a slice is drawn as itself
const TIMELINE_FAINT = 0.25; // what is not of the chosen name
const TIMELINE_INSET = 4; // pixels between a slice and the edge of its lane
const TIMELINE_NAMED = 30; // pixels from which a slice may have its name in it
const TIMELINE_CROSS = 14; // pixels that a cross is wide; of those that would overlap one is drawn
const TIMELINE_ASIDE = 4; // pixels between a slice and its name, where that stands beside it
const TIMELINE_FONT = "11px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

/**
 * Paint a moment of a view: `scene` has state, ring, strips, lanes, window ([from, to]), now, cursor, span,
 * selection, picked and hovered ({row, number} or {row, seq} of a running one), top (pixels scrolled
 * away), width and height.
 */
export function timelinePaint(pen, scene, colours) {
  const { lanes, top, width, height } = scene;
  const paint = new TimelinePainter(pen, scene, colours);
  pen.clearRect(0, 0, width, height);
  pen.font = TIMELINE_FONT;
  pen.textBaseline = "middle";
  paint.ground();
  const visible = lanes.filter((lane) => lane.y + lane.height > top && lane.y < top + height);
  pen.save();
  pen.beginPath();
  pen.rect(0, TIMELINE_AXIS, width, height - TIMELINE_AXIS);
  pen.clip();
  timelinePaintBands(paint);
  for (const lane of visible) TIMELINE_PAINTED[lane.kind]?.(paint, lane);
  for (const device of new Set(visible.map((lane) => lane.device))) if (device !== null) paint.marks(device);
  timelinePaintJoints(paint);
  timelinePaintArrows(paint);
  pen.restore();
  paint.moments();
}

/** What draws a lane, by its kind; what a heading has are its device's marks. */
const TIMELINE_PAINTED = { cells: timelinePaintCells, waits: timelinePaintWaits, gauge: timelinePaintGauge, stream: (paint, lane) => paint.lane(lane) };

class TimelinePainter {
  constructor(pen, scene, colours) {
    this.pen = pen;
    this.scene = scene;
    this.colours = colours;
    [this.from, this.to] = scene.window;
    this.scale = scene.width / (this.to - this.from);
    this.fills = new TimelineFills(pen, colours);
    this.faint = (scene.state?.works ?? []).map(([, name]) => Boolean(scene.kernel) && scene.kernel.name !== name); // of each work
    this.shades = (scene.state?.works ?? []).map(([, name]) => timelineShade(name)); // of each work
  }

  x(at) { return (at - this.from) * this.scale; }

  fill(kind, shade) { return kind === "untraced" ? this.fills.untraced : this.fills.of(kind, shade); }

  edge(kind, shade) { return kind === "untraced" ? this.colours.muted : this.colours.work[shade]; }

  ground() {
    const { pen, colours, scene } = this;
    const { width, height, lanes, top, state, selection, activeRow } = scene;
    for (const lane of lanes) {
      const selected = lane.device !== null && timelineIsOf(timelinePath(state, lane.device), selection);
      pen.fillStyle = selected || (activeRow !== null && lane.row === activeRow) ? colours["accent-soft"] : lane.kind === "heading" ? colours.faint : colours.bg;
      pen.fillRect(0, lane.y - top, width, lane.height);
    }
    pen.fillStyle = colours.bg;
    pen.fillRect(0, 0, width, TIMELINE_AXIS);
    const ticks = timelineTicks(scene.window, width);
    pen.fillStyle = colours.line;
    for (const { at } of ticks) pen.fillRect(Math.round(this.x(at)), TIMELINE_AXIS - 5, 1, height);
    pen.fillRect(0, TIMELINE_AXIS - 1, width, 1);
    pen.fillStyle = colours.muted;
    for (const { at, label } of ticks) {
      const x = this.x(at);
      if (x + 4 + pen.measureText(label).width <= width) pen.fillText(label, x + 4, 11);
    }
  }

  lane(lane) {
    const y = lane.y - this.scene.top + TIMELINE_INSET;
    const height = lane.height - 2 * TIMELINE_INSET;
    const track = this.scene.ring.tracks[lane.row];
    const { state, now } = this.scene;
    const running = state.running.filter(([work, , start]) => state.works[work][0] === lane.row && start <= this.to);
    this.taken = new Uint8Array(Math.ceil(this.scene.width)); // the columns of this lane that have work in them, or words
    for (const [, , start] of running) this.take(...this.runs(start, Math.max(now, start)));
    if (track) this.track(track, lane.row, y, height);
    for (const [work, seq, start, queued] of running) {
      this.running(work, seq, start, Math.max(now, start), y, height, queued);
    }
  }

  /** Note that there is something between two edges. */
  take(left, right) { this.taken.fill(1, Math.max(0, Math.floor(left)), Math.max(0, Math.ceil(right))); }

  /** Whether there is nothing between two edges, and both are in sight. */
  isFree(left, right) {
    return left >= 0 && right <= this.scene.width && !this.taken.subarray(Math.floor(left), Math.ceil(right)).includes(1);
  }

  /** The edges of what has been running since `start`. */
  runs(start, now) {
    const left = Math.max(-2, this.x(start));
    return [left, Math.min(this.scene.width + 12, Math.max(this.x(now), left + 8))];
  }

  /** Slices as boxes; those below two pixels become the share of time that a pixel was busy. */
  track(track, row, y, height) {
    const { pen, scene, scale, from, to } = this;
    const { start, end, work, seq, number, tail } = track;
    const { works } = scene.state;
    const columns = Math.ceil(scene.width);
    const looks = works.map(([, , kind], i) => (TIMELINE_KINDS.indexOf(kind) * WORK_COLOURS + this.shades[i]) * 2 + Number(this.faint[i]));
    const busy = []; // by look, where there is one
    const ended = []; // their words stand where nothing is drawn
    for (let i = track.from(from); i < tail && start[i] <= to; i += 1) {
      if (end[i] < from) continue;
      const x0 = (start[i] - from) * scale;
      const x1 = (end[i] - from) * scale;
      this.take(x0, Math.max(x1, x0 + 1));
      if (works[work[i]][2] === "untraced") {
        this.box(x0, Math.max(x1, x0 + 1), timelineName(works[work[i]][1], seq[i], "untraced"), "untraced", 0, y, height);
        continue;
      }
      if (x1 - x0 >= TIMELINE_BOX) {
        const [, name, kind, lost] = works[work[i]];
        const shade = this.shades[work[i]];
        pen.globalAlpha = this.faint[work[i]] ? TIMELINE_FAINT : 1;
        if (lost) ended.push([x0, x1, `${name} #${seq[i]} · ended with its context after ${timelineDuration(end[i] - start[i])}`, shade, y, height]);
        else this.box(x0, x1, name, kind, shade, y, height);
        pen.globalAlpha = 1;
        continue;
      }
      const share = (busy[looks[work[i]]] ??= new Float32Array(columns));
      const left = Math.max(0, Math.floor(x0));
      for (let x = left; x <= x1 && x < columns; x += 1) share[x] += Math.min(x + 1, x1) - Math.max(x, x0) + 1e-6;
    }
    if (busy.length) this.density(busy, columns, y, height);
    for (const one of ended) this.ended(...one);
    for (const mark of [scene.hovered, scene.picked]) {
      const place = mark?.row === row && mark.number !== undefined ? track.placeOf(mark.number) : -1;
      if (place < 0) continue;
      this.queued(scene.strips?.queued.get(number[place]), start[place], y + height / 2);
      this.outline(this.x(start[place]), this.x(end[place]), y, height);
    }
  }

  /** Draw what is finer than a pixel; `busy` has for each look of work the share of each column. */
  density(busy, columns, y, height) {
    const { pen } = this;
    const total = new Float32Array(columns);
    for (const share of busy) if (share) for (let x = 0; x < columns; x += 1) total[x] += share[x];
    const high = total.map((share) => share && Math.min(height, Math.max(3, share * height)));
    const below = new Float32Array(columns);
    busy.forEach((share, look) => {
      const style = look >> 1;
      pen.globalAlpha = look % 2 ? TIMELINE_FAINT : 1;
      pen.fillStyle = this.fills.of(TIMELINE_KINDS[Math.floor(style / WORK_COLOURS)], style % WORK_COLOURS);
      pen.beginPath();
      for (let x = 0; x < columns; x += 1) {
        if (!share[x]) continue;
        const part = (share[x] / total[x]) * high[x];
        below[x] += part;
        pen.rect(x, y + height - below[x], 1, part);
      }
      pen.fill();
    });
    pen.globalAlpha = 1;
  }

  box(x0, x1, name, kind, shade, y, height) {
    const { pen, scene } = this;
    const left = Math.max(-2, x0);
    const right = Math.min(scene.width + 2, x1);
    const gap = right - left > 4 ? 1 : 0;
    pen.fillStyle = this.fill(kind, shade);
    pen.fillRect(left, y, right - left - gap, height);
    if (kind !== "kernel" && right - left > 6) {
      pen.strokeStyle = this.edge(kind, shade);
      pen.strokeRect(left + 0.5, y + 0.5, right - left - gap - 1, height - 1);
    }
    this.name(name, kind, left, right - gap, y, height);
  }

  /** What did not come to its end: hatched the other way, with a strong edge where its context was lost. */
  ended(x0, x1, words, shade, y, height) {
    const { pen, scene, colours } = this;
    const left = Math.max(-2, x0);
    const right = Math.min(scene.width + 2, x1);
    pen.fillStyle = this.fills.lost(shade);
    pen.fillRect(left, y, right - left, height);
    pen.strokeStyle = colours.work[shade];
    pen.strokeRect(left + 0.5, y + 0.5, right - left - 1, height - 1);
    pen.fillStyle = colours.bad;
    pen.fillRect(right - 2, y - 1, 2, height + 2);
    this.label(words, colours.fg, left, right - 2, y, height);
  }

  running(work, seq, start, now, y, height, queued) {
    const { pen, scene, colours } = this;
    const [row, name, kind] = scene.state.works[work];
    const [left, right] = this.runs(start, now);
    pen.globalAlpha = this.faint[work] ? TIMELINE_FAINT : 1;
    pen.fillStyle = this.fill(kind, this.shades[work]);
    pen.beginPath();
    pen.moveTo(left, y);
    const teeth = 4;
    for (let i = 0; i <= teeth * 2; i += 1) pen.lineTo(i % 2 ? right - 5 : right, y + (height * i) / (teeth * 2));
    pen.lineTo(left, y + height);
    pen.closePath();
    pen.fill();
    if (kind !== "kernel") {
      pen.strokeStyle = this.edge(kind, this.shades[work]);
      pen.stroke();
    }
    pen.globalAlpha = 1;
    if (kind === "untraced") return; // its own words stand in the boxes before it
    const words = `${name} #${seq} · running ${timelineDuration(now - start)}`;
    if (this.fits(words, left, right - 5)) this.name(words, kind, left, right - 5, y, height);
    else this.label(words, colours.fg, left, right, y, height);
    for (const mark of [scene.hovered, scene.picked]) {
      if (mark?.row !== row || mark.seq !== seq || mark.number !== undefined) continue;
      this.queued(queued, start, y + height / 2);
      this.outline(left, right, y, height);
    }
  }

  /** Whether words have room between two edges, as far as these are in sight. */
  fits(words, left, right) {
    return this.pen.measureText(words).width <= Math.min(this.scene.width, right) - Math.max(0, left) - 8;
  }

  /** Write words into a box, else beside it where nothing is, else cut into it: they cover no other work. */
  label(words, colour, left, right, y, height) {
    const { pen, colours, scene } = this;
    const width = pen.measureText(words).width + TIMELINE_ASIDE;
    let from = Math.max(0, left) + TIMELINE_ASIDE;
    let text = words;
    if (!this.fits(words, left, right)) {
      const places = [left - width - TIMELINE_ASIDE, right + 2 * TIMELINE_ASIDE];
      const free = places.find((place) => this.isFree(place - 2, place + width));
      const room = Math.min(scene.width, right) - from - 4;
      if (free === undefined) text = room < TIMELINE_NAMED ? "" : timelineCut(pen, words, room);
      else from = free;
    }
    if (!text) return;
    const wide = pen.measureText(text).width;
    pen.fillStyle = colours.bg;
    pen.fillRect(from - 2, y + 1, wide + 4, height - 2);
    pen.fillStyle = colour;
    pen.fillText(text, from, y + height / 2 + 0.5);
    this.take(from - 2, from + wide + 2);
  }

  /** Write a name into a box, cut to what fits; patterns get a plate under it. */
  name(name, kind, left, right, y, height) {
    const { pen, colours } = this;
    const from = Math.max(0, left) + 4;
    const room = Math.min(this.scene.width, right) - from - 4;
    if (room < TIMELINE_NAMED) return;
    const text = timelineCut(pen, name, room);
    if (!text) return;
    if (kind !== "kernel") {
      pen.fillStyle = colours.bg;
      pen.fillRect(from - 2, y + 2, pen.measureText(text).width + 4, height - 4);
    }
    pen.fillStyle = kind === "kernel" ? colours["work-text"] : colours.fg;
    pen.fillText(text, from, y + height / 2 + 0.5);
  }

  /** How long a slice has waited on its device before it began, as a thin line in front of it. */
  queued(at, start, y) {
    if (!at || at >= start) return;
    const { pen, colours } = this;
    const [x0, x1] = [Math.round(this.x(at)), this.x(start)];
    pen.fillStyle = colours.bg;
    pen.fillRect(x0 - 1, y - 3, x1 - x0 + 1, 6);
    pen.fillStyle = colours.fg;
    pen.fillRect(x0, y - 0.75, x1 - x0, 1.5);
    pen.fillRect(x0, y - 4, 1.5, 8);
  }

  outline(x0, x1, y, height) {
    const { pen, colours } = this;
    pen.lineWidth = 2;
    pen.strokeStyle = colours.bg;
    pen.strokeRect(x0 - 2, y - 2, Math.max(2, x1 - x0) + 4, height + 4);
    pen.strokeStyle = colours.fg;
    pen.strokeRect(x0 - 1, y - 1, Math.max(2, x1 - x0) + 2, height + 2);
    pen.lineWidth = 1;
  }

  /** The generation changes of a device as rules through its lanes, its faults as crosses. */
  marks(device) {
    const { pen, colours, scene } = this;
    const lanes = scene.lanes.filter((lane) => lane.device === device);
    const y = lanes[0].y - scene.top;
    const bottom = lanes.at(-1).y + lanes.at(-1).height - scene.top;
    const heading = lanes[0].height;
    const shown = scene.state.marks.filter(([at, of]) => of === device && at >= this.from && at <= this.to);
    let crossed = -Infinity; // where the last cross is
    for (const [at, , kind] of shown) {
      const x = Math.round(this.x(at)) + 0.5;
      if (kind === "generation") {
        pen.strokeStyle = colours.fg;
        pen.setLineDash([4, 3]);
        timelineLine(pen, x, y, x, bottom);
        pen.setLineDash([]);
        continue;
      }
      const middle = Math.min(scene.width - 8, Math.max(8, x - 8));
      if (middle - crossed >= TIMELINE_CROSS) this.cross((crossed = middle), y + heading / 2);
    }
    for (const { at, text } of timelineMerged(shown, 56 / this.scale)) {
      const width = pen.measureText(text).width + 8;
      const x = Math.min(Math.max(this.x(at) + 2, 8 + TIMELINE_CROSS / 2), scene.width - width); // beside a cross
      pen.fillStyle = colours.bg;
      pen.fillRect(x, y + 2, width, heading - 4);
      pen.strokeStyle = colours.fg;
      pen.strokeRect(Math.round(x) + 0.5, y + 2.5, Math.round(width) - 1, heading - 5);
      pen.fillStyle = colours.fg;
      pen.fillText(text, x + 4, y + heading / 2 + 0.5);
    }
  }

  cross(x, y) {
    const { pen, colours } = this;
    pen.fillStyle = colours.bg;
    pen.strokeStyle = colours.bad;
    pen.lineWidth = 1.6;
    pen.beginPath();
    pen.arc(x, y, 6, 0, 2 * Math.PI);
    pen.fill();
    pen.stroke();
    timelineLine(pen, x - 2.5, y - 2.5, x + 2.5, y + 2.5);
    timelineLine(pen, x + 2.5, y - 2.5, x - 2.5, y + 2.5);
    pen.lineWidth = 1;
  }

  /** What runs from top to bottom: now, the span that was brushed, and the cursor. */
  moments() {
    const { pen, colours, scene, from, to } = this;
    const { now, span, cursor, width, height } = scene;
    if (now > from && now < to) {
      pen.fillStyle = colours.muted;
      pen.fillRect(Math.round(this.x(now)), TIMELINE_AXIS, 1, height);
    }
    if (span) {
      const [x0, x1] = span.map((at) => this.x(at));
      pen.fillStyle = colours.accent;
      pen.globalAlpha = 0.16;
      pen.fillRect(x0, 0, x1 - x0, height);
      pen.globalAlpha = 1;
      pen.fillRect(x0 - 1, 0, 1, height);
      pen.fillRect(x1, 0, 1, height);
      if (x1 > 0 && x0 < width) this.plate(`↔ ${timelineDuration(span[1] - span[0])}`, (Math.max(0, x0) + Math.min(width, x1)) / 2, colours.accent);
    }
    if (cursor !== null && cursor >= from && cursor <= to) {
      pen.fillStyle = colours.fg;
      pen.fillRect(Math.round(this.x(cursor)), 0, 1, height);
      this.plate(timelineClock(cursor, Math.min(6, timelineDigits((to - from) / width))), this.x(cursor), colours.fg);
    }
  }

  /** A word on the axis, centred at x as far as the edges allow. */
  plate(text, x, colour) {
    const { pen, colours, scene } = this;
    const width = pen.measureText(text).width + 10;
    const left = Math.round(Math.max(0, Math.min(scene.width - width, x - width / 2)));
    pen.fillStyle = colours.bg;
    pen.fillRect(left, 2, width, 18);
    pen.strokeStyle = colour;
    pen.strokeRect(left + 0.5, 2.5, Math.round(width) - 1, 17);
    pen.fillStyle = colours.fg;
    pen.fillText(text, left + 5, 11.5);
  }
}

/** Generation changes whose labels would overlap, as one label each: g1→g2, g2→g3 are g1→g3. */
export function timelineMerged(marks, apart) {
  const merged = [];
  for (const [at, , kind, text] of marks) {
    if (kind !== "generation") continue;
    const last = merged.at(-1);
    if (last && at - last.at < apart) last.text = `${last.text.split("→")[0]}→${text.split("→")[1]}`;
    else merged.push({ at, text });
  }
  return merged;
}
