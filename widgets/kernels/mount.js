// The kernel table on a page: what the pointer, the keys and new states do to it.

import { patch } from "../shared/dom.js";
import { plural } from "../shared/format.js";
import { press } from "../shared/tree_keys.js";
import { copyText } from "./clipboard.js";
import { drawKernels, kernelsView } from "./draw.js";
import { KERNEL_COLUMNS, kernelCells, kernelCsv, kernelRest, kernelRows } from "./rows.js";

const KERNEL_PASSED_ON = new Set(["Tab", "Escape", "Shift", "Control", "Alt", "Meta"]); // JupyterLab may have these

/** Draw the table into `root`; see `standalone.js`. */
export function mountKernels(root, bus) {
  const page = root.ownerDocument;
  const window = page.defaultView;
  const view = kernelsView();
  let state = null;
  let frame = 0;

  const lines = () => [...root.querySelectorAll("tr[data-path]")];
  const line = (path) => lines().find((one) => one.dataset.path === path);
  const rows = () => kernelRows(state, view);
  const hasFocus = () => root.querySelector(".al-kernels-grid")?.contains(root.getRootNode().activeElement) ?? false;

  function paint() {
    frame = 0;
    const focused = hasFocus();
    patch(root, drawKernels(state, view));
    // The focused row may be gone: its keys must not fall to the page.
    if (focused && !hasFocus()) root.querySelector('tr[tabindex="0"]')?.focus({ preventScroll: true });
  }

  function redraw() {
    if (!frame) frame = window.requestAnimationFrame(paint);
  }

  function take(next) {
    state = next;
    // A cell may have sent what is selected since.
    const row = view.chosen !== null && rows().find(({ path }) => path === view.chosen)?.row;
    if (row && kernelCells(row).join() !== view.kernel.cells.join()) tell(row);
    redraw();
  }

  function activate(path) {
    view.active = path;
    paint();
    line(path)?.focus({ preventScroll: true });
    line(path)?.scrollIntoView({ block: "nearest" });
  }

  function tell(row) {
    const chosen = view.chosen;
    bus.set("kernel", row && { name: row.name, cells: kernelCells(row) });
    view.chosen = chosen; // who watches took it for another's choice
  }

  /** Have every view look at a row's kernel, or no longer. */
  function choose(path) {
    const row = rows().find((one) => one.path === path)?.row;
    if (!row) return;
    const isNew = view.chosen !== path;
    view.chosen = isNew ? path : null;
    tell(isNew ? row : null);
    view.said = isNew ? `${row.name} is selected` : "nothing is selected";
    activate(path);
  }

  function clear() {
    bus.set("kernel", null);
    view.said = "nothing is selected";
    redraw();
  }

  function sort(by) {
    const column = KERNEL_COLUMNS.find(({ name }) => name === by);
    const other = view.order === "ascending" ? "descending" : "ascending";
    view.order = view.by === by ? other : column.first;
    view.by = by;
    view.said = `sorted by ${column.title}, ${view.order}`;
    redraw();
  }

  async function copy() {
    const rest = kernelRest(state);
    const shown = [...rows(), ...(rest ? [rest] : [])];
    const isDone = await copyText(page, kernelCsv(shown));
    view.said = isDone ? `${plural(shown.length, "row")} copied` : "the browser does not allow it to copy";
    redraw();
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && event.type === "keydown" && view.kernel) {
      event.stopPropagation(); // JupyterLab would leave the cell
      event.preventDefault();
      clear();
      return;
    }
    if (KERNEL_PASSED_ON.has(event.key)) return;
    event.stopPropagation(); // JupyterLab would run, delete or leave the cell
    const path = event.target.closest?.("tr[data-path]")?.dataset.path;
    if (event.type !== "keydown" || path === undefined) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(path);
      return;
    }
    const walked = rows().map((one) => ({ path: one.path, level: 1, open: null, actor: { name: one.row.name } }));
    const deed = press(event.key, walked, view.active);
    if (!deed?.active) return;
    event.preventDefault();
    activate(deed.active);
  }

  function onClick(event) {
    const button = event.target.closest("[data-do]");
    const deed = button?.dataset.do;
    if (deed === "sort") sort(button.dataset.by);
    else if (deed === "copy") void copy();
    else if (deed === "clear") clear();
    else {
      const path = event.target.closest("tr[data-path]")?.dataset.path;
      if (path !== undefined) choose(path);
    }
  }

  function onInput(event) {
    if (event.target.name !== "search" && event.target.name !== "device") return;
    view[event.target.name] = event.target.value;
    redraw();
  }

  for (const type of ["keydown", "keypress", "keyup"]) root.addEventListener(type, onKey);
  root.addEventListener("click", onClick);
  root.addEventListener("input", onInput);
  root.addEventListener("focusin", (event) => {
    const path = event.target.closest("tr[data-path]")?.dataset.path;
    if (path !== undefined) view.active = path;
  });

  const unwatch = [
    bus.watch("stale", (value) => {
      view.stale = value;
      redraw();
    }),
    bus.watch("kernel", (value) => {
      view.kernel = value;
      view.chosen = null; // all rows of that name, unless it was chosen here
      redraw();
    }),
  ];
  view.kernel = bus.get("kernel") ?? null;
  paint();
  return {
    take,
    unmount() {
      for (const end of unwatch) end();
      window.cancelAnimationFrame(frame);
    },
  };
}
