// Where things lie: a heading for each device, below it a lane for each of its streams.

export const TIMELINE_AXIS = 24; // pixels above the first lane
const TIMELINE_HEADING = 20;
const TIMELINE_LANE = 26;

/** The lanes of a state, from the top: [{device, row, y, height}]; a heading has row null. */
export function timelineLanes(state) {
  const lanes = [];
  let y = TIMELINE_AXIS;
  const push = (device, row, height) => {
    lanes.push({ device, row, y, height });
    y += height;
  };
  for (const device of state?.devices ?? []) {
    push(device, null, TIMELINE_HEADING);
    state.rows.forEach((row, i) => row.device === device && push(device, i, TIMELINE_LANE));
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
