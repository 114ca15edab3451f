// Views as panels beside their notebooks: opened by a command, or because the notebook asks for one.

import { DOCKED, fillPanel } from "./panels.js";

/** The panels of a page; `closed` remembers which of them somebody closed. */
export class Docks {
  #app;
  #notebooks;
  #kernels;
  #labShell;
  #page; // {apputils, widgets, icon}
  #closed;
  #panels;

  /** `labShell` is null where nothing is docked, as in Notebook; so is `notebooks` where there are none. */
  constructor({ app, notebooks, kernels, labShell, closed, page }) {
    this.#app = app;
    this.#notebooks = notebooks;
    this.#kernels = kernels;
    this.#labShell = labShell;
    this.#page = page;
    this.#closed = closed;
    this.#panels = new page.apputils.WidgetTracker({ namespace: "accel-lab" });
    notebooks?.forEach((panel) => void this.#prepare(panel));
    notebooks?.widgetAdded.connect((_, panel) => void this.#prepare(panel));
  }

  /** Have the page's layout keep the panels; `command` opens one. */
  restore(restorer, command) {
    void restorer.restore(this.#panels, { command, args: ({ al }) => al, name: ({ al }) => `${al.view}:${al.of}` });
  }

  /** Show a view beside the notebook of a path; without `view` what the notebook asks for, or the lab. */
  open({ of, view = this.#asked(of) ?? "lab" }) {
    void this.#closed.remove(view, of);
    const known = this.#panels.find(({ al }) => al.view === view && al.of === of);
    if (known) {
      this.#app.shell.activateById(known.id);
      return known;
    }
    const panel = this.#made(view, of);
    const beside = this.#notebook(of);
    if (this.#labShell) this.#labShell.add(panel, "main", beside ? { mode: "split-right", ref: beside.id, activate: false } : { activate: false });
    else {
      this.#app.shell.add(panel, "right");
      this.#app.shell.expandRight(panel.id);
    }
    if (beside) this.#app.shell.activateById(beside.id); // whoever writes goes on writing
    void this.#panels.add(panel);
    return panel;
  }

  #made(view, of) {
    const { apputils, widgets, icon } = this.#page;
    const content = new widgets.Widget();
    content.addClass("al-ext-panel");
    content.addClass(`al-ext-${view}`);
    const panel = new apputils.MainAreaWidget({ content });
    panel.toolbar.hide();
    panel.al = { view, of };
    panel.id = `accel-lab-${view}-${of}`;
    panel.title.label = `${DOCKED.get(view).title}: ${(of ?? "").split("/").at(-1)}`;
    panel.title.icon = icon;
    panel.title.closable = true;
    const end = fillPanel(content.node, this.#kernels, of, view);
    panel.disposed.connect(() => {
      end();
      void this.#closed.add(view, of);
    });
    return panel;
  }

  #notebook(of) {
    return this.#notebooks?.find((one) => one.context.path === of);
  }

  /** Which view the notebook of a path asks for in its metadata, `{"accel_lab": {"beside": "lab"}}`. */
  #asked(of) {
    const view = this.#notebook(of)?.content.model?.getMetadata("accel_lab")?.beside;
    return DOCKED.has(view) ? view : null;
  }

  /** Show what a notebook asks for, unless that was closed; what was open comes back before. */
  async #prepare(panel) {
    await Promise.all([this.#app.restored, panel.context.ready]);
    const of = panel.context.path;
    const view = this.#asked(of);
    if (!view || this.#panels.find(({ al }) => al.of === of)) return;
    if ((await this.#closed.has(view, of)) || panel.isDisposed) return;
    this.#labShell?.collapseLeft(); // the two have the page
    this.open({ of, view });
  }
}
