// The use of a device's memory over time: a small chart with its peak, faults marked.
//
// A history: {at, peak, peak_at, steps: [[seconds after `at`, percent of `peak`]], faults?}. A step
// holds until the next one, the last until now.

import { h } from "../shared/dom.js";
import { bytes, clockTime, percent, plural, seconds } from "../shared/format.js";
import { icon } from "../shared/icons.js";

const VRAM_WIDE = 600; // units of the drawing
const VRAM_HIGH = 40;

/** The chart of a device up to `now`, wall seconds; null without a history. */
export function vramHistory({ name, used, total, history }, now) {
  if (!history) return null;
  const { at, peak, peak_at: peakAt, steps, faults = [] } = history;
  const span = Math.max(now - at, steps.at(-1)[0], 1);
  const share = (after) => Math.min(1, Math.max(0, after / span));
  const most = `peak ${bytes(peak)}${total ? ` (${percent(peak, total)})` : ""} at ${clockTime(peakAt).slice(0, 8)}`;
  const words = `Memory of ${name} over ${seconds(span)}: ${most}, now ${bytes(used)}${faults.length ? `, ${plural(faults.length, "fault")}` : ""}`;
  return h(
    "div",
    { key: "history", class: "vram-history" },
    h(
      "div",
      { class: "vram-chart", role: "img", "aria-label": words },
      h("svg", { class: "vram-curve", viewBox: `0 0 ${VRAM_WIDE} ${VRAM_HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" }, h("path", { class: "vram-area", d: vramCurve(steps, share, true) }), h("path", { class: "vram-line", d: vramCurve(steps, share, false) })),
      faults.map((after) => h("span", { key: after, class: "vram-fault", style: `left: clamp(6px, ${(share(after) * 100).toFixed(2)}%, 100% - 6px)`, title: `fault at ${clockTime(at + after)}` }, icon("warn", 12))),
    ),
    h("div", { class: "vram-axis", "aria-hidden": "true" }, h("span", {}, `${seconds(span)} ago`), h("span", {}, most), faults.length > 0 && h("span", { class: "al-word al-bad" }, icon("warn", 12), plural(faults.length, "fault")), h("span", {}, "now")),
  );
}

function vramCurve(steps, share, closed) {
  const x = (after) => (share(after) * VRAM_WIDE).toFixed(1);
  const y = (level) => (VRAM_HIGH - 1 - (level / 100) * (VRAM_HIGH - 2)).toFixed(1);
  const line = steps.map(([after, level], number) => (number ? `H${x(after)}V${y(level)}` : `${x(after)} ${y(level)}`)).join("");
  return closed ? `M${x(steps[0][0])} ${VRAM_HIGH}L${line}H${VRAM_WIDE}V${VRAM_HIGH}z` : `M${line}H${VRAM_WIDE}`;
}
