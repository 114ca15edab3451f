// The cells of a session, live. State: {name, path, count, position?, then?, now?, at?, source?, rows?, new?, gone?, same?,
// first?, first_name?, damage?, closed}, as `accel_lab/views/cells/source.py` says.

import { standalone } from "../shared/standalone.js";
import { toHtml } from "../shared/dom.js";
import { cellsLooks, drawCells } from "./draw.js";
import { mountCells } from "./mount.js";

/** The whole view as an HTML string. */
export function html(state, view = {}) {
  return toHtml(...drawCells(state, { ...cellsLooks(), ...view }));
}

export default standalone(mountCells);
