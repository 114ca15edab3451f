// Where the parts of a lab stand: columns of panes. A pane has one part, or several as tabs.

/** From this many pixels of width on there are two columns. */
export const LAB_WIDE_PX = 900;

const LAB_WIDE = [
  [["timeline"], ["kernels", "training", "values", "collectives", "topology", "patterns", "agents", "journal"]],
  [["tree"], ["vram"], ["supervision", "health"]],
];
const LAB_NARROW = [[["timeline"], ["tree"], ["supervision", "kernels", "vram", "health", "training", "values", "collectives", "topology", "patterns", "agents", "journal"]]];

/**
 * The columns of a lab that is `width` pixels wide: lists of panes {key, names}.
 *
 * Of the parts only those in `present` are there. One that no pane names is in the last pane.
 */
export function labColumns(width, present) {
  const layout = width > 0 && width < LAB_WIDE_PX ? LAB_NARROW : LAB_WIDE;
  const columns = layout.map((panes) => panes.map((names) => ({ key: names[0], names: names.filter((name) => present.includes(name)) })));
  const placed = new Set(layout.flat(2));
  columns.at(-1).at(-1).names.push(...present.filter((name) => !placed.has(name)));
  return columns.map((panes) => panes.filter(({ names }) => names.length)).filter((panes) => panes.length);
}

/** The tab that a key leads to from `shown`; null when it means nothing. */
export function labTabKey(key, names, shown) {
  const at = names.indexOf(shown);
  switch (key) {
    case "ArrowRight": return names[(at + 1) % names.length];
    case "ArrowLeft": return names[(at - 1 + names.length) % names.length];
    case "Home": return names[0];
    case "End": return names.at(-1);
    default: return null;
  }
}
