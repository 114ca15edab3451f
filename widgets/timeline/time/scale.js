// Moments and durations: what part of time is shown, where its ticks are, how both are written.

const TIMELINE_LEAST_S = 5e-6; // wall seconds as Float64 are exact to a quarter of a microsecond
const TIMELINE_MOST_S = 30 * 86_400;
const TIMELINE_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400];
const TIMELINE_UNITS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];

/** A duration with three digits: 12.5 ms, 1 s, 340 µs. `timeline.py` says the same. */
export function timelineDuration(seconds) {
  if (seconds <= 0) return "0 s";
  if (seconds >= 99.95) return `${Math.round(seconds)} s`;
  const [scale, unit] = TIMELINE_UNITS.find(([size]) => seconds >= 0.9995 * size) ?? TIMELINE_UNITS.at(-1);
  return `${Number((seconds / scale).toPrecision(3))} ${unit}`;
}

/** What a slice is called: a message by its number; or so many of which none was traced by itself. */
export function timelineName(name, seq, kind) {
  if (kind !== "untraced") return `${name} #${seq}`;
  return seq > 0 ? `${timelineExact(seq)} ${seq === 1 ? "message" : "messages"} ${name}` : `messages ${name}`;
}

/** A whole number with its thousands apart: 1,203. */
export function timelineExact(n) {
  return n.toLocaleString("en");
}

/** The time of day, local, with so many digits after the second. */
export function timelineClock(at, digits) {
  const unit = 10 ** digits;
  let whole = Math.floor(at);
  let part = Math.round((at - whole) * unit);
  if (part >= unit) [whole, part] = [whole + 1, 0];
  const date = new Date(whole * 1000);
  const two = (n) => String(n).padStart(2, "0");
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return digits ? `${clock}.${String(part).padStart(digits, "0")}` : clock;
}

/** How many digits after the second tell two moments apart that are `step` seconds apart. */
export function timelineDigits(step) {
  return step >= 1 ? 0 : Math.min(6, Math.ceil(-Math.log10(step) - 1e-9));
}

/** The ticks of what is shown with at least `apart` pixels between them on `width`: [{at, label}]. */
export function timelineTicks(shown, width, apart = 120) {
  const [from, to] = shown;
  const least = ((to - from) * apart) / width;
  const step = least > 1 ? (TIMELINE_STEPS.find((s) => s >= least) ?? Math.ceil(least / 86_400) * 86_400) : timelineFraction(least);
  const zone = step >= 1800 ? new Date(from * 1000).getTimezoneOffset() * 60 : 0;
  const ticks = [];
  for (let k = Math.ceil((from - zone) / step); k * step + zone <= to; k += 1) {
    const at = k * step + zone;
    ticks.push({ at, label: `${step >= 10_800 ? timelineDay(at) : ""}${timelineClock(at, timelineDigits(step))}` });
  }
  return ticks;
}

function timelineDay(at) {
  const date = new Date(at * 1000);
  return `${date.getMonth() + 1}/${date.getDate()} `;
}

function timelineFraction(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((n) => n * power).find((s) => s >= least * (1 - 1e-9));
}

/** Show `factor` times as much time; `at` stays where it is. */
export function timelineZoom(shown, factor, at) {
  const [from, to] = shown;
  const length = Math.min(TIMELINE_MOST_S, Math.max(TIMELINE_LEAST_S, (to - from) * factor));
  const share = (at - from) / (to - from);
  return [at - share * length, at + (1 - share) * length];
}

/** Show what is `by` seconds later. */
export function timelinePan(shown, by) {
  return shown.map((at) => at + by);
}
