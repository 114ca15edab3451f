// Where things lie: lanes of the notebook, then of each device a heading, a gauge and its streams.

export const TIMELINE_AXIS = 24; // pixels above the first lane
const TIMELINE_HIGH = { cells: 22, waits: 16, heading: 20, gauge: 24, stream: 26 }; // as in the style sheet

/**
 * The lanes of a state, from the top: [{kind, device, row, y, height}]. Those of the notebook have
 * no device, only a stream has a row. `strips` say what else than streams there is to draw.
 */
export function timelineLanes(state, strips = null) {
  const lanes = [];
  let y = TIMELINE_AXIS;
  const push = (kind, device, row) => {
    lanes.push({ kind, device, row, y, height: TIMELINE_HIGH[kind] });
    y += TIMELINE_HIGH[kind];
  };
  if (strips?.cells.length || state?.cells_unrecorded) push("cells", null, null);
  if (strips?.waits.length) push("waits", null, null);
  for (const device of state?.devices ?? []) {
    push("heading", device, null);
    if (strips?.levels.get(device)?.length) push("gauge", device, null);
    state.rows.forEach((row, i) => row.device === device && push("stream", device, i));
  }
  return lanes;
}

/** How high all lanes are, the axis included. */
export function timelineHeight(lanes) {
  const last = lanes.at(-1);
  return last ? last.y + last.height : TIMELINE_AXIS;
}

/** The path of a device, as the views on a page name it. */
export function timelinePath(state, device) {
  return `${state.name}/${device}`;
}

/** Whether an actor's path is that of a device, or of something below it. */
export function timelineIsOf(path, selection) {
  return selection === path || Boolean(selection?.startsWith(`${path}/`));
}
