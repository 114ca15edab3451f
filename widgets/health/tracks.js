// The last two minutes of each reading, as they come in columns, and as the path of a sparkline.

/** How far back a sparkline goes, seconds. */
export const HEALTH_WINDOW_S = 120;

/**
 * Read the columns that belong to a state: of each source `samples` moments, then as many values a
 * reading, Float64. Returns [{times, values: [Float64Array, …]}, …], or null when they do not fit:
 * they are of another state, and the right ones are on their way.
 */
export function healthTracks(view, sources) {
  const length = sources.reduce((sum, { samples, readings }) => sum + samples * (1 + readings.length), 0);
  if (!view || view.byteLength !== 8 * length) return null;
  let at = 0;
  const column = (n) => Float64Array.from({ length: n }, () => view.getFloat64(8 * at++, true));
  return sources.map(({ samples, readings }) => ({ times: column(samples), values: readings.map(() => column(samples)) }));
}

/**
 * The values as a line in a `width` x `height` box whose right edge is `now`, from 0 to `top`; where
 * the values stay far below that, or there is none, to their own peak. A missing value is a gap.
 */
export function healthPath(times, values, now, top, width, height) {
  const peak = values.reduce((most, value) => (value > most ? value : most), 0);
  const scale = top && peak > top / 4 ? top : peak;
  if (scale <= 0) return "";
  const x = (at) => ((at - now + HEALTH_WINDOW_S) / HEALTH_WINDOW_S) * width;
  const y = (value) => height - Math.min(1, value / scale) * (height - 1) - 0.5;
  let path = "";
  let isDown = false;
  for (let i = 0; i < times.length; i += 1) {
    const isSeen = !Number.isNaN(values[i]) && times[i] >= now - HEALTH_WINDOW_S;
    if (isSeen) path += `${isDown ? "L" : "M"}${x(times[i]).toFixed(1)} ${y(values[i]).toFixed(1)}`;
    isDown = isSeen;
  }
  return path;
}
