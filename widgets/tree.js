// The device tree, live. State: {root, closed}, as JSON in bytes; `tree_rows.js` says what an actor is.

import { standalone } from "./standalone.js";
import { toHtml } from "./dom.js";
import { draw, initialView } from "./tree_draw.js";
import { mountTree } from "./tree_mount.js";

/** The whole view as an HTML string. */
export function html(state, view = {}) {
  return toHtml(...draw(state, { ...initialView(), ...view }));
}

export default standalone(mountTree);
