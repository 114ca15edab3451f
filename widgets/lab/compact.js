// The lab in few lines: the bar, the tree, and a line for each of the other things to know.
// State: {tree, lines: [[title, text, tone], …], closed}.

import { h, patch } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { mountLabBar } from "./bar.js";
import { standalone } from "../shared/standalone.js";
import { mountTree } from "../tree/mount.js";
import { walk } from "../tree/rows.js";

const COMPACT_ICONS = { ok: "running", busy: "starting", warn: "half-open", bad: "warn", off: "stopped" };

/** Every device is one row at first. */
function compactFolds(root) {
  return new Set([...walk(root)].filter(([, { kind }]) => kind === "device").map(([path]) => path));
}

/** Draw the lines. */
export function drawCompact({ lines, closed }) {
  const drawn = lines.map(([title, text, tone]) => {
    const look = closed ? "off" : tone;
    return h("div", { key: title, class: "al-compact-line" }, h("dt", {}, title), h("dd", { class: `al-${look}` }, icon(COMPACT_ICONS[look] ?? "stopped", 12), h("span", {}, text)));
  });
  return [h("dl", { class: "al-compact-lines" }, drawn)];
}

/** Draw the view into `root`; see `standalone.js`. */
export function mountCompact(root, bus) {
  const page = root.ownerDocument;
  const bar = mountLabBar(root, bus);
  const [upper, lower] = ["al-compact-tree", "al-compact-rest"].map((name) => {
    const made = page.createElement("div");
    made.className = name;
    root.append(made);
    return made;
  });
  const tree = mountTree(upper, bus, { folds: compactFolds });
  return {
    ...tree,
    take(state, stamp) {
      bar.take(state);
      tree.take(state.tree, stamp);
      patch(lower, drawCompact(state));
    },
    unmount() {
      bar.unmount();
      tree.unmount();
    },
  };
}

export default standalone(mountCompact);
