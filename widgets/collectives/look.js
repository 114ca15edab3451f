// What the words of a world look like.

import { h } from "../shared/dom.js";
import { icon } from "../shared/icons.js";

const COLLECTIVES_LOOKS = {
  // Of a rank.
  ready: ["idle", "ok"],
  arrived: ["running", "ok"],
  "waited for": ["half-open", "warn"],
  queued: ["idle", "off"],
  joining: ["starting", "busy"],
  starting: ["starting", "busy"],
  suspended: ["suspended", "off"],
  lost: ["open", "bad"],
  out: ["stopped", "off"],
  // Of a world, and of what became of its communicator.
  whole: ["running", "ok"],
  forming: ["restarting", "busy"],
  closed: ["stopped", "off"],
  formed: ["running", "ok"],
  broken: ["open", "bad"],
  "given up": ["warn", "bad"],
};

/** The icon and the tone of a word; one that this file does not know still shows its word. */
export function collectivesLook(word) {
  const [name, tone] = COLLECTIVES_LOOKS[word] ?? ["half-open", "warn"];
  return { name, tone };
}

/** A word with its glyph, in its colour. */
export function collectivesWord(word) {
  const { name, tone } = collectivesLook(word);
  return h("span", { class: `al-word al-${tone}` }, icon(name, 12), word);
}
