// A tree of actors as the rows that are visible, and what changed between two trees.
//
// An actor: {name, kind, state, generation?, mailbox?, in_flight?, used_bytes?, total_bytes?,
// restarts?, detail?, running?, children?}; a number that is 0 may be absent. Its path is the names from the
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
 * The visible rows: {path, actor, level, position, size, open, inside}.
 *
 * `open` is null for a leaf. `inside` counts what a folded row hides: {actors, trouble}, where
 * trouble is the state of the first troubled one. While a filter is on, folds are ignored and the
 * rows are what matches with the ancestors that lead there.
 */
export function rows(root, { folded, filter = "", troubledOnly = false }) {
  const wanted = filter.trim().toLowerCase();
  const filtering = wanted !== "" || troubledOnly;
  const matches = (actor) => {
    const text = `${actor.name} ${actor.kind} ${actor.state} ${actor.detail ?? ""} ${actor.running ?? ""}`.toLowerCase();
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
  const visit = (actor, parent, level, position, size) => {
    const path = parent ? `${parent}/${actor.name}` : actor.name;
    const children = (actor.children ?? []).filter((child) => !filtering || shown.has(child));
    const open = children.length ? filtering || !folded.has(path) : null;
    out.push({ path, actor, level, position, size, open, inside: open === false ? inside(actor) : null });
    if (open) children.forEach((child, i) => visit(child, path, level + 1, i + 1, children.length));
  };
  if (root && (!filtering || shown.has(root))) visit(root, "", 1, 1, 1);
  return out;
}

function inside(actor) {
  const below = [...walk(actor)].slice(1).map(([, child]) => child);
  return { actors: below.length, trouble: below.find(isTroubled)?.state ?? null };
}

/** Totals of a tree: devices, actors, and how many actors are in each state. */
export function summary(root) {
  const states = new Map();
  let devices = 0;
  let actors = 0;
  for (const [, actor] of walk(root)) {
    actors += 1;
    devices += actor.kind === "device";
    states.set(actor.state, (states.get(actor.state) ?? 0) + 1);
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
