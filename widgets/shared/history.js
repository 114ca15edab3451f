// The last half minute of one number per key, bounded, and as the path of a sparkline.

export const WINDOW_S = 30;
const LIMIT = 40; // points kept per key

export class History {
  #points = new Map();

  /** Note `value` at `at` seconds. What falls close to the last point is merged into it: the peak stays. */
  push(key, at, value) {
    let points = this.#points.get(key);
    if (!points) this.#points.set(key, (points = []));
    const last = points.at(-1);
    if (last && at - last.at < WINDOW_S / LIMIT) last.value = Math.max(last.value, value);
    else points.push({ at, value });
    while (points.length > LIMIT || (points.length > 1 && points[1].at < at - WINDOW_S)) points.shift();
  }

  /** Forget every key that `keep` does not have. */
  retain(keep) {
    for (const key of this.#points.keys()) if (!keep.has(key)) this.#points.delete(key);
  }

  /** A stepped line in a `width` x `height` box whose right edge is `now`; "" while all is zero. `top` is the box's. */
  path(key, now, width, height, top = 0) {
    const points = this.#points.get(key) ?? [];
    const peak = Math.max(0, ...points.map((p) => p.value));
    if (peak === 0) return "";
    const full = Math.max(peak, top);
    const x = (at) => Math.max(0, ((at - now + WINDOW_S) / WINDOW_S) * width).toFixed(1);
    const y = (value) => (height - (value / full) * (height - 1) - 0.5).toFixed(1);
    const steps = points.map((p, i) => `${i ? "H" : "M"}${x(p.at)}${i ? "V" : " "}${y(p.value)}`);
    return `${steps.join("")}H${width}`;
  }
}
