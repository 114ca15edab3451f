// The keyboard of a tree, as a pure function (ARIA Authoring Practices, treegrid, row focus).

const PAGE = 10; // rows

/**
 * What a key does: {active: path}, {fold: path}, {unfold: path}, or null when it means nothing.
 *
 * Arrows up and down, Home, End, Page Up and Page Down move; right unfolds, then goes to the first
 * child; left folds, then goes to the parent; Enter and space turn a fold over; a character goes to
 * the next row whose name begins with it.
 */
export function press(key, rows, active) {
  if (!rows.length) return null;
  const at = Math.max(0, rows.findIndex((row) => row.path === active));
  const row = rows[at];
  const go = (index) => ({ active: rows[Math.min(rows.length - 1, Math.max(0, index))].path });
  switch (key) {
    case "ArrowDown": return go(at + 1);
    case "ArrowUp": return go(at - 1);
    case "PageDown": return go(at + PAGE);
    case "PageUp": return go(at - PAGE);
    case "Home": return go(0);
    case "End": return go(rows.length - 1);
    case "ArrowRight":
      if (row.open === false) return { unfold: row.path };
      return row.open ? go(at + 1) : null;
    case "ArrowLeft":
      if (row.open) return { fold: row.path };
      return row.level > 1 ? go(rows.findLastIndex((other, i) => i < at && other.level < row.level)) : null;
    case "Enter":
    case " ":
      if (row.open === null) return null;
      return row.open ? { fold: row.path } : { unfold: row.path };
    default: return [...key].length === 1 ? initial(key, rows, at) : null;
  }
}

function initial(character, rows, at) {
  const order = [...rows.slice(at + 1), ...rows.slice(0, at + 1)];
  const found = order.find((row) => row.actor.name.toLowerCase().startsWith(character.toLowerCase()));
  return found ? { active: found.path } : null;
}
