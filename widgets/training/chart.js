// A number over the steps of a trainer as plain nodes: a line, its extent, and marks at some steps.

import { h } from "../shared/dom.js";
import { icon } from "../shared/icons.js";

const TRAINING_WIDE = 600; // units of the drawing
const TRAINING_HIGH = 100;
const TRAINING_MARGIN = 3;

/**
 * The chart of `values` over `steps`; null where no value is known.
 *
 * `now` is the newest in words; `marks` are [{step, title}].
 */
export function trainingChart(title, name, steps, values, now, marks = []) {
  const known = (values ?? []).filter((value) => value !== null);
  if (!known.length) return null;
  const [first, last] = [steps[0], steps.at(-1)];
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const share = (step) => (last > first ? (step - first) / (last - first) : 1);
  const words = `${title} over steps ${first} to ${last}: ${trainingNumber(known[0])} at first, ${now} now, ${trainingNumber(low)} to ${trainingNumber(high)}`;
  return h(
    "figure",
    { key: name, class: `al-training-chart al-training-${name}`, "data-chart": name },
    h("figcaption", {}, h("span", { class: "al-muted" }, title), h("strong", {}, now)),
    h(
      "div",
      { class: "al-training-plot", role: "img", "aria-label": words },
      h("svg", { class: "al-training-curve", viewBox: `0 0 ${TRAINING_WIDE} ${TRAINING_HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" }, h("path", { d: trainingPath(steps.map(share), values, low, high) })),
      marks
        .filter(({ step }) => step >= first && step <= last)
        .map(({ step, title }) => h("span", { key: step, class: "al-training-mark", "data-step": step, style: `left: clamp(6px, ${(share(step) * 100).toFixed(2)}%, 100% - 6px)`, title }, icon("restarting", 12))),
    ),
    h("div", { class: "al-training-axis al-muted", "aria-hidden": "true" }, h("span", {}, `step ${first}`), h("span", {}, low === high ? trainingNumber(low) : `${trainingNumber(low)} to ${trainingNumber(high)}`), h("span", {}, String(last))),
  );
}

/** A line through the values that are there; one between two gaps is a dot. */
function trainingPath(shares, values, low, high) {
  const x = (share) => (TRAINING_MARGIN + share * (TRAINING_WIDE - 2 * TRAINING_MARGIN)).toFixed(1);
  const y = (value) => (TRAINING_HIGH - TRAINING_MARGIN - (high > low ? (value - low) / (high - low) : 0.5) * (TRAINING_HIGH - 2 * TRAINING_MARGIN)).toFixed(1);
  let path = "";
  let isDown = false;
  values.forEach((value, i) => {
    if (value !== null) path += isDown ? `L${x(shares[i])} ${y(value)}` : `M${x(shares[i])} ${y(value)}h0`;
    isDown = value !== null;
  });
  return path;
}

/** A number in three digits: 2.91, 0.0031, 1.2e-7. */
function trainingNumber(value) {
  return String(Number(value.toPrecision(3)));
}
