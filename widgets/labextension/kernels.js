// The kernels of the page's notebooks and consoles, each with its link and what people call it.

import { KernelLink } from "./kernel_link.js";

/** Follows trackers of widgets that have a `sessionContext`. */
export class Kernels {
  #links = new Map(); // id of a kernel -> {link, contexts: Set}
  #listeners = new Set();

  /** Called with nothing whenever a kernel came or went, or one of them has other systems. */
  listen(callback) {
    this.#listeners.add(callback);
    return () => this.#listeners.delete(callback);
  }

  follow(tracker) {
    const add = (panel) => {
      const context = panel.sessionContext;
      const changed = (_, { oldValue, newValue }) => {
        if (oldValue) this.#drop(oldValue.id, context);
        if (newValue) this.#add(newValue, context);
        this.#tell();
      };
      context.kernelChanged.connect(changed);
      if (context.session?.kernel) this.#add(context.session.kernel, context);
      panel.disposed.connect(() => {
        for (const id of [...this.#links.keys()]) this.#drop(id, context);
        this.#tell();
      });
      this.#tell();
    };
    tracker.forEach(add);
    tracker.widgetAdded.connect((_, panel) => add(panel));
    tracker.currentChanged.connect(() => this.#tell());
  }

  /** Every kernel: {link, name, path}, in the order in which they came. */
  all() {
    return [...this.#links.values()].map(({ link, contexts }) => {
      const [context] = contexts;
      return { link, name: context.name || context.path, path: context.path };
    });
  }

  /** The one of a document, or null. */
  of(path) {
    return this.all().find((one) => one.path === path) ?? null;
  }

  #add(kernel, context) {
    const known = this.#links.get(kernel.id);
    if (known) known.contexts.add(context);
    else {
      const link = new KernelLink(kernel);
      link.listen(() => this.#tell());
      this.#links.set(kernel.id, { link, contexts: new Set([context]) });
    }
  }

  #drop(id, context) {
    const known = this.#links.get(id);
    if (!known?.contexts.delete(context) || known.contexts.size) return;
    this.#links.delete(id);
    known.link.dispose();
  }

  #tell() {
    for (const callback of [...this.#listeners]) callback();
  }
}
