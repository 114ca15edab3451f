// The panes of a lab on a page: which part stands where, which tab is shown, and what is folded.

import { patch } from "../shared/dom.js";
import { drawLabHead } from "./draw.js";
import { LabKept } from "./kept.js";
import { labColumns, labTabKey } from "./layout.js";

/**
 * Arranges the places of parts, {part, section, body}, in `columns`, an element.
 *
 * `shown(place)` is called with a part that comes into sight.
 */
export class LabPanes {
  #columns;
  #shown;
  #kept;
  #places = new Map(); // name of a part -> its place
  #panes = new Map(); // key -> {key, names, element, head}
  #arranged = "";
  #heads;

  constructor(columns, shown) {
    this.#columns = columns;
    this.#shown = shown;
    this.#kept = new LabKept(columns.ownerDocument, "");
    // A part's own header begins beside the head of its pane.
    this.#heads = new columns.ownerDocument.defaultView.ResizeObserver((entries) => {
      for (const { target } of entries) target.parentElement?.style.setProperty("--al-lab-head", `${target.offsetWidth}px`);
    });
  }

  /** Arrange as the person did who looked at this system last. */
  remember(system) {
    this.#kept = new LabKept(this.#columns.ownerDocument, system);
  }

  /** Take a new part; `arrange` gives it its place. */
  add(place) {
    this.#places.set(place.part.name, place);
  }

  /** Whether a part is in sight, unless it is scrolled away. */
  isShown(name) {
    const pane = this.#paneOf(name);
    return Boolean(pane) && this.#tabOf(pane) === name && !this.#isFolded(pane);
  }

  /** Put all parts where they belong on a lab that is `width` pixels wide. */
  arrange(width) {
    const columns = labColumns(width, [...this.#places.keys()]);
    const arranged = JSON.stringify(columns);
    if (arranged === this.#arranged) return;
    this.#arranged = arranged;
    const page = this.#columns.ownerDocument;
    const focused = this.#columns.getRootNode().activeElement;
    const scrolled = [...this.#columns.querySelectorAll("*")].filter((one) => one.scrollTop).map((one) => [one, one.scrollTop]);
    this.#panes.clear();
    this.#heads.disconnect();
    const made = columns.map((panes) => {
      const column = page.createElement("div");
      column.className = "al-lab-column";
      column.append(...panes.map((pane) => this.#build(pane)));
      return column;
    });
    this.#columns.replaceChildren(...made);
    this.#columns.classList.toggle("al-lab-wide", columns.length > 1);
    for (const pane of this.#panes.values()) this.#draw(pane);
    for (const [one, top] of scrolled) one.scrollTop = top;
    if (focused && this.#columns.contains(focused)) focused.focus({ preventScroll: true });
  }

  #build({ key, names }) {
    const page = this.#columns.ownerDocument;
    const element = page.createElement("div");
    element.dataset.pane = key;
    const head = page.createElement("div");
    head.className = "al-lab-head";
    element.append(head, ...names.map((name) => this.#places.get(name).section));
    this.#panes.set(key, { key, names, element, head });
    this.#heads.observe(head);
    return element;
  }

  #draw(pane) {
    const { key, names, element, head } = pane;
    const shown = this.#tabOf(pane);
    const open = !this.#isFolded(pane);
    const isTabbed = names.length > 1;
    element.className = `al-lab-pane al-lab-pane-${key}${open ? "" : " al-lab-folded"}${isTabbed ? " al-lab-tabbed" : ""}`;
    for (const name of names) {
      const { part, section, body } = this.#places.get(name);
      section.hidden = name !== shown || !open;
      section.setAttribute("role", isTabbed ? "tabpanel" : "group");
      section.setAttribute("aria-label", part.title);
      body.hidden = section.hidden;
    }
    patch(head, drawLabHead({ tabs: names.map((name) => ({ name, title: this.#places.get(name).part.title, id: this.#places.get(name).section.id })), shown, open }));
    if (open) this.#shown(this.#places.get(shown));
  }

  #paneOf(name) {
    return [...this.#panes.values()].find(({ names }) => names.includes(name));
  }

  #tabOf({ key, names }) {
    const { shown } = this.#kept.of(key);
    return names.includes(shown) ? shown : names[0];
  }

  #isFolded({ key }) {
    return Boolean(this.#kept.of(key).folded);
  }

  #turn(pane, what) {
    this.#kept.set(pane.key, what);
    this.#draw(pane);
  }

  onClick(event) {
    const pane = this.#panes.get(event.target.closest(".al-lab-head")?.parentElement.dataset.pane);
    const { do: deed, tab } = event.target.closest("[data-do]")?.dataset ?? {};
    if (!pane) return;
    if (deed === "fold") this.#turn(pane, { folded: !this.#isFolded(pane) });
    if (deed === "tab") this.#turn(pane, { shown: tab, folded: false });
  }

  onKey(event) {
    const tab = event.type === "keydown" && event.target.closest?.('.al-lab-head [role="tab"]');
    const pane = tab && this.#panes.get(tab.closest("[data-pane]").dataset.pane);
    const next = pane && labTabKey(event.key, pane.names, tab.dataset.tab);
    if (!next) return;
    event.preventDefault();
    this.#turn(pane, { shown: next, folded: false });
    pane.head.querySelector(`[data-tab="${next}"]`).focus({ preventScroll: true });
  }

  unmount() {
    this.#heads.disconnect();
  }
}
