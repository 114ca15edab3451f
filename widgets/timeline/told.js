// What is said of one thing in the picture: {what, text}.

import { bytes, plural } from "../shared/format.js";
import { timelineDeviceBusy, timelineLevel } from "./paint/beside.js";
import { timelineClock, timelineDuration, timelineName } from "./time/scale.js";

const TIMELINE_TOLD_CELLS = 3;
const TIMELINE_LOOKED_S = 0.1; // around a moment, for how busy a device was

/** A slice in words. `more` others lie under the same pixel; `queued` is when it was taken up. */
export function timelineDescribe(state, { work, seq, start, end, more = 0, queued = null }, now) {
  const [row, name, kind, lost] = state.works[work];
  const { device, stream } = state.rows[row];
  return {
    what: timelineName(name, seq, kind),
    text: [kind, `${device}/${stream}`, ...timelineTimes({ start, end, queued, lost }, now), more > 0 && `${plural(more, "other")} within a pixel`].filter(Boolean).join(" · "),
  };
}

/** When a slice was taken up, when it began and how long it took: "queued 1.2 ms, ran 340 µs". */
function timelineTimes({ start, end, queued, lost }, now) {
  const ran = end === null ? `running for ${timelineDuration(now - start)}` : timelineLength(end - start, lost);
  if (!queued) return [`from ${timelineClock(start, 6)}`, ran];
  const waited = `queued ${timelineDuration(start - queued)}`;
  return [`reached the device ${timelineClock(queued, 6)}`, `from ${timelineClock(start, 6)}`, end === null || lost ? `${waited}, ${ran}` : `${waited}, ran ${ran}`];
}

/** How a slice hangs together with others, where that was asked for: "of 2, used by 1, cell 4". */
export function timelineRelatedInWords({ related, works, rows }, { work, seq }) {
  if (!related || related.of[0] !== rows[works[work][0]].device || related.of[1] !== seq) return "";
  if (related.why) return `what it came of is not known: ${related.why}`;
  const { makers, users, group, cell } = related;
  return [cell !== null && `cell ${cell}`, makers.length > 0 && `made of ${plural(makers.length, "other")}`, users.length > 0 && `used by ${users.length}`, group.length > 0 && `${plural(group.length, "more part")} on other devices`].filter(Boolean).join(", ");
}

/** How long a slice was, and whether it came to its own end. */
export function timelineLength(seconds, lost) {
  return lost ? `ended with its context after ${timelineDuration(seconds)}` : timelineDuration(seconds);
}

/** A cell in words, with its first line. */
export function timelineCellTold([number, start, end, ended, line], now) {
  const length = end === null ? `running for ${timelineDuration(now - start)}` : `${ended} after ${timelineDuration(end - start)}`;
  const until = end === null ? "" : ` to ${timelineClock(end, 3)}`;
  return { what: `cell ${number}`, text: `${length} · from ${timelineClock(start, 3)}${until} · ${line}` };
}

/** A wait of the notebook's thread in words. */
export function timelineWaitTold([start, end], now) {
  const word = end === null ? "has waited" : "waited";
  return { what: "host wait", text: `the notebook ${word} ${timelineDuration((end ?? now) - start)} for an answer · from ${timelineClock(start, 3)}` };
}

/** What a device held and how busy it was at a moment, in words. */
export function timelineGaugeTold(view, { device, at }) {
  const level = timelineLevel(view.strips, device, at);
  const total = view.state.totals?.[device];
  const [busy] = timelineDeviceBusy(view, device, [at - TIMELINE_LOOKED_S / 2, at + TIMELINE_LOOKED_S / 2], 1);
  const memory = level === null ? "memory not recorded" : `memory ${bytes(level)}${total ? ` of ${bytes(total)}` : ""}`;
  return { what: device, text: `${timelineClock(at, 3)} · ${Math.round(busy * 100)} % busy · ${memory}` };
}

/** The newest cells and the waits in words, for who does not see them; empty where there are none. */
export function timelineCellsInWords(state, strips, now) {
  if (state.cells_unrecorded && !state.cells?.length) return `Cells are not recorded: ${state.cells_unrecorded}.`;
  if (!strips?.cells.length) return "";
  const said = strips.cells.slice(-TIMELINE_TOLD_CELLS).map((cell) => {
    const { what, text } = timelineCellTold(cell, now);
    return `${what} ${text.split(" · ")[0]}`;
  });
  return `The newest cells: ${said.join("; ")}. The notebook waited ${plural(strips.waits.length, "time")} for answers.`;
}
