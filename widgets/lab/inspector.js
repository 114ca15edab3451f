// What the other parts know of the selected actor: its last events and its largest buffers.

import { h } from "../shared/dom.js";
import { bytes, plural } from "../shared/format.js";
import { icon } from "../shared/icons.js";
import { outcomeLook } from "../supervision/rows.js";

const LAB_EVENTS = 4;
const LAB_BUFFERS = 5;

/** Draw what `state` (of the whole lab) says of the actor at `path`; nothing for none. */
export function drawLabInspector(state, path) {
  if (!path || !state?.tree?.root) return [];
  const events = labEvents(state, path);
  const buffers = labBuffers(state, path);
  return [
    events && h("div", { key: "events", class: "al-lab-facts" }, h("h4", {}, "Recent events"), events.length ? h("ul", {}, events.slice(0, LAB_EVENTS).map(labEvent)) : h("p", { class: "al-muted" }, "none")),
    buffers && h("div", { key: "buffers", class: "al-lab-facts" }, h("h4", {}, "Buffers"), labBufferList(buffers)),
  ].filter(Boolean);
}

/** The rows of supervision that concern an actor, what is above it or below it, the newest first. */
export function labEvents({ supervision }, path) {
  if (!supervision) return null;
  const near = (row) => {
    const other = `${supervision.lab}/${row.path}`;
    return other === path || other.startsWith(`${path}/`) || path.startsWith(`${other}/`);
  };
  return supervision.rows.filter(near).reverse();
}

/** The listed buffers on an actor's device, the largest first; of a library those that it made. */
export function labBuffers({ tree, vram, timeline }, path) {
  if (!vram) return null;
  const [, device, , library] = path.split("/");
  if (device && !tree.root.children?.some(({ name, kind }) => name === device && kind === "device")) return null;
  const made = library && timeline ? labWorks(timeline, device, library) : null;
  return vram.devices
    .filter(({ name }) => !device || name === device)
    .flatMap(({ strip = [] }) => strip.filter(({ ids }) => ids))
    .filter(({ owner }) => !made || made.has(owner.split(" #")[0]))
    .sort((one, other) => other.bytes - one.bytes);
}

/** The names of the messages that a library has worked at. */
function labWorks({ rows = [], works = [] }, device, library) {
  const own = works.filter(([row]) => rows[row]?.device === device && rows[row]?.stream === library);
  return new Set(own.map(([, name]) => name));
}

function labEvent(row) {
  const { tone, icon: name } = outcomeLook(row);
  const clock = new Date(row.at * 1000).toTimeString().slice(0, 8);
  const why = [row.cause, row.decisions?.join(", "), row.took && `took ${row.took}`].filter(Boolean).join(" · ");
  return h(
    "li",
    { key: row.n },
    h("time", { class: "al-muted" }, clock),
    h("span", { class: `al-word al-${tone}` }, icon(name, 12), row.outcome),
    h("span", { class: "al-lab-fact", title: why }, `${row.path}: ${row.what}`, why && h("span", { class: "al-muted" }, ` · ${why}`)),
  );
}

function labBufferList(buffers) {
  if (!buffers.length) return h("p", { class: "al-muted" }, "none");
  const more = buffers.length - LAB_BUFFERS;
  return h(
    "ul",
    {},
    buffers.slice(0, LAB_BUFFERS).map((block) =>
      h(
        "li",
        { key: block.ids.join() },
        h("span", { class: "al-lab-size" }, bytes(block.bytes)),
        h("span", { class: "al-lab-fact" }, `#${block.ids.join(", #")} ${block.what}`, h("span", { class: "al-muted" }, [` · by ${block.owner}`, block.kept && ` · kept by ${block.kept.join(", ")}`])),
      ),
    ),
    more > 0 && h("li", { key: "more", class: "al-muted" }, `and ${plural(more, "more buffer")}`),
  );
}
