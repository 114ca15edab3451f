// The journal view, live. State: {name, kind, count, position, at?, live?, playing?, speed, speeds,
// strip?, window?, faults, dropped?, damage?, unread?, compared?, closed}; see `journal_view.py`.

import { toHtml } from "./dom.js";
import { drawJournal, journalLooks } from "./journal_draw.js";
import { mountJournal } from "./journal_mount.js";
import { standalone } from "./standalone.js";

/** The whole view as an HTML string. */
export function html(state, view = {}) {
  return toHtml(...drawJournal(state, { ...journalLooks(), ...view }));
}

export default standalone(mountJournal);
