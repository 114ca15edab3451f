// The plugin: a sidebar, an item of the status bar, commands, a card of the launcher, docked views.

import { Closed } from "./closed.js";
import { Docks } from "./docks.js";
import { Kernels } from "./kernels.js";
import { Notices } from "./notices.js";
import { DOCKED, fillSidebar } from "./panels.js";
import { addSessions } from "./sessions.js";

const ID = "accel-lab:plugin"; // and of its settings
const CATEGORY = "accel_lab";
const SHEETS = ["../sidebar/sidebar.css", "../lab/lab.css", "./labextension.css"];
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 14 14" width="16" height="16"><g class="jp-icon3" fill="none" stroke="#616161" stroke-width="1.2" stroke-linecap="round" stroke-linejoin="round"><rect x="3" y="3" width="8" height="8" rx="1.2"/><rect x="5.4" y="5.4" width="3.2" height="3.2"/><path d="M5 3V1M9 3V1M5 13v-2M9 13v-2M3 5H1M3 9H1M13 5h-2M13 9h-2"/></g></svg>';

/** Return the plugin; `take` gives the page's modules. What a page has not, as Notebook no launcher, is null. */
export async function plugin(take) {
  const [application, apputils, widgets, notebook, console_, launcher, statusbar, statedb, registry, icons] = await Promise.all(
    ["@jupyterlab/application", "@jupyterlab/apputils", "@lumino/widgets", "@jupyterlab/notebook", "@jupyterlab/console", "@jupyterlab/launcher", "@jupyterlab/statusbar", "@jupyterlab/statedb", "@jupyterlab/settingregistry", "@jupyterlab/ui-components"].map(take),
  );
  const tokens = {
    notebooks: notebook.INotebookTracker,
    consoles: console_.IConsoleTracker,
    palette: apputils.ICommandPalette,
    cards: launcher.ILauncher,
    status: statusbar.IStatusBar,
    restorer: application.ILayoutRestorer,
    labShell: application.ILabShell,
    state: statedb.IStateDB,
    registry: registry.ISettingRegistry,
  };
  const names = Object.keys(tokens).filter((name) => tokens[name]);
  return {
    id: ID,
    autoStart: true,
    optional: names.map((name) => tokens[name]),
    activate: (app, ...found) => {
      const had = Object.fromEntries(Object.keys(tokens).map((name) => [name, names.includes(name) ? found[names.indexOf(name)] : null]));
      activate({ app, apputils, widgets, icons, ...had });
    },
  };
}

function activate({ app, notebooks, consoles, palette, cards, status, restorer, labShell, state, registry, apputils, widgets, icons }) {
  for (const sheet of SHEETS) addSheet(new URL(sheet, import.meta.url).href);
  const icon = new icons.LabIcon({ name: "accel-lab:device", svgstr: ICON });
  const kernels = new Kernels();
  const path = () => notebooks?.currentWidget?.context.path ?? null;

  const side = new widgets.Widget();
  side.id = "accel-lab-sidebar";
  side.title.icon = icon;
  side.title.caption = "accel_lab: devices, what they run, who holds their memory";
  side.addClass("al-ext-side");
  side.node.setAttribute("role", "region");
  side.node.setAttribute("aria-label", "accel_lab");
  app.shell.add(side, "left", { rank: 550 });
  restorer?.add(side, side.id);

  const item = new widgets.Widget({ node: document.createElement("button") });
  item.addClass("al-ext-status");
  item.node.type = "button";
  item.node.title = "Show the devices";
  item.node.addEventListener("click", () => app.shell.activateById(side.id));
  status?.registerStatusItem("accel-lab:status", { item, align: "left", rank: 50, isActive: () => item.node.textContent !== "" });
  fillSidebar(side.node, kernels, path, (text) => {
    item.node.textContent = text;
    item.setHidden(!text);
  });
  if (notebooks) kernels.follow(notebooks);
  if (consoles) kernels.follow(consoles);

  const docks = new Docks({ app, notebooks, kernels, labShell, closed: new Closed(state), page: { apputils, widgets, icon } });
  const command = (id, options) => {
    app.commands.addCommand(id, options);
    return id;
  };
  const all = [command("accel-lab:sidebar", { label: "Show the Devices", icon, execute: () => app.shell.activateById(side.id) })];
  command("accel-lab:dock", {
    label: ({ view = "lab" }) => `Open ${DOCKED.get(view).title} Beside the Notebook`,
    icon,
    isEnabled: ({ of }) => Boolean(of ?? path()),
    execute: ({ view, of = path() }) => docks.open({ view, of }),
  });
  all.push(
    command("accel-lab:stop", {
      label: "Stop What Runs on the Devices",
      icon,
      isEnabled: () => side.node.querySelector('.al-ext-current [data-do="stop"]') !== null,
      execute: () => side.node.querySelectorAll('.al-ext-current [data-do="stop"]').forEach((button) => button.click()),
    }),
    command("accel-lab:new", {
      label: "GPU Notebook with Live Lab",
      caption: "A new notebook, and beside it what its devices do",
      icon,
      execute: async () => {
        const made = await app.commands.execute("notebook:create-new", { kernelName: app.serviceManager.kernelspecs.specs?.default });
        await made.context.ready;
        return docks.open({ of: made.context.path });
      },
    }),
  );
  if (apputils.Notification) void addNotices({ app, apputils, kernels, notebooks, registry, palette });
  addSessions({ app, kernels, notebooks, state, palette, cards, apputils, icon, category: CATEGORY });
  for (const id of all) palette?.addItem({ command: id, category: CATEGORY });
  for (const [view, { asked: only }] of DOCKED) if (!only) palette?.addItem({ command: "accel-lab:dock", category: CATEGORY, args: view === "lab" ? {} : { view } });
  cards?.add({ command: "accel-lab:new", category: "Notebook", rank: 5 });
  if (restorer) docks.restore(restorer, "accel-lab:dock");
}

/** Have long cells tell that they ended, and a command that switches it off. */
async function addNotices({ app, apputils, kernels, notebooks, registry, palette }) {
  const settings = (await registry?.load(ID)) ?? null;
  const show = (path) => {
    const panel = notebooks?.find((one) => one.context.path === path);
    if (panel) app.shell.activateById(panel.id);
  };
  const notices = new Notices({ kernels, notification: apputils.Notification, settings, show });
  const id = "accel-lab:notify";
  app.commands.addCommand(id, { label: "Notify When a Long Cell Ends", isToggleable: true, isToggled: () => notices.on, isEnabled: () => settings !== null, execute: () => notices.turn() });
  settings?.changed.connect(() => app.commands.notifyCommandChanged(id));
  palette?.addItem({ command: id, category: CATEGORY });
}

function addSheet(href) {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = href;
  document.head.append(link);
}
