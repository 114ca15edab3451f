// The lab on a page: its parts in their panes, all on one bus, and the replay's controls below them.

import { patch } from "../shared/dom.js";
import { keepKeys, mountLabBar } from "./bar.js";
import { drawLabInspector } from "./inspector.js";
import { LabPanes } from "./panes.js";
import { followLabRoom } from "./room.js";

const LAB_UNSEEN_MS = 500; // how often what is out of sight is drawn
let labs = 0;

/**
 * Draw the parts, `{name, title, mount, pins?, scrolls?, absent?}` each, into `root`; see `standalone.js`.
 *
 * A part that `pins` draws something into an element that is always in sight: it gets `pinned`.
 */
export function mountLab(root, bus, parts) {
  const page = root.ownerDocument;
  const window = page.defaultView;
  const id = `al-lab-${(labs += 1)}`;
  const places = new Map(); // name of a part -> its place on the page
  let state = null;
  let packed = null; // the columns of all parts
  let frame = 0;
  let inspector = null;

  const block = (tag, name, parent) => {
    const made = page.createElement(tag);
    made.className = name;
    parent?.append(made);
    return made;
  };
  root.classList.add("al-lab");
  const bar = mountLabBar(root, bus);
  const columns = block("div", "al-lab-columns", root);
  const foot = block("div", "al-lab-foot", root);
  const panes = new LabPanes(columns, (place) => catchUp(place));
  const endRoom = followLabRoom(root);

  function paint() {
    frame = 0;
    if (!inspector) return;
    const drawn = drawLabInspector(state, bus.get("selection"));
    patch(inspector, drawn);
    labRegion(inspector, "Selected actor", drawn.length > 0);
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
    const section = block("div", `al-lab-part al-lab-${part.name}`, null);
    section.id = `${id}-${part.name}`;
    section.dataset.part = part.name;
    const body = block("div", "al-lab-body", section);
    body.dataset.theme = root.dataset.theme ?? "";
    if (part.scrolls) labRegion(body, part.title, true);
    const place = { part, section, body, view: null, held: null, seen: true, drawn: 0 };
    places.set(part.name, place);
    const command = (message) => bus.command({ do: "part", part: part.name, message });
    place.view = part.mount(body, new LabPartBus(bus, command), part.pins ? { pinned: foot } : {});
    if (part.name === "tree") inspector = block("div", "al-lab-inspector", section);
    panes.add(place);
    sight.observe(section);
  }

  /** Whether a part has something to draw where somebody may see it. */
  function isShown({ part }) {
    return part.pins || panes.isShown(part.name);
  }

  /** Give a part what came while it was folded, behind another tab, or out of sight. */
  function catchUp(place) {
    if (!place.held || !isShown(place)) return;
    place.drawn = window.performance.now();
    const { own, columns: view, stamp } = place.held;
    place.held = null;
    if (view) ask(place, "columns", view);
    ask(place, "take", own, stamp);
  }

  function take(next, stamp) {
    if (!state && next.tree?.root) panes.remember(next.tree.root.name);
    state = next;
    bar.take(next);
    const packs = labPacks(packed, parts.filter(({ name, absent }) => next[name] || absent).map(({ name }) => name));
    const unsettled = parts.filter(({ name }) => next[name] && !places.has(name));
    unsettled.forEach(settle);
    if (unsettled.length) panes.arrange(root.clientWidth);
    for (const place of places.values()) {
      const { name } = place.part;
      const own = next[name] ?? place.part.absent?.(next);
      if (!own) continue;
      place.held = { own, columns: packs.get(name), stamp };
      if (isDue(place)) catchUp(place);
    }
    redraw();
  }

  function isDue({ part, seen, drawn }) {
    return seen || part.pins || window.performance.now() - drawn >= LAB_UNSEEN_MS;
  }

  keepKeys(root);
  root.addEventListener("click", (event) => panes.onClick(event));
  root.addEventListener("keydown", (event) => panes.onKey(event));
  const unwatch = bus.watch("selection", redraw);
  const sight = new window.IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const place = places.get(target.dataset.part);
      place.seen = isIntersecting;
      if (place.seen) catchUp(place);
    }
  });
  const sizes = new window.ResizeObserver(() => panes.arrange(root.clientWidth));
  sizes.observe(root);
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
        if (place.seen && isShown(place)) ask(place, "tick");
      }
    },
    stamp(at) {
      for (const place of places.values()) if (isShown(place)) ask(place, "stamp", at);
    },
    unmount() {
      unwatch();
      bar.unmount();
      endRoom();
      panes.unmount();
      themes.disconnect();
      sight.disconnect();
      sizes.disconnect();
      window.cancelAnimationFrame(frame);
      for (const place of places.values()) ask(place, "unmount");
    },
  };
}

/** Have keys reach an element that may scroll and holds nothing that they would reach. */
function labRegion(element, title, isOne) {
  const attributes = { tabindex: "0", role: "region", "aria-label": title };
  for (const [name, value] of Object.entries(attributes)) {
    if (isOne) element.setAttribute(name, value);
    else element.removeAttribute(name);
  }
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
