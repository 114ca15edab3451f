// Histograms as plain nodes: one a look, side by side, in four shades; and the newest one as bars.

import { h } from "../shared/dom.js";
import { count } from "../shared/format.js";

const VALUES_WIDE = 600; // units of the drawing
const VALUES_HIGH = 120;
const VALUES_THIN = 1.5; // so high is a histogram of equal values
const VALUES_SHADES = [2, 4, 7, 9]; // up to which level each shade goes

/** The histograms of `curve` over its looks, the mean as a line, and marks where a look saw NaN or Inf. */
export function valuesHeat({ looks, least, most, mean, levels, bad }) {
  const known = (values) => values.filter((value) => value !== null);
  const [low, high] = [Math.min(...known(least)), Math.max(...known(most))];
  const y = (value) => (1 - (high > low ? (value / 2 - low / 2) / (high / 2 - low / 2) : 0.5)) * (VALUES_HIGH - VALUES_THIN);
  const wide = VALUES_WIDE / looks.length;
  const cells = VALUES_SHADES.map(() => "");
  levels.forEach((digits, at) => {
    if (least[at] === null || !digits) return;
    const top = y(most[at]);
    const each = Math.max(y(least[at]) - top, VALUES_THIN) / digits.length;
    [...digits].forEach((level, number) => {
      if (level === "0") return;
      const begin = top + (digits.length - 1 - number) * each;
      cells[VALUES_SHADES.findIndex((last) => Number(level) <= last)] += `M${(at * wide).toFixed(1)} ${begin.toFixed(1)}h${wide.toFixed(2)}v${each.toFixed(2)}h-${wide.toFixed(2)}z`;
    });
  });
  const finite = Number.isFinite(low);
  const range = finite ? `${valuesNumber(low)} to ${valuesNumber(high)}` : "none finite";
  const words = `Histograms over looks ${looks[0]} to ${looks.at(-1)}: ${range}${bad.some(Boolean) ? "; some saw NaN or Inf" : ""}`;
  return h(
    "figure",
    { key: "heat", class: "al-values-chart al-values-heat" },
    h("figcaption", { class: "al-muted" }, "Histograms over looks"),
    h(
      "div",
      { class: "al-values-plot", role: "img", "aria-label": words },
      h(
        "svg",
        { viewBox: `0 0 ${VALUES_WIDE} ${VALUES_HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" },
        cells.map((d, shade) => h("path", { key: `shade${shade}`, class: `al-values-shade-${shade}`, d })),
        h("path", { key: "mean", class: "al-values-mean", d: valuesLine(mean.map((value) => (value === null ? null : y(value))), wide) }),
      ),
      bad.map((many, at) => many > 0 && h("span", { key: looks[at], class: "al-values-mark", "data-look": looks[at], style: `left: ${((100 * (at + 0.5)) / looks.length).toFixed(2)}%`, title: `Look ${looks[at]}: ${count(many)} NaN or Inf` })),
    ),
    h("div", { class: "al-values-axis al-muted", "aria-hidden": "true" }, h("span", {}, `look ${looks[0]}`), h("span", {}, range), h("span", {}, String(looks.at(-1)))),
  );
}

/** The newest histogram as bars, from `least` to `most`, which are words; null where there is none. */
export function valuesBars(counts, least, most) {
  if (!counts.length) return null;
  const fullest = Math.max(...counts);
  const wide = VALUES_WIDE / counts.length;
  const bars = counts.map((many, at) => {
    const high = many ? Math.max((many / fullest) * VALUES_HIGH, VALUES_THIN) : 0;
    return high ? `M${(at * wide).toFixed(1)} ${VALUES_HIGH}v-${high.toFixed(1)}h${(wide * 0.86).toFixed(1)}v${high.toFixed(1)}z` : "";
  });
  return h(
    "figure",
    { key: "bars", class: "al-values-chart al-values-bars" },
    h("figcaption", { class: "al-muted" }, "Newest histogram"),
    h("div", { class: "al-values-plot", role: "img", "aria-label": `Newest histogram, ${least} to ${most}: ${counts.join(", ")}` }, h("svg", { viewBox: `0 0 ${VALUES_WIDE} ${VALUES_HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" }, h("path", { class: "al-values-bar", d: bars.join("") }))),
    h("div", { class: "al-values-axis al-muted", "aria-hidden": "true" }, h("span", {}, least), h("span", {}, most)),
  );
}

/** A line through the middles of columns, with a gap where there is no value. */
function valuesLine(ys, wide) {
  let path = "";
  ys.forEach((y, at) => {
    const x = ((at + 0.5) * wide).toFixed(1);
    if (y !== null) path += ys[at - 1] === null || at === 0 ? `M${x} ${y.toFixed(1)}h0` : `L${x} ${y.toFixed(1)}`;
  });
  return path;
}

/** A number in three digits: 2.91, 0.0031, 1.2e-7. */
function valuesNumber(value) {
  return String(Number(value.toPrecision(3)));
}
