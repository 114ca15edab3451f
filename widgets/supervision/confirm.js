// What is asked before a fault is caused on purpose: what it will do, and what that costs.

import { h } from "../shared/dom.js";
import { plural } from "../shared/format.js";
import { icon } from "../shared/icons.js";

const FEED_DOES = {
  kill: (device) => `kill ${device}'s process`,
  segfault: (device) => `have ${device}'s process crash with SIGSEGV`,
  exit: (device) => `have ${device}'s process exit`,
  poison: (device) => `break ${device}'s context with an illegal memory access`,
  trap: (device) => `break ${device}'s context with a kernel that traps`,
  hang: (device) => `hang ${device} for 2 s, then replace its process`,
  library: (device) => `have a library call on ${device} fail`,
  "out of memory": (device) => `ask ${device} for more memory than it has`,
};
const FEED_HARMLESS = new Set(["library", "out of memory"]); // the context goes on

/** What a fault will do to a device, and what becomes of its arrays, in a sentence. */
export function feedEffect({ fault, device }, state) {
  const deed = FEED_DOES[fault]?.(device) ?? `cause ${fault} on ${device}`;
  if (FEED_HARMLESS.has(fault)) return `${deed}; nothing is lost`;
  const { arrays } = (state.devices ?? []).find(({ name }) => name === device) ?? {};
  if (arrays === 0) return `${deed}; it holds no arrays`;
  const which = arrays === undefined ? "its arrays" : plural(arrays, "array");
  return `${deed}; ${which} will be ${state.stale ? "lost" : "rebuilt"}`;
}

/** The question in place of the buttons; Cancel comes first and has the focus. */
export function feedConfirm(confirm, state) {
  const words = feedEffect(confirm, state);
  const button = (deed, text, classes = "") => h("button", { key: deed, type: "button", class: `al-supervision-button${classes}`, "data-do": deed }, text);
  return h(
    "span",
    { key: "confirm", class: "al-supervision-confirm al-bad", role: "group", "aria-label": `Inject a fault? This will ${words}.` },
    h("span", { class: "al-word" }, icon("warn", 12), "Inject a fault?"),
    h("span", { class: "al-supervision-effect" }, `This will ${words}.`),
    h("span", { class: "al-supervision-group" }, button("cancel", "Cancel"), button("confirm", `Inject ${confirm.fault}`, " al-supervision-danger")),
  );
}
