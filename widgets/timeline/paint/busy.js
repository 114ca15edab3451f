// Which share of each piece of time a stream worked.

/** The shares of `columns` equal pieces of a window in which a track worked, put into `into` where they are more. */
export function timelineBusy(track, window, columns, into) {
  const [from, to] = window;
  const scale = columns / (to - from);
  const share = new Float32Array(columns);
  const { start, end, tail } = track;
  for (let i = track.from(from); i < tail && start[i] <= to; i += 1) {
    if (end[i] >= from) timelineWorked(share, (start[i] - from) * scale, (end[i] - from) * scale);
  }
  for (let x = 0; x < columns; x += 1) if (share[x] > into[x]) into[x] = Math.min(1, share[x]);
  return into;
}

/** Count work from one place to another, in columns. */
export function timelineWorked(share, x0, x1) {
  const last = Math.min(share.length - 1, x1);
  for (let x = Math.max(0, Math.floor(x0)); x <= last; x += 1) share[x] += Math.max(0, Math.min(x + 1, x1) - Math.max(x, x0)) + 1e-6;
}

/** The same for what has been running since `start`. */
export function timelineBusyUntil(into, start, now, window) {
  const [from, to] = window;
  const scale = into.length / (to - from);
  const share = new Float32Array(into.length);
  timelineWorked(share, (start - from) * scale, (Math.max(now, start) - from) * scale);
  for (let x = 0; x < into.length; x += 1) if (share[x] > into[x]) into[x] = Math.min(1, share[x]);
}
