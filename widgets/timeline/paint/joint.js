// Collective operations: of each one mark, with a bar from each rank's begin to the end of all, in the headings
// of their devices, and a line that links them. A joint is [start, end, words, failed, [[device, begin], …]].

import { timelineLine } from "./fills.js";

const TIMELINE_JOINT = 4; // pixels that a bar is high
const TIMELINE_JOINT_NAMED = 24; // pixels from which a mark may have its words

/** Where each rank's bar is: [{device, y, from, to}], the upper first; a rank that never began has none. */
export function timelineJointBars(lanes, top, [, end, , , ranks]) {
  const headings = new Map(lanes.filter((lane) => lane.kind === "heading").map((lane) => [lane.device, lane]));
  return ranks
    .filter(([device, begin]) => headings.has(device) && begin !== null)
    .map(([device, begin]) => {
      const { y, height } = headings.get(device);
      return { device, y: y - top + height - TIMELINE_JOINT - 1, from: begin, to: end };
    })
    .sort((a, b) => a.y - b.y);
}

/** Draw those that are in sight. */
export function timelinePaintJoints(paint) {
  const { pen, colours, scene } = paint;
  for (const joint of scene.state?.joints ?? []) {
    const [start, end, words, failed] = joint;
    if (end < paint.from || start > paint.to) continue;
    const bars = timelineJointBars(scene.lanes, scene.top, joint);
    if (!bars.length) continue;
    pen.fillStyle = pen.strokeStyle = failed ? colours.bad : colours.accent;
    for (const { y, from, to } of bars) pen.fillRect(paint.x(from), y, Math.max(2, paint.x(to) - paint.x(from)), TIMELINE_JOINT);
    const x = Math.round(paint.x(end)) + 0.5;
    timelineLine(pen, x, bars[0].y, x, bars.at(-1).y + TIMELINE_JOINT);
    const [{ y, from }] = bars;
    const left = Math.max(0, paint.x(from));
    const room = paint.x(end) - left;
    if (room < TIMELINE_JOINT_NAMED || pen.measureText(words).width > room) continue;
    pen.fillStyle = colours.fg;
    pen.fillText(words, left, y - 6);
  }
}
