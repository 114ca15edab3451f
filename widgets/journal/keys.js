// The keyboard of the scrubber, as a pure function (ARIA Authoring Practices, slider; space plays).

/** Entries that a page is. */
export const JOURNAL_PAGE = 15;

/** The command that a key is, or null. */
export function journalPress(key, { position, count, playing }) {
  switch (key) {
    case "ArrowRight":
    case "ArrowUp": return { do: "step", n: 1 };
    case "ArrowLeft":
    case "ArrowDown": return { do: "step", n: -1 };
    case "PageUp": return { do: "seek", position: Math.min(count, position + JOURNAL_PAGE) };
    case "PageDown": return { do: "seek", position: Math.max(0, position - JOURNAL_PAGE) };
    case "Home": return { do: "seek", position: 0 };
    case "End": return { do: "seek", position: count };
    case " ": return { do: playing ? "pause" : "play" };
    case "n": return { do: "next_fault" };
    default: return null;
  }
}
