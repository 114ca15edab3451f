// How long something took, as people read it.

const DURATION_UNITS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];

/** A duration with three digits: 12.5 ms, 1 s, 340 µs. `timeline.py` says the same. */
export function duration(seconds) {
  if (seconds <= 0) return "0 s";
  if (seconds >= 99.95) return `${Math.round(seconds)} s`;
  const [scale, unit] = DURATION_UNITS.find(([size]) => seconds >= 0.9995 * size) ?? DURATION_UNITS.at(-1);
  return `${Number((seconds / scale).toPrecision(3))} ${unit}`;
}
