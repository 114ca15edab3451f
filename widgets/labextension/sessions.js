// The sessions that notebooks had open, and a notebook that gets its names back from one: a notice after a restart, a
// command, and a card of the launcher.

const KNOWN_KEY = "accel-lab-sessions:known"; // of the workspace's state; see `closed.js`
const KEPT = 8; // so many are remembered, the newest first
const NOTICE_MS = 60_000;
const REOPEN = "Reopen with its session";

/** What is remembered of one is {path, folder, backend}; `path` is the notebook's. */
export class Sessions {
  #kernels;
  #state;
  #notification;
  #open;
  #known = [];
  #notices = new Map(); // path of a notebook -> its notice
  #were = new Map(); // link -> path of a notebook whose session it had
  #changed;

  /** `open(path)` returns the panel of a notebook; `changed` is called when another one is known. */
  constructor({ kernels, state, notification, open, changed }) {
    this.#kernels = kernels;
    this.#state = state;
    this.#notification = notification;
    this.#open = open;
    this.#changed = changed;
    kernels.listen(() => this.#look());
    void this.#restore();
  }

  /** All that are known, the newest first. */
  all() {
    return [...this.#known];
  }

  /** The one that a notebook had and has not now, or null. */
  lost(path) {
    const known = this.#known.find((one) => one.path === path) ?? null;
    return known && !this.#isOpen(known) ? known : null;
  }

  /** Have the kernel of a notebook open its session again; says what came back. */
  async reopen(session) {
    const panel = await this.#open(session.path);
    await panel.context.ready;
    await panel.sessionContext.ready;
    if (this.#isOpen(session)) return;
    this.#dismiss(session.path);
    const kernel = panel.sessionContext.session?.kernel;
    if (!kernel) throw new Error("the notebook has no kernel");
    const [folder, backend] = [session.folder, session.backend].map((one) => JSON.stringify(one));
    const future = kernel.requestExecute({
      code: "",
      silent: true,
      store_history: false,
      user_expressions: { opened: `__import__("accel_lab.session.reopening", fromlist=["reopen"]).reopen(${folder}, ${backend})` },
    });
    const { content } = await future.done;
    const opened = content.user_expressions?.opened ?? content;
    if (opened.status === "ok") this.#tell("success", opened.data["text/plain"]);
    else this.#tell("error", `${opened.ename}: ${opened.evalue}`);
  }

  #tell(type, text) {
    this.#notification?.emit(text, type, { autoClose: type === "error" ? false : 10_000 });
  }

  #isOpen({ path, folder }) {
    const found = this.#kernels.of(path);
    return found !== null && found.link.systems.some(({ session }) => session === folder);
  }

  #look() {
    const [there, paths] = [new Set(), new Set()];
    for (const { link, path } of this.#kernels.all()) {
      there.add(link);
      paths.add(path);
      const system = link.systems.find(({ session }) => session);
      if (system) {
        this.#were.set(link, path);
        this.#dismiss(path);
        this.#remember({ path, folder: system.session, backend: system.backend });
      } else if (this.#were.has(link) && link.state === "restarted") {
        this.#were.delete(link);
        this.#offer(path);
      }
    }
    for (const link of [...this.#were.keys()]) if (!there.has(link)) this.#were.delete(link);
    for (const path of [...this.#notices.keys()]) if (!paths.has(path)) this.#dismiss(path);
  }

  #offer(path) {
    const session = this.lost(path);
    if (!session || !this.#notification) return;
    this.#dismiss(path);
    const callback = () => void this.reopen(session).catch((error) => this.#tell("error", String(error.message ?? error)));
    const words = `${path}: the kernel was restarted; ${session.folder.split("/").at(-1)} has its names`;
    this.#notices.set(path, this.#notification.emit(words, "info", { autoClose: NOTICE_MS, actions: [{ label: REOPEN, callback }] }));
  }

  #dismiss(path) {
    const notice = this.#notices.get(path);
    if (notice === undefined) return;
    this.#notices.delete(path);
    this.#notification.dismiss(notice);
  }

  #remember(session) {
    const [first] = this.#known;
    if (first && first.path === session.path && first.folder === session.folder && first.backend === session.backend) return;
    this.#known = [session, ...this.#known.filter((one) => one.path !== session.path)].slice(0, KEPT);
    void this.#state?.save(KNOWN_KEY, this.#known);
    this.#changed();
  }

  async #restore() {
    const saved = await this.#state?.fetch(KNOWN_KEY);
    if (!Array.isArray(saved)) return;
    const fits = ({ path, folder, backend }) => [path, folder, backend].every((one) => typeof one === "string");
    const paths = new Set(this.#known.map((one) => one.path));
    this.#known = [...this.#known, ...saved.filter((one) => one && fits(one) && !paths.has(one.path))].slice(0, KEPT);
    this.#changed();
  }
}

/** Add the command and the card. */
export function addSessions({ app, kernels, notebooks, state, palette, cards, apputils, icon, category }) {
  const id = "accel-lab:reopen";
  const current = () => notebooks?.currentWidget?.context.path ?? null;
  let card = null;
  const sessions = new Sessions({
    kernels,
    state,
    notification: apputils.Notification ?? null,
    open: (path) => app.commands.execute("docmanager:open", { path }),
    changed: () => {
      if (!card && sessions.all().length) card = cards?.add({ command: id, args: { from: "launcher" }, category: "Notebook", rank: 6 }) ?? null;
      app.commands.notifyCommandChanged(id);
    },
  });
  app.commands.addCommand(id, {
    label: REOPEN,
    caption: "Open a notebook, and have its kernel bind all names again that its session has",
    icon,
    isEnabled: ({ from }) => (from === "launcher" ? sessions.all().length > 0 : sessions.lost(current()) !== null),
    execute: async ({ from }) => {
      const session = from === "launcher" ? await choose(sessions.all(), apputils) : sessions.lost(current());
      if (session) await sessions.reopen(session);
    },
  });
  palette?.addItem({ command: id, category });
  return sessions;
}

/** Ask which, where there are several; null for none. */
async function choose(known, { InputDialog }) {
  if (known.length < 2) return known[0] ?? null;
  const items = known.map(({ path, folder }) => `${path} (${folder})`);
  const { button, value } = await InputDialog.getItem({ title: REOPEN, items, okLabel: "Reopen" });
  return button.accept ? known[items.indexOf(value)] : null;
}
