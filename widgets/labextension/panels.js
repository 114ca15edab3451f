// What the extension adds to the page: the sidebar, and views as panels that can be docked.

import { LAB_PARTS } from "../lab/parts.js";
import { mountLab } from "../lab/mount.js";
import { mountSidebar } from "../sidebar/mount.js";
import { sidebarStatus } from "../sidebar/draw.js";
import { standalone } from "../shared/standalone.js";

const LAB = { title: "Lab", mount: (root, bus) => mountLab(root, bus, LAB_PARTS) };

/** The views that can be docked, by name: a title each, and what mounts it. `asked` ones come only where a notebook asks. */
export const DOCKED = new Map([
  ["lab", LAB],
  ["first_minute", { ...LAB, asked: true, waiting: "Run the first cell with Shift+Enter. What its device does appears here." }],
  ...LAB_PARTS.map(({ name, title, mount }) => [name, { title, mount }]),
]);

const WAITING = "No system is open in this kernel. Run a cell with";
const FIRST_CELL = "from accel_lab import gpu";

/** Fill `node` with what each kernel's systems do. `said(text)` gets the sentence of the status bar. */
export function fillSidebar(node, kernels, current, said) {
  const page = node.ownerDocument;
  const shown = new Map(); // `kernel/system` -> {section, unmount, state}

  function section(kernel, system) {
    const root = page.createElement("section");
    root.className = "al-ext-kernel";
    const head = page.createElement("h3");
    const body = page.createElement("div");
    root.append(head, body);
    const place = { root, head, state: null };
    const model = kernel.link.show("sidebar", system.name);
    const mount = (element, bus) => {
      const view = mountSidebar(element, bus, { interrupt: () => kernel.link.interrupt() });
      return {
        ...view,
        take(state, stamp) {
          place.state = state;
          view.take(state, stamp);
          tellStatus();
        },
      };
    };
    const unmount = standalone(mount).render({ model, el: body });
    place.end = () => {
      unmount();
      model.close();
      root.remove();
    };
    return place;
  }

  function tellStatus() {
    const path = current();
    const found = [...shown.values()].find((place) => place.path === path && place.state && !place.state.closed);
    said(found ? sidebarStatus(found.state) : "");
  }

  function draw() {
    const wanted = new Map();
    for (const kernel of kernels.all()) for (const system of kernel.link.systems) wanted.set(`${kernel.link.kernel.id}/${system.name}`, [kernel, system]);
    for (const [key, place] of shown) {
      if (wanted.has(key)) continue;
      place.end();
      shown.delete(key);
    }
    for (const [key, [kernel, system]] of wanted) {
      if (!shown.has(key)) shown.set(key, section(kernel, system));
      const place = shown.get(key);
      place.path = kernel.path;
      place.head.textContent = kernel.name;
      place.root.classList.toggle("al-ext-current", kernel.path === current());
      node.append(place.root);
    }
    const gone = kernels.all().filter(({ link }) => link.state === "restarted");
    note.hidden = shown.size > 0;
    note.firstChild.data = gone.length ? `The kernel of ${gone[0].name} was restarted: its systems are gone. Run a cell with ` : `${WAITING} `;
    tellStatus();
  }

  const note = page.createElement("p");
  note.className = "al-ext-note";
  const code = page.createElement("code");
  code.textContent = FIRST_CELL;
  note.append(`${WAITING} `, code);
  node.append(note);
  kernels.listen(draw);
  draw();
}

/** Fill `node` with one view of the first system of a document's kernel, now or when it has one. */
export function fillPanel(node, kernels, path, view) {
  const page = node.ownerDocument;
  const note = page.createElement("p");
  note.className = "al-ext-note";
  const body = page.createElement("div");
  node.append(note, body);
  let shown = null; // {link, system, end}

  function draw() {
    const kernel = kernels.of(path);
    const system = kernel?.link.systems[0];
    if (shown && system && shown.link === kernel.link && shown.system === system.name) return;
    if (shown && !system) {
      // What was seen last stays, and says so.
      node.classList.add("al-ext-gone");
      note.textContent = kernel?.link.state === "restarted" ? "kernel restarted: what stands here is the past" : "the system is closed";
      note.hidden = kernel !== null && kernel.link.state === "open";
      return;
    }
    shown?.end();
    shown = null;
    node.classList.remove("al-ext-gone");
    note.hidden = Boolean(system);
    if (!system) {
      note.textContent = DOCKED.get(view).waiting ?? `${WAITING} ${FIRST_CELL}`;
      return;
    }
    const model = kernel.link.show(view, system.name);
    const unmount = standalone(DOCKED.get(view).mount).render({ model, el: body });
    shown = {
      link: kernel.link,
      system: system.name,
      end: () => {
        unmount();
        model.close();
      },
    };
  }

  const unlisten = kernels.listen(draw);
  draw();
  return () => {
    unlisten();
    shown?.end();
  };
}
