// What a person has arranged of the lab of one system: which panes are folded, which tabs are shown.
// It outlives the page in the browser's storage; where there is none, it lives as long as the page.

const LAB_KEPT = Symbol.for("accel_lab kept"); // on the page

/** The arrangement of the lab of `system` on `page`. */
export class LabKept {
  #page;
  #key;
  #values;

  constructor(page, system) {
    this.#page = page;
    this.#key = `accel_lab lab ${system}`;
    this.#values = (page[LAB_KEPT] ??= new Map()).get(this.#key) ?? labStored(page, this.#key) ?? {};
  }

  /** What is kept of a pane: {folded?, shown?}. */
  of(pane) {
    return this.#values[pane] ?? {};
  }

  set(pane, what) {
    this.#values = { ...this.#values, [pane]: { ...this.of(pane), ...what } };
    this.#page[LAB_KEPT].set(this.#key, this.#values);
    try {
      this.#page.defaultView.localStorage.setItem(this.#key, JSON.stringify(this.#values));
    } catch {
      // A sandboxed page has no storage, and a full one takes nothing: the page's own copy is enough.
    }
  }
}

/** What the browser has stored; null where that is nothing that we have written. */
function labStored(page, key) {
  try {
    const found = JSON.parse(page.defaultView.localStorage.getItem(key));
    return found && typeof found === "object" && Object.values(found).every((one) => one && typeof one === "object") ? found : null;
  } catch {
    return null; // a sandboxed page has no storage
  }
}
