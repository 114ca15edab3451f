// The health strip, live. State: {lab, sources, closed}, as JSON in bytes: a source is {name, model?,
// samples, at, readings}, a reading {name, words, limit?, means?, warn?, top?, peak?} or, without a
// value, {name, missing}. Columns: as `tracks.js` says.

import { standalone } from "../shared/standalone.js";
import { toHtml } from "../shared/dom.js";
import { drawHealth, healthView } from "./draw.js";
import { mountHealth } from "./mount.js";

/** The whole view as an HTML string. */
export function html(state, view = {}) {
  return toHtml(...drawHealth(state, { ...healthView(), ...view }));
}

export default standalone(mountHealth);
