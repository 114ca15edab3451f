// The device tree, live. State: {root, closed}, as JSON in bytes; `rows.js` says what an actor is.

import { standalone } from "../shared/standalone.js";
import { toHtml } from "../shared/dom.js";
import { draw, initialView } from "./draw.js";
import { mountTree } from "./mount.js";

/** The whole view as an HTML string. */
export function html(state, view = {}) {
  return toHtml(...draw(state, { ...initialView(), ...view }));
}

export default standalone(mountTree);
