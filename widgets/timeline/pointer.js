// The pointer, the wheel and the buttons of a timeline, as functions from a view and what happened to
// a change (see `keys.js`). Points are pixels from the left and the top of the picture.

import { timelineActivate, timelineSelect } from "./keys.js";
import { timelinePath } from "./lanes.js";
import { TIMELINE_FOLLOWED_S, timelineAll, timelineFollow, timelineHold, timelineMoved, timelineShown, timelineTimeAt, timelineZoomed } from "./time/range.js";
import { timelinePan } from "./time/scale.js";
import { TIMELINE_GRIP, timelineUnder } from "./slices.js";

const TIMELINE_WHEEL = 0.0025; // of the logarithm of a zoom, for a pixel of the wheel
const TIMELINE_WHEEL_MOST = 200; // pixels of the wheel that count at once
const TIMELINE_ROOM = 4; // times everything, from which the wheel is the page's

/** Begin to drag what is shown, or to brush with the shift key. */
export function timelineDown(view, { x }, { shiftKey }) {
  return { drag: { x, window: timelineShown(view), brush: shiftKey, moved: false } };
}

/** Tell the page which moment is pointed at; move or brush what is dragged. */
export function timelineMove(view, pointer) {
  const { drag, width } = view;
  const change = { pointer, cursor: timelineTimeAt(view, pointer.x) };
  if (!drag || !(drag.moved || Math.abs(pointer.x - drag.x) > TIMELINE_GRIP)) return change;
  const [from, to] = drag.window;
  const at = (x) => from + (x / width) * (to - from);
  const moved = { ...change, drag: { ...drag, moved: true } };
  if (!drag.brush) return { ...moved, range: timelineHold(view, timelinePan(drag.window, at(drag.x) - at(pointer.x))) };
  const span = [at(Math.min(drag.x, pointer.x)), at(Math.max(drag.x, pointer.x))];
  return { ...moved, range: timelineHold(view, drag.window), span }; // what is brushed must not move away
}

/** End a drag; where nothing was dragged, pick what is there and select its device. */
export function timelineUp(view, point, isCancelled) {
  const { drag, state } = view;
  if (!drag || drag.moved || isCancelled) return { drag: null };
  const found = timelineUnder(view, point);
  const change = { drag: null, picked: found?.slice ? { row: found.row, number: found.number, seq: found.seq } : null };
  if (found?.cell) return { ...change, kernel: null };
  if (!found || found.row === null) return change;
  const name = found.slice && state.works[found.slice.work][1];
  const kernel = !name || name === view.kernel?.name ? null : { name, cells: [] }; // the same again lets it go
  return { ...change, kernel, active: found.row, selection: timelinePath(state, state.rows[found.row].device) };
}

/** Point at nothing; the moment stays while something is dragged. */
export function timelineLeave({ drag }) {
  return drag ? { pointer: null } : { pointer: null, cursor: null };
}

/** Zoom around the pointer, or move sideways; null where the wheel is the page's. */
export function timelineWheel(view, { x }, { deltaX, deltaY }) {
  const [from, to] = timelineShown(view);
  if (Math.abs(deltaX) > Math.abs(deltaY)) return { range: timelineMoved(view, (deltaX / view.width) * (to - from)) };
  const [first, last] = view.extent;
  // Where all is shown and more is asked for, the wheel is the page's.
  if (deltaY > 0 && to - from > TIMELINE_ROOM * (last - first) && to - from > TIMELINE_FOLLOWED_S) return null;
  const turned = Math.sign(deltaY) * Math.min(Math.abs(deltaY), TIMELINE_WHEEL_MOST);
  return { range: timelineZoomed(view, Math.exp(turned * TIMELINE_WHEEL), timelineTimeAt(view, x)) };
}

/** What a button does. */
export function timelineButton(view, deed) {
  const deeds = {
    follow: () => ({ range: timelineFollow(view) }),
    all: () => ({ range: timelineAll(view) }),
    in: () => ({ range: timelineZoomed(view, 0.5) }),
    out: () => ({ range: timelineZoomed(view, 2) }),
    unbrush: () => ({ span: null }),
  };
  return deeds[deed]();
}

/** Select the device that was clicked at, and activate the row if it was one. */
export function timelineClick(view, device, row) {
  const selected = timelineSelect(view, device);
  return row === null ? selected : { ...selected, ...timelineActivate(row) };
}
