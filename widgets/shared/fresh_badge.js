// The badge in a view's header: live, stale, closed, waiting for the first state, or a replay.

import { h } from "./dom.js";
import { seconds } from "./format.js";
import { icon } from "./icons.js";
import { replayBadge, replayWhere } from "./replay.js";

/** `stale` is null, or for how many seconds the kernel has been silent, or what became of it. */
export function freshBadge(state, stale) {
  if (!isGone(stale) && state?.replay) return replayBadge(replayWhere(state.replay));
  const [tone, name, words] = freshLook(state, stale);
  return h("span", { key: "badge", class: `al-badge ${tone}` }, icon(name, 12), words);
}

/** Whether the kernel is no more: then a view says nothing else. */
export function isGone(stale) {
  return typeof stale === "string";
}

function freshLook(state, stale) {
  if (state?.closed) return ["al-off", "stopped", "closed · last state"];
  if (isGone(stale)) return ["al-off", "stopped", stale];
  if (stale !== null) return ["al-warn", "half-open", `stale ${seconds(stale)}`];
  return state ? ["al-live al-ok", "running", "live"] : ["al-live al-busy", "starting", "waiting"];
}
