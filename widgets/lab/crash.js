// The button that crashes a device, and what came of it. Only the lab of the first minute has it.

import { h } from "../shared/dom.js";
import { icon } from "../shared/icons.js";

const TONES = { recovered: ["running", "ok"], recovering: ["restarting", "warn"], "": null }; // of an outcome
const OTHER = ["open", "bad"];

/** `crash` is `{device, outcome, said}`; `acts` says whether anybody obeys. */
export function drawCrash({ device, outcome, said }, acts) {
  const tone = outcome in TONES ? TONES[outcome] : OTHER;
  const running = outcome === "recovering";
  return h(
    "span",
    { key: "crash", class: "al-lab-crash" },
    h("button", { type: "button", class: "al-lab-button al-lab-crash-it", "data-do": "crash", disabled: !acts || running || !device, title: `End the process of ${device || "the device"}, as a real fault does` }, icon("warn", 12), "Crash it"),
    h("span", { class: `al-lab-crash-said${tone ? ` al-${tone[1]}` : ""}`, role: "status" }, tone && icon(tone[0], 12), said && h("span", { key: "said" }, said)),
  );
}
