// A notice at the end of a cell that ran for long, as JupyterLab's own: for whoever looked elsewhere.

import { seconds } from "../shared/format.js";
import { followCells } from "./long_cells.js";

const TYPES = { done: "success", failed: "error", cancelled: "warning" };
const DEFAULTS = { notify: true, notifyAfter: 60 };

/** Tells of cells of kernels that have accel_lab; `settings` are JupyterLab's of this plugin, or null. */
export class Notices {
  #settings;
  #notification;
  #show;
  #last = new Map(); // id of a kernel -> its notice, which the next one takes the place of

  /** `notification` is JupyterLab's; `show(path)` goes to a notebook. */
  constructor({ kernels, notification, settings, show }) {
    this.#settings = settings;
    this.#notification = notification;
    this.#show = show;
    followCells(kernels, (cell) => this.#tell(kernels, cell));
  }

  get on() {
    return this.#read("notify");
  }

  /** Notify from now on, or no more. */
  async turn() {
    await this.#settings?.set("notify", !this.on);
  }

  #read(name) {
    return this.#settings?.get(name).composite ?? DEFAULTS[name];
  }

  #tell(kernels, { link, number, seconds: took, outcome }) {
    const kernel = kernels.all().find((one) => one.link === link);
    if (!kernel || link.state !== "open" || !this.on || took < this.#read("notifyAfter")) return;
    const { name, path } = kernel;
    const last = this.#last.get(link.kernel.id);
    if (last) this.#notification.dismiss(last);
    const notice = this.#notification.emit(`${name}: cell [${number}] ${outcome} after ${seconds(took)}`, TYPES[outcome], {
      autoClose: false, // whoever comes back sees it
      actions: [{ label: "Show", callback: () => this.#show(path) }],
    });
    this.#last.set(link.kernel.id, notice);
  }
}
