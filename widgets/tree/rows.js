// A tree of actors as the rows that are visible, and what changed between two trees.
//
// An actor: {name, kind, state, generation?, mailbox?, in_flight?, used_bytes?, total_bytes?,
// restarts?, detail?, running?, rate?, busy?, children?}; `rate` is messages a second, `busy` a share of
// time, both in the last second. A number that is 0 may be absent. Its path is the names from the
// root, joined by "/".

import { plural } from "../shared/format.js";

/** From this many actors on, devices start folded. */
export const FOLD_BEYOND = 200;

/** Yield [path, actor] for a tree, parents first. */
export function* walk(root, parent = "") {
  if (!root) return;
  const path = parent ? `${parent}/${root.name}` : root.name;
  yield [path, root];
  for (const child of root.children ?? []) yield* walk(child, path);
}

/** The paths to fold when a tree is first seen. */
export function initialFolds(root) {
  const actors = [...walk(root)];
  const large = actors.length > FOLD_BEYOND;
  return new Set(large ? actors.filter(([, actor]) => actor.kind === "device").map(([path]) => path) : []);
}

/** Whether somebody should look at this actor. */
export function isTroubled(actor) {
  return !["running", "stopped", "not recorded"].includes(actor.state);
}

/**
 * What an actor does: its state, and of one that runs "busy" or "idle" where its counts are known.
 *
 * Who has a busy actor below is busy, too.
 */
export function doing(actor, lacking = {}) {
  if (actor.state !== "running") return actor.state;
  if (actor.in_flight || actor.mailbox || actor.running || actor.rate || actor.busy) return "busy";
  if (actor.children?.some((child) => doing(child, lacking) === "busy")) return "busy";
  return lacking.mailbox || lacking["in flight"] ? "running" : "idle";
}

/** So many library actors at rest are one row; `views/tree.py` agrees. */
export const QUIET_FOLD = 3;

const AT_REST = ["idle", "running", "stopped", "not recorded"];

/** The path of the row that stands for the actors at rest below `path`. */
export function quietPath(path) {
  return `${path}/*`;
}

/**
 * The visible rows: {path, actor, level, position, size, open, inside, quiet?}.
 *
 * `open` is null for a leaf. `inside` counts what a folded row hides: {actors, trouble}, where
 * trouble is the state of the first troubled one. While a filter is on, folds are ignored and the
 * rows are what matches with the ancestors that lead there. Library actors at rest are one row,
 * whose `quiet` are their names, unless its path is in `opened`. Those in `kept` have rows of their
 * own, and so have those in `looked` while that row is folded: unfolded, nothing moves in it.
 */
export function rows(root, { folded, filter = "", troubledOnly = false, opened = new Set(), kept = new Set(), looked = new Set(), lacking = {} }) {
  const wanted = filter.trim().toLowerCase();
  const filtering = wanted !== "" || troubledOnly;
  const matches = (actor) => {
    const text = `${actor.name} ${actor.kind} ${actor.state} ${doing(actor, lacking)} ${actor.detail ?? ""} ${actor.running ?? ""}`.toLowerCase();
    return text.includes(wanted) && (!troubledOnly || isTroubled(actor));
  };
  const shown = new Set();
  const mark = (actor) => {
    const below = (actor.children ?? []).map(mark).includes(true);
    if (below || matches(actor)) shown.add(actor);
    return shown.has(actor);
  };
  if (root && filtering) mark(root);

  const out = [];
  const visit = (actor, path, level, position, size) => {
    const children = (actor.children ?? []).filter((child) => !filtering || shown.has(child));
    const open = children.length ? filtering || !folded.has(path) : null;
    out.push({ path, actor, level, position, size, open, inside: open === false ? inside(actor) : null });
    if (!open) return;
    const group = quietPath(path);
    const own = opened.has(group) ? kept : new Set([...kept, ...looked]);
    const quiet = filtering ? [] : quietOf(path, children, own, lacking);
    const listed = children.filter((child) => !quiet.includes(child));
    const among = listed.length + (quiet.length > 0);
    listed.forEach((child, i) => visit(child, `${path}/${child.name}`, level + 1, i + 1, among));
    if (!quiet.length) return;
    out.push({ path: group, actor: quietActor(quiet, lacking), level: level + 1, position: among, size: among, open: opened.has(group), inside: null, quiet: quiet.map(({ name }) => name) });
    if (opened.has(group)) quiet.forEach((child, i) => visit(child, `${path}/${child.name}`, level + 2, i + 1, quiet.length));
  };
  if (root && (!filtering || shown.has(root))) visit(root, root.name, 1, 1, 1);
  return out;
}

/** Of the actors below `path` those whose rows nobody misses; none when they are few. */
function quietOf(path, children, kept, lacking) {
  const quiet = children.filter((child) => child.kind === "library" && !child.restarts && !kept.has(`${path}/${child.name}`) && AT_REST.includes(doing(child, lacking)));
  return quiet.length < QUIET_FOLD ? [] : quiet;
}

/** What stands for several actors at rest: "7 idle actors". */
function quietActor(quiet, lacking) {
  const words = new Set(quiet.map((actor) => doing(actor, lacking)));
  const [word] = words.size === 1 ? words : ["more"];
  return { name: `${quiet.length} ${word} actors`, kind: "library", state: quiet[0].state };
}

function inside(actor) {
  const below = [...walk(actor)].slice(1).map(([, child]) => child);
  return { actors: below.length, trouble: below.find(isTroubled)?.state ?? null };
}

/** Totals of a tree: devices, actors, and how many actors do what. */
export function summary(root, lacking = {}) {
  const states = new Map();
  let devices = 0;
  let actors = 0;
  for (const [, actor] of walk(root)) {
    actors += 1;
    devices += actor.kind === "device";
    const does = doing(actor, lacking);
    states.set(does, (states.get(does) ?? 0) + 1);
  }
  return { devices, actors, states };
}

/** The paths whose restart count or generation rose between two trees, parents first. */
export function restarted(before, after) {
  const then = new Map(walk(before));
  return [...walk(after)]
    .filter(([path, actor]) => {
      const old = then.get(path);
      const rose = (field) => (actor[field] ?? 0) > (old[field] ?? 0);
      return old && actor.state !== "stopped" && (rose("restarts") || (old.generation !== undefined && rose("generation")));
    })
    .map(([path]) => path);
}

/** What to tell a listener between two trees: restarts and opened circuits, at most three. */
export function news(before, after) {
  if (!before || !after) return "";
  const then = new Map(walk(before));
  const now = new Map(walk(after));
  const paths = restarted(before, after);
  const tops = paths.filter((path) => !paths.some((other) => path.startsWith(`${other}/`)));
  const said = tops.map((path) => {
    const { name, generation } = now.get(path);
    return `${name} restarted${generation === undefined ? "" : `, generation ${generation}`}`;
  });
  for (const [path, actor] of now) {
    const turned = actor.state === "circuit open" && then.get(path)?.state !== "circuit open";
    if (turned) said.push(`${actor.name}: circuit open`);
  }
  const more = said.length - 3;
  return said.slice(0, 3).concat(more > 0 ? [`and ${plural(more, "more change")}`] : []).join("; ");
}
