// A kernel, as the panels have it: which systems it has, and one comm that feeds all panels.

const TARGET = "accel_lab"; // of the comm, as `panels.py` has it
const ALIVE_MS = 15_000; // how often the kernel is told which panels there are
let panels = 0;

/**
 * Follows one kernel connection. Whoever listens is called with nothing when `systems` or `state` changed.
 *
 * `state` is "absent" while the kernel has no accel_lab, "open", "restarted" or "dead".
 */
export class KernelLink {
  systems = []; // {name, backend, session} each, `session` the folder of one or "", in the order in which they were opened
  state = "absent";
  #kernel;
  #comm = null;
  #models = new Map(); // id of a panel -> its model
  #listeners = new Set();
  #undo = [];

  constructor(kernel) {
    this.#kernel = kernel;
    this.#follow("iopubMessage", (_, message) => this.#hear(message));
    this.#follow("statusChanged", (_, status) => this.#status(status));
    this.#follow("connectionStatusChanged", (_, status) => status === "connected" && this.#look());
    const timer = setInterval(() => this.#send({ do: "alive", panels: [...this.#models.keys()] }), ALIVE_MS);
    this.#undo.push(() => clearInterval(timer));
    this.#look();
  }

  get kernel() {
    return this.#kernel;
  }

  listen(callback) {
    this.#listeners.add(callback);
    return () => this.#listeners.delete(callback);
  }

  /** Show a view of a system; what is returned is what `standalone.js` calls a model. */
  show(view, system) {
    const id = `${Date.now().toString(36)}-${(panels += 1)}`;
    const model = new PanelModel((message) => this.#send({ do: "command", panel: id, message }), () => {
      this.#models.delete(id);
      this.#send({ do: "hide", panel: id });
    });
    this.#models.set(id, model);
    this.#send({ do: "show", panel: id, view, system });
    return model;
  }

  /** Interrupt what the kernel runs; nothing if it runs nothing. */
  interrupt() {
    return this.#kernel.status === "busy" ? this.#kernel.interrupt() : Promise.resolve();
  }

  dispose() {
    for (const end of this.#undo.splice(0)) end();
    this.#leave("dead");
    this.#listeners.clear();
  }

  #follow(signal, callback) {
    this.#kernel[signal].connect(callback);
    this.#undo.push(() => this.#kernel[signal].disconnect(callback));
  }

  /** Ask the kernel whether it has the comm already, as when the page was loaded anew. */
  async #look() {
    try {
      const answer = await this.#kernel.requestCommInfo({ target_name: TARGET });
      const found = Object.keys(answer.content.comms ?? {});
      if (found.length) this.#attach(found[0]);
    } catch {
      // The kernel went away meanwhile; its status tells.
    }
  }

  #hear(message) {
    if (message.header.msg_type !== "comm_msg" || message.content.data?.[TARGET] !== "systems") return;
    // The last word of a kernel that was restarted comes late, and is that it has no system.
    if (message.content.data.systems.length) this.#attach(message.content.comm_id);
  }

  #attach(id) {
    if (this.#comm?.commId === id || this.#kernel.isDisposed) return;
    this.#comm = this.#kernel.createComm(TARGET, id);
    this.#comm.onMsg = (message) => this.#take(message);
    this.#send({ do: "systems" });
  }

  #take({ content, buffers }) {
    const { data } = content;
    if (data[TARGET] === "systems") {
      this.systems = data.systems;
      this.state = "open";
      this.#tell();
    } else this.#models.get(data.panel)?.take(data, buffers);
  }

  #status(status) {
    if (status === "restarting" || status === "autorestarting") this.#leave("restarted");
    else if (status === "dead") this.#leave("dead");
  }

  #leave(state) {
    this.#comm = null;
    this.#models.clear();
    this.systems = [];
    if (this.state === "open" || this.state === "restarted") this.state = state;
    this.#tell();
  }

  #send(message) {
    if (this.#comm && !this.#kernel.isDisposed) this.#comm.send(message);
  }

  #tell() {
    for (const callback of [...this.#listeners]) callback();
  }
}

/** The state of one view, as `standalone.js` wants it of its host. */
class PanelModel {
  #values = { state: null, columns: null, stamp: 0, silence: 0 };
  #callbacks = new Map(); // event -> Set
  #close;

  constructor(send, close) {
    this.send = send;
    this.#close = close;
  }

  get(name) {
    return this.#values[name];
  }

  on(event, callback) {
    if (!this.#callbacks.has(event)) this.#callbacks.set(event, new Set());
    this.#callbacks.get(event).add(callback);
  }

  off(event, callback) {
    this.#callbacks.get(event)?.delete(callback);
  }

  close() {
    this.#callbacks.clear();
    this.#close();
  }

  take({ stamp, silence, news }, buffers) {
    Object.assign(this.#values, { stamp, silence });
    if (news) Object.assign(this.#values, { state: buffers[0], columns: buffers[1] });
    // Who listens to the state reads the columns, too.
    for (const name of news ? ["state", "stamp"] : ["stamp"]) {
      for (const callback of [...(this.#callbacks.get(`change:${name}`) ?? [])]) callback();
    }
  }
}
