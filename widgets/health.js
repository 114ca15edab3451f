// The health strip, live. State: {lab, sources, closed}, as JSON in bytes: a source is {name, model?,
// samples, at, readings}, a reading {name, words, limit?, means?, warn?, top?, peak?} or, without a
// value, {name, missing}. Columns: as `health_tracks.js` says.

import { standalone } from "./standalone.js";
import { toHtml } from "./dom.js";
import { drawHealth, healthView } from "./health_draw.js";
import { mountHealth } from "./health_mount.js";

/** The whole view as an HTML string. */
export function html(state, view = {}) {
  return toHtml(...drawHealth(state, { ...healthView(), ...view }));
}

export default standalone(mountHealth);
