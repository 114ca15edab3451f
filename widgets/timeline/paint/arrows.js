// Arrows from the slices that made a picked slice's operands, to those that use its results, and
// between the parts of one message to several devices.

import { timelinePicked } from "../slices.js";

const TIMELINE_HEAD = 5; // pixels of an arrow's head
const TIMELINE_PARTS_DASH = [3, 3];

/** Of related messages those that are here: [{way, row, start, end}]; `way` is "from", "to" or "part". */
export function timelineRelated(view) {
  const { state, ring, now } = view;
  const related = state.related;
  const picked = timelinePicked(view);
  if (!related || !picked || !timelineIsIt(state, picked, related.of)) return [];
  const wanted = new Map(); // by device and number
  for (const [way, messages] of [["from", related.makers], ["to", related.users], ["part", related.group]]) {
    for (const [device, seq] of messages) wanted.set(`${device} ${seq}`, way);
  }
  if (!wanted.size) return [];
  const found = [];
  ring.tracks.forEach((track, row) => {
    const { device } = state.rows[row] ?? {};
    const numbers = new Set([...wanted.keys()].filter((key) => key.startsWith(`${device} `)).map((key) => Number(key.slice(device.length + 1))));
    for (let i = track.head; numbers.size && i < track.tail; i += 1) {
      if (numbers.has(track.seq[i]) && state.works[track.work[i]][2] !== "untraced") found.push({ way: wanted.get(`${device} ${track.seq[i]}`), row, start: track.start[i], end: track.end[i] });
    }
  });
  for (const [work, seq, start] of state.running) {
    const [row] = state.works[work];
    const way = wanted.get(`${state.rows[row].device} ${seq}`);
    if (way) found.push({ way, row, start, end: now });
  }
  return found;
}

function timelineIsIt({ works, rows }, { work, seq }, [device, number]) {
  return seq === number && rows[works[work][0]].device === device;
}

/** Draw them in the lanes. */
export function timelinePaintArrows(paint) {
  const { pen, colours, scene } = paint;
  const picked = timelinePicked(scene);
  if (!picked) return;
  const own = scene.state.works[picked.work][0];
  const ownEnd = picked.end ?? scene.now;
  const middle = (row) => {
    const lane = scene.lanes.find((one) => one.row === row);
    return lane && lane.y - scene.top + lane.height / 2;
  };
  for (const { way, row, start, end } of scene.related ?? []) {
    const ends = way === "from" ? [end, middle(row), picked.start, middle(own)] : way === "to" ? [ownEnd, middle(own), start, middle(row)] : [picked.start, middle(own), start, middle(row)];
    timelineArrow(pen, ends.map((value, i) => (i % 2 ? value : paint.x(value))), colours, way === "part");
  }
}

function timelineArrow(pen, [x0, y0, x1, y1], colours, isPart) {
  const bend = Math.max(14, Math.abs(x1 - x0) / 3);
  const curve = () => {
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - (isPart ? 0 : TIMELINE_HEAD), y1);
    pen.stroke();
  };
  pen.lineWidth = 4;
  pen.strokeStyle = colours.bg;
  curve();
  pen.lineWidth = 1.5;
  pen.strokeStyle = pen.fillStyle = colours.fg;
  if (isPart) pen.setLineDash(TIMELINE_PARTS_DASH);
  curve();
  pen.setLineDash([]);
  pen.lineWidth = 1;
  if (isPart) return;
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x1 - TIMELINE_HEAD - 1, y1 - TIMELINE_HEAD);
  pen.lineTo(x1 - TIMELINE_HEAD - 1, y1 + TIMELINE_HEAD);
  pen.closePath();
  pen.fill();
}
