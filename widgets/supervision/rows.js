// The rows of the supervision feed: which are visible, how they look, and what is said aloud.
//
// A row: {n, at, path, level, what, outcome, steps: [[at, text]], device?, cause?, code?, name?,
// decisions?, before?, after?, took?, skipped?}. Rows come the oldest first and are shown the newest
// first.

/** How an outcome looks: a tone (which colour) and the name of its icon; the word is its own. */
export const FEED_OUTCOMES = {
  recovering: { tone: "busy", icon: "restarting" },
  recovered: { tone: "ok", icon: "running" },
  "circuit open": { tone: "bad", icon: "open" },
  restarted: { tone: "ok", icon: "running" },
  failed: { tone: "bad", icon: "warn" },
  started: { tone: "off", icon: "starting" },
  suspended: { tone: "off", icon: "suspended" },
  stopped: { tone: "off", icon: "stopped" },
  ended: { tone: "off", icon: "stopped" },
};

const FEED_OPENED = "circuit open";
const FEED_SETTLE_S = 0.7; // a loss is often recovered by then, and is said with its recovery
const FEED_EVERY_S = 4;
const FEED_SAID = 2;

/** The look of a row; a fault that ended with a stop is no calm matter. */
export function outcomeLook({ outcome, level }) {
  const found = FEED_OUTCOMES[outcome] ?? { tone: "warn", icon: "half-open" };
  return outcome === "stopped" && level === "fault" ? { ...found, tone: "bad" } : found;
}

/** What `view` ({faultsOnly, device, open}) lets through, as a tree: an incident, below it its steps. */
export function feedRows(rows, { faultsOnly, device, open }) {
  const shown = [...(rows ?? [])].reverse().filter((row) => (!faultsOnly || row.level === "fault") && (!device || row.device === device));
  return shown.flatMap((row, i) => {
    const path = String(row.n);
    const isOpen = open.has(path);
    const head = { path, row, level: 1, position: i + 1, size: shown.length, open: isOpen, actor: { name: row.path } };
    const steps = isOpen ? feedSteps(row) : [];
    return [head, ...steps.map(([at, text], k) => ({ path: `${path}/${k}`, row, at, text, level: 2, position: k + 1, size: steps.length, open: null, actor: { name: text } }))];
  });
}

/** The whole cause of a row, then its steps, with a line where some were left out. */
function feedSteps(row) {
  const cause = feedCause(row);
  const half = Math.ceil(row.steps.length / 2);
  const missing = row.skipped ? [[null, `${row.skipped} steps are not shown`]] : [];
  return [...(cause ? [[null, cause]] : []), ...row.steps.slice(0, half), ...missing, ...row.steps.slice(half)];
}

/** The code's or the signal's name and the reason, without saying the same twice. */
export function feedCause(row) {
  const { code, cause } = feedCauseParts(row);
  return code && cause ? `${code}: ${cause}` : code || cause;
}

/** The driver's code with its name, as "CUDA_ERROR_ILLEGAL_ADDRESS (700)", and the rest of the cause. */
export function feedCauseParts({ name = "", code = 0, cause = "" }) {
  const known = code ? `${name} (${code})` : name;
  if (!known || (!code && cause.includes(name))) return { code: "", cause };
  const said = [known, name].find((one) => one && cause.startsWith(one));
  if (said) return { code: known, cause: cause.slice(said.length).replace(/^[\s:;,]+/, "") };
  return cause.includes(known) ? { code: "", cause } : { code: known, cause };
}

/** Whom a row concerns, without the context between a device and its library: "gpu0/blas". */
export function feedActor({ path }) {
  return path.replace("/context/", "/");
}

/** "g1 → g2", "g1", or "". */
export function feedGenerations({ before, after }) {
  return [before, after].filter((g) => g !== undefined).map((g) => `g${g}`).join(" → ");
}

/** What a state does not hold, as sentences; "" when it holds everything. */
export function feedUnshown({ older = {}, forgotten = 0 }) {
  const n = Object.values(older).reduce((sum, k) => sum + k, 0);
  const some = n === 1 ? "1 older one is not shown." : `${n} older ones are not shown.`;
  return [n > 0 && some, forgotten > 0 && `${forgotten} facts before that are forgotten.`].filter(Boolean).join(" ");
}

/** How many faults there were, those that are not shown included, and how many are not over: {faults, open}. */
export function feedSummary({ rows = [], older = {} }) {
  const faults = rows.filter((row) => row.level === "fault");
  return { faults: faults.length + (older.fault ?? 0), open: faults.filter((row) => row.outcome === FEED_OPENED || row.outcome === "recovering").length };
}

/** The devices whose circuit is open, as a state lists them. */
export function openCircuits(state) {
  return (state?.devices ?? []).filter((device) => device.state === FEED_OPENED).map((device) => device.name);
}

/** What a listener hears of faults: each once, a few at a time, never more often than every 4 s. */
export class FaultSpeaker {
  #known = null; // numbers of the faults of the last state; a note may yet turn out to be one
  #waiting = []; // numbers
  #since = 0;
  #spoke = -Infinity;

  /** Take the rows of a new state, at `now` in seconds; those of the first are old news. */
  take(rows, now) {
    const faults = rows.filter((row) => row.level === "fault").map((row) => row.n);
    const fresh = this.#known ? faults.filter((n) => !this.#known.has(n)) : [];
    if (fresh.length && !this.#waiting.length) this.#since = now;
    this.#waiting.push(...fresh);
    this.#known = new Set(faults);
  }

  /** What to say at `now`; "" while there is nothing, or it is too early. */
  say(rows, now) {
    if (!this.#waiting.length || now < this.#since + FEED_SETTLE_S || now < this.#spoke + FEED_EVERY_S) return "";
    const found = rows.filter((row) => this.#waiting.includes(row.n));
    const more = this.#waiting.length - Math.min(found.length, FEED_SAID);
    this.#waiting = [];
    this.#spoke = now;
    const said = found.slice(-FEED_SAID).map(feedSentence);
    return said.concat(more > 0 ? [`and ${more} more ${more === 1 ? "fault" : "faults"}`] : []).join("; ");
  }
}

function feedSentence(row) {
  const cause = feedCause(row);
  const end = row.outcome === "recovered" && row.took ? `recovered in ${row.took}` : row.outcome;
  return `${row.path}: ${row.what}${cause ? `, ${cause}` : ""}, ${end}`;
}
