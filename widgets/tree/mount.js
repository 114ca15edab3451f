// The device tree on a page: what the pointer, the keys and new states do to it.

import { patch } from "../shared/dom.js";
import { History } from "../shared/history.js";
import { SPARK, draw, initialView, visibleRows } from "./draw.js";
import { press } from "../shared/tree_keys.js";
import { doing, initialFolds, news, quietPath, restarted, rows, walk } from "./rows.js";

const MARK_MS = 4000; // how long a restarted row stays marked
const RECENT_S = 30; // how long an actor at rest keeps its row, as long as its sparkline has something
const HEAD_PX = 25; // of the heads, which stay above the rows
const PASSED_ON = new Set(["Tab", "Escape", "Shift", "Control", "Alt", "Meta"]);

/** Draw the tree into `root`; see `standalone.js`. `folds` says what of a first tree is folded. */
export function mountTree(root, bus, { folds = initialFolds } = {}) {
  const window = root.ownerDocument.defaultView;
  const view = initialView();
  const shares = new History(); // of the time at work
  const rates = new History(); // of messages
  const worked = new Map(); // path -> when it was busy last, wall seconds of the kernel
  const marks = new Map(); // path -> when its mark ends, ms of performance.now()
  let state = null;
  let frame = 0;

  const row = (path) => root.querySelector(`tr[data-path="${window.CSS.escape(path)}"]`);
  const visible = () => visibleRows(state, view);
  const hasFocus = () => root.querySelector(".al-grid")?.contains(root.getRootNode().activeElement) ?? false;

  function paint() {
    frame = 0;
    const focused = hasFocus();
    patch(root, draw(state, view));
    // The focused row may be gone (folded away, stopped): its keys must not fall to the page.
    if (focused && !hasFocus()) root.querySelector('tr[tabindex="0"]')?.focus({ preventScroll: true });
  }

  function redraw() {
    if (!frame) frame = window.requestAnimationFrame(paint);
  }

  function take(next, stamp) {
    if (!state) view.folded = folds(next.root);
    view.said = news(state?.root, next.root) || view.said;
    for (const path of state ? restarted(state.root, next.root) : []) marks.set(path, window.performance.now() + MARK_MS);
    state = next;
    mark();
    sample(stamp);
    redraw();
  }

  function mark() {
    for (const [path, end] of marks) if (end <= window.performance.now()) marks.delete(path);
    view.marked = new Set(marks.keys());
  }

  function sample(at) {
    const lacking = state?.unrecorded;
    const actors = new Map(walk(state?.root));
    for (const [path, actor] of actors) {
      if (doing(actor, lacking) === "busy") worked.set(path, at);
      if (!worked.has(path)) continue;
      shares.push(path, at, actor.busy ?? 0);
      rates.push(path, at, actor.rate ?? 0);
      const { width, height } = SPARK;
      view.sparks.set(path, shares.path(path, at, width, height, 1) || rates.path(path, at, width, height));
    }
    for (const [path, last] of worked) {
      if (actors.has(path) && Math.abs(at - last) < RECENT_S) continue;
      worked.delete(path);
      view.sparks.delete(path);
    }
    for (const history of [shares, rates]) history.retain(worked);
    view.recent = new Set(worked.keys());
  }

  function tick() {
    if (![...marks.values()].some((end) => end <= window.performance.now())) return;
    mark();
    redraw();
  }

  function activate(path) {
    view.active = path;
    if (!path.endsWith("/*")) bus.set("selection", path);
    patch(root, draw(state, view));
    row(path)?.focus({ preventScroll: true });
    row(path)?.scrollIntoView({ block: "nearest" });
  }

  /** Show the actor that all views look at, wherever it was chosen. */
  function select(path) {
    view.selected = path;
    const known = path !== null && [...walk(state?.root)].some(([own]) => own === path);
    if (known && path !== view.active) {
      view.active = path;
      for (const folded of [...view.folded]) if (path.startsWith(`${folded}/`)) view.folded.delete(folded);
      patch(root, draw(state, view));
      reveal(row(path));
    }
    redraw();
  }

  /** Scroll the rows, not the page, so that a row is in sight. */
  function reveal(line) {
    const box = root.querySelector(".al-scroll");
    if (!line || !box) return;
    const [inner, outer] = [line.getBoundingClientRect(), box.getBoundingClientRect()];
    if (inner.top < outer.top + HEAD_PX) box.scrollTop -= outer.top + HEAD_PX - inner.top;
    else if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom;
  }

  function turn(path, fold) {
    if (view.filter || view.troubledOnly) return; // what is found is always unfolded
    const isQuiet = path.endsWith("/*"); // its row is folded unless it was opened
    if (fold === isQuiet) view[isQuiet ? "opened" : "folded"].delete(path);
    else view[isQuiet ? "opened" : "folded"].add(path);
    activate(path);
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || PASSED_ON.has(event.key)) return;
    event.stopPropagation(); // JupyterLab would run, delete or leave the cell
    if (event.type !== "keydown" || !event.target.closest?.("tr[data-path]")) return;
    const deed = press(event.key, visible(), view.active);
    if (!deed) return;
    event.preventDefault();
    if (deed.active !== undefined) activate(deed.active);
    else turn(deed.fold ?? deed.unfold, deed.fold !== undefined);
  }

  function onClick(event) {
    const deed = event.target.closest("[data-do]")?.dataset.do;
    const path = event.target.closest("tr[data-path]")?.dataset.path;
    const devices = () => [...walk(state?.root)].filter(([, actor]) => actor.kind === "device");
    // A row that stands for several is there to be unfolded: all of it is the button.
    if (deed === "turn" || path?.endsWith("/*")) turn(path, visible().find((one) => one.path === path)?.open === true);
    else if (path) activate(path);
    if (deed === "trouble") view.troubledOnly = !view.troubledOnly;
    if (deed === "fold") view.folded = new Set(devices().map(([device]) => device));
    if (deed === "fold") view.opened = new Set();
    if (deed === "unfold") view.folded = new Set();
    if (deed === "unfold") view.opened = new Set([...walk(state?.root)].map(([one]) => quietPath(one)));
    redraw();
  }

  function onPoint(event) {
    const path = event.type === "pointerleave" ? null : (event.target.closest("tr[data-path]")?.dataset.path ?? null);
    if (path === view.pointed) return;
    view.pointed = path;
    redraw();
  }

  function onInput(event) {
    view.filter = event.target.value;
    redraw();
  }

  for (const type of ["keydown", "keypress", "keyup"]) root.addEventListener(type, onKey);
  root.addEventListener("click", onClick);
  root.addEventListener("pointerover", onPoint);
  root.addEventListener("pointerleave", onPoint);
  root.addEventListener("input", onInput);
  root.addEventListener("focusin", (event) => {
    const path = event.target.closest("tr[data-path]")?.dataset.path;
    if (path) view.active = path;
  });

  const unwatch = [
    bus.watch("stale", (seconds) => {
      view.stale = seconds;
      redraw();
    }),
    bus.watch("selection", select),
  ];
  view.selected = bus.get("selection");
  paint();
  return {
    take,
    tick,
    stamp(at) {
      sample(at);
      redraw();
    },
    unmount() {
      for (const stop of unwatch) stop();
      window.cancelAnimationFrame(frame);
    },
  };
}
