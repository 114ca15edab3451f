// Which panels somebody closed: those do not come by themselves again.

// Of the workspace's state: `view:path` each. Keys of "accel-lab:" are what the layout restores, and drops else.
const KEY = "accel-lab-panels:closed";

/** Keeps it in `state`, JupyterLab's `IStateDB`; without one, while the page lives. */
export class Closed {
  #state;
  #names;

  constructor(state) {
    this.#state = state;
    this.#names = read(state);
  }

  async has(view, of) {
    return (await this.#names).has(`${view}:${of}`);
  }

  async add(view, of) {
    const names = await this.#names;
    await this.#save(names.add(`${view}:${of}`));
  }

  async remove(view, of) {
    const names = await this.#names;
    if (names.delete(`${view}:${of}`)) await this.#save(names);
  }

  async #save(names) {
    await this.#state?.save(KEY, [...names]);
  }
}

async function read(state) {
  const kept = await state?.fetch(KEY);
  return new Set(Array.isArray(kept) ? kept : []);
}
