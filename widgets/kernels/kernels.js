// The kernel table, live. State: as `KernelsView.fold` says, as JSON in bytes.

import { standalone } from "../shared/standalone.js";
import { toHtml } from "../shared/dom.js";
import { drawKernels, kernelsView } from "./draw.js";
import { mountKernels } from "./mount.js";

/** The whole view as an HTML string. */
export function html(state, view = {}) {
  return toHtml(...drawKernels(state, { ...kernelsView(), ...view }));
}

export default standalone(mountKernels);
