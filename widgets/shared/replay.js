// Where a replay is, as every view says it: {kind, position, count, at}.

import { h } from "./dom.js";
import { clockTime } from "./format.js";
import { icon } from "./icons.js";

/** Where it is, in words. */
export function replayWhere({ kind, position, count, at }) {
  const noun = kind === "recording" ? "fact" : "entry";
  return `${noun} ${position.toLocaleString("en")} of ${count.toLocaleString("en")} · ${clockTime(at)}`;
}

/** The badge of a view that shows the past, which `where` says in words. */
export function replayBadge(where) {
  return h("span", { key: "replay", class: "al-badge al-warn al-replay" }, icon("restarting", 12), h("strong", {}, "REPLAY"), ` ${where}`);
}
