// What a page has seen, in the trace event format. `accel_lab/views/chrome_trace.py` says the same.

const timelineMicros = (seconds) => Math.round(seconds * 1e9) / 1e3;

/** The trace of a state and of the slices in a TimelineRing, as a plain object. */
export function timelineTrace(state, ring) {
  const slices = [...timelineFinished(state, ring), ...state.running.map(([work, seq, start]) => ({ work, seq, start, end: null }))];
  const times = [...slices.map((slice) => slice.start), ...state.marks.map(([at]) => at)];
  const origin = times.length ? Math.floor(times.reduce((a, b) => Math.min(a, b))) : 0;
  const pids = new Map([...new Set([...state.devices, ...state.marks.map(([, device]) => device)])].map((device, i) => [device, i + 1]));
  const tids = new Map(); // by row; a device counts its own
  const events = [...pids].map(([device, pid]) => timelineNamed("process_name", device, pid, 0));
  state.rows.forEach(({ device, stream }, row) => {
    tids.set(row, 1 + state.rows.slice(0, row).filter((other) => other.device === device).length);
    events.push(timelineNamed("thread_name", stream, pids.get(device), tids.get(row)));
  });
  for (const { work, seq, start, end } of slices) {
    const [row, name, kind, lost] = state.works[work];
    const place = { pid: pids.get(state.rows[row].device), tid: tids.get(row), ts: timelineMicros(start - origin) };
    const whole = end === null ? {} : { dur: timelineMicros(Math.max(0, end - start)) };
    events.push({ ph: end === null ? "B" : "X", name, cat: kind, ...place, ...whole, args: lost ? { seq, lost } : { seq } });
  }
  for (const [at, device, kind, text] of state.marks) {
    events.push({ ph: "i", name: text, cat: kind, pid: pids.get(device), tid: 0, ts: timelineMicros(at - origin), s: "p" });
  }
  return { traceEvents: events, displayTimeUnit: "ms", otherData: { system: state.name, origin_s: origin, not_shown: ring.notShown(state) } };
}

function timelineFinished(state, ring) {
  return ring.newest(Infinity).reverse().map(({ row, place }) => {
    const track = ring.tracks[row];
    return { work: track.work[place], seq: track.seq[place], start: track.start[place], end: track.end[place] };
  });
}

function timelineNamed(what, name, pid, tid) {
  return { ph: "M", name: what, pid, tid, args: { name } };
}

/** Have a page's browser save the trace as a file that is named after the system. */
export function timelineSave(page, state, ring) {
  const window = page.defaultView;
  const text = JSON.stringify(timelineTrace(state, ring));
  const url = window.URL.createObjectURL(new window.Blob([text], { type: "application/json" }));
  const link = page.createElement("a");
  link.href = url;
  link.download = `${state.name || "accel_lab"}-timeline.json`;
  link.click();
  window.setTimeout(() => window.URL.revokeObjectURL(url), 1000);
}
