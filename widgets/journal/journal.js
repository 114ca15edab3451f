// The journal view, live. State: {name, kind, count, position, at?, live?, playing?, speed, speeds,
// strip?, window?, faults, dropped?, bound?, damage?, unread?, compared?, closed}; see `journal_view.py`.

import { toHtml } from "../shared/dom.js";
import { drawJournal, journalLooks } from "./draw.js";
import { mountJournal } from "./mount.js";
import { standalone } from "../shared/standalone.js";

/** The whole view as an HTML string. */
export function html(state, view = {}) {
  return toHtml(...drawJournal(state, { ...journalLooks(), ...view }));
}

export default standalone(mountJournal);
