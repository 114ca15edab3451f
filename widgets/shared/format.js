// Numbers and states as people read them. `accel_lab/display/sizes.py` says the same in Python;
// `tests/views/format_cases.json` holds both to it.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** What a state looks like: a word, a tone (which colour), and the name of its icon. */
export const STATES = {
  starting: { tone: "busy", icon: "starting" },
  running: { tone: "ok", icon: "running" },
  busy: { tone: "busy", icon: "play" },
  idle: { tone: "off", icon: "idle" },
  suspended: { tone: "off", icon: "suspended" },
  restarting: { tone: "busy", icon: "restarting" },
  "half-open": { tone: "warn", icon: "half-open" },
  "circuit open": { tone: "bad", icon: "open" },
  stopped: { tone: "off", icon: "stopped" },
  "not recorded": { tone: "off", icon: "half-open" },
};

const UNKNOWN = { tone: "warn", icon: "half-open" };

/** The look of a state; one that this file does not know still shows its word. */
export function look(state) {
  return STATES[state] ?? UNKNOWN;
}

/** What is said of a system of which nothing was seen, as where a replay begins. */
export function unseen({ closed }) {
  return closed ? "The system was closed before it was seen." : "Nothing of it was seen yet.";
}

/** Bytes with a unit: 0 B, 3.2 MiB, 139 GiB. */
export function bytes(size) {
  const unit = unitOf(size);
  return `${scaled(size, unit)} ${UNITS[unit]}`;
}

/** Memory in use of a total, in the unit of the total when that says enough: 1.2 / 139 GiB. */
export function memory(used, total) {
  if (used === null || used === undefined) return "";
  if (!total) return bytes(used);
  const unit = unitOf(total);
  if (used > 0 && scaled(used, unit) === "0") return `${bytes(used)} / ${bytes(total)}`;
  return `${scaled(used, unit)} / ${bytes(total)}`;
}

/** How much of a total is used, in percent: 0 %, < 0.1 %, 3.2 %, 47 %. */
export function percent(used, total) {
  const value = (100 * used) / total;
  if (used > 0 && value < 0.1) return "< 0.1 %";
  return `${value < 9.95 && used > 0 ? value.toFixed(1) : Math.round(value)} %`;
}

/** A count in at most five characters: 0, 940, 9999, 12k, 3.4M. */
export function count(n) {
  if (n < 1e4) return String(n);
  const million = n >= 999_500;
  const value = million ? n / 1e6 : n / 1e3;
  return `${tenths(value)}${million ? "M" : "k"}`;
}

/** A waiting time: 0.4 s, 12 s, 3 min, 2 h. */
export function seconds(s) {
  if (s < 9.95) return `${(Math.floor(s * 10 + 0.5) / 10).toFixed(1)} s`;
  if (s < 90) return `${Math.floor(s + 0.5)} s`;
  if (s < 5400) return `${Math.floor(s / 60 + 0.5)} min`;
  return `${Math.floor(s / 3600 + 0.5)} h`;
}

/** A moment on the clock of whoever looks, to the millisecond. */
export function clockTime(at) {
  const date = new Date(at * 1000);
  const two = (n) => String(n).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** A buffer's number for people: 3, "f1" of what a function made first, "f1g2" in generation 2. */
export function bufferNumber(id) {
  if (id < 2 ** 52) return String(id);
  const generation = Math.floor(id / 2 ** 32) % 2 ** 20;
  return `f${id % 2 ** 32}${generation === 1 ? "" : `g${generation}`}`;
}

/** "1 actor", "3 actors". */
export function plural(n, noun) {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

function unitOf(size) {
  let unit = 0;
  for (let rest = size; rest >= 1023.5 && unit < UNITS.length - 1; rest /= 1024) unit += 1;
  return unit;
}

function scaled(size, unit) {
  return unit === 0 ? String(size) : tenths(size / 1024 ** unit);
}

/** One digit after the point below ten, none above. */
function tenths(value) {
  if (value >= 9.95) return String(Math.floor(value + 0.5));
  const tenth = Math.floor(value * 10 + 0.5);
  return tenth % 10 === 0 ? String(tenth / 10) : (tenth / 10).toFixed(1);
}
