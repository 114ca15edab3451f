// The lab on a page: its parts in their places, all on one bus, and what the pointer does to them.

import { patch } from "../shared/dom.js";
import { keepKeys, mountLabBar } from "./bar.js";
import { drawLabFold } from "./draw.js";
import { drawLabInspector } from "./inspector.js";

const LAB_FOLDS = Symbol.for("accel_lab folds"); // on the page: what was folded stays so while it lives
const LAB_UNSEEN_MS = 500; // how often what is out of sight is drawn
let labs = 0;

/** Draw the parts, `{name, title, mount}` each, into `root`; see `standalone.js`. */
export function mountLab(root, bus, parts) {
  const page = root.ownerDocument;
  const window = page.defaultView;
  const folds = (page[LAB_FOLDS] ??= new Map()); // name -> whether it is folded
  const id = `al-lab-${(labs += 1)}`;
  const places = new Map(); // name of a part -> its place on the page
  let state = null;
  let packed = null; // the columns of all parts
  let frame = 0;

  const block = (tag, name, parent) => {
    const made = page.createElement(tag);
    made.className = name;
    parent.append(made);
    return made;
  };
  root.classList.add("al-lab");
  const bar = mountLabBar(root, bus);
  const grid = block("div", "al-lab-grid", root);
  let inspector = null;

  function paint() {
    frame = 0;
    if (inspector) patch(inspector, drawLabInspector(state, bus.get("selection")));
  }

  function redraw() {
    if (!frame) frame = window.requestAnimationFrame(paint);
  }

  /** Have a part do something; its mistake is not the others'. */
  function ask(place, deed, ...given) {
    try {
      place.view?.[deed]?.(...given);
    } catch (error) {
      window.reportError(error);
    }
  }

  function settle(part) {
    const section = block("div", `al-lab-part al-lab-${part.name}`, grid);
    section.setAttribute("role", "group");
    section.setAttribute("aria-label", part.title);
    const head = block("div", "al-lab-head", section);
    const body = block("div", "al-lab-body", section);
    body.id = `${id}-${part.name}`;
    body.dataset.theme = root.dataset.theme ?? "";
    const place = { part, section, head, body, view: null, held: null, seen: true, drawn: 0 };
    places.set(part.name, place);
    section.dataset.part = part.name;
    const command = (message) => bus.command({ do: "part", part: part.name, message });
    place.view = part.mount(body, new LabPartBus(bus, command));
    if (part.name === "tree") inspector = block("div", "al-lab-inspector", section);
    turn(place, folds.get(part.name) ?? false);
    sight.observe(section);
    return place;
  }

  function turn(place, folded) {
    const { part, body, head, section } = place;
    body.hidden = folded;
    section.classList.toggle("al-lab-folded", folded);
    if (part.name === "tree" && inspector) inspector.hidden = folded;
    patch(head, drawLabFold({ title: part.title, bodyId: body.id, open: !folded }));
    catchUp(place);
  }

  /** Give a part what came while it was folded, or out of sight. */
  function catchUp(place) {
    if (!place.held || place.body.hidden) return;
    place.drawn = window.performance.now();
    const { own, columns, stamp } = place.held;
    place.held = null;
    if (columns) ask(place, "columns", columns);
    ask(place, "take", own, stamp);
  }

  function take(next, stamp) {
    state = next;
    bar.take(next);
    const packs = labPacks(packed, parts.map(({ name }) => name).filter((name) => next[name]));
    for (const part of parts) {
      const own = next[part.name];
      if (!own) continue;
      const place = places.get(part.name) ?? settle(part);
      place.held = { own, columns: packs.get(part.name), stamp };
      if (isDue(place)) catchUp(place);
    }
    redraw();
  }

  function isDue({ seen, drawn }) {
    return seen || window.performance.now() - drawn >= LAB_UNSEEN_MS;
  }

  function onClick(event) {
    const button = event.target.closest(".al-lab-head [data-do]");
    if (!button) return;
    const place = places.get(button.closest("[data-part]").dataset.part);
    folds.set(place.part.name, !place.body.hidden);
    turn(place, !place.body.hidden);
  }

  keepKeys(root);
  root.addEventListener("click", onClick);
  const unwatch = bus.watch("selection", redraw);
  const sight = new window.IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const place = places.get(target.dataset.part);
      place.seen = isIntersecting;
      if (place.seen) catchUp(place);
    }
  });
  // A part that draws on a canvas reads its colours anew when the theme of its root changes.
  const themes = new window.MutationObserver(() => {
    for (const { body } of places.values()) body.dataset.theme = root.dataset.theme ?? "";
  });
  themes.observe(root, { attributes: true, attributeFilter: ["data-theme"] });
  paint();

  return {
    take,
    columns(view) {
      packed = view;
    },
    tick() {
      for (const place of places.values()) {
        if (isDue(place)) catchUp(place);
        if (place.seen && !place.body.hidden) ask(place, "tick");
      }
    },
    stamp(at) {
      for (const place of places.values()) if (!place.body.hidden) ask(place, "stamp", at);
    },
    unmount() {
      unwatch();
      bar.unmount();
      themes.disconnect();
      sight.disconnect();
      window.cancelAnimationFrame(frame);
      for (const place of places.values()) ask(place, "unmount");
    },
  };
}

/** The columns of each part: first how many bytes each has, as Float64, then all those. */
export function labPacks(packed, names) {
  const packs = new Map();
  if (!packed || packed.byteLength < 8 * names.length) return packs;
  let at = 8 * names.length;
  names.forEach((name, i) => {
    const size = packed.getFloat64(8 * i, true);
    if (size) packs.set(name, new DataView(packed.buffer, packed.byteOffset + at, size));
    at += size;
  });
  return packs;
}

/** The bus of the page as one part has it: its commands reach its own view in Python. */
class LabPartBus {
  #bus;

  constructor(bus, command) {
    this.#bus = bus;
    this.command = command;
  }

  get(key) {
    return this.#bus.get(key);
  }

  set(key, value) {
    this.#bus.set(key, value);
  }

  watch(key, callback) {
    return this.#bus.watch(key, callback);
  }
}
