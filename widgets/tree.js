// The device tree, live. State: {root, closed}, as JSON in bytes; `tree_rows.js` says what an actor is.

import { patch, toHtml } from "./dom.js";
import { Freshness } from "./freshness.js";
import { History } from "./history.js";
import { adaptHost, decode } from "./host.js";
import { followTheme } from "./theme.js";
import { SPARK, draw, initialView } from "./tree_draw.js";
import { press } from "./tree_keys.js";
import { initialFolds, news, restarted, rows, walk } from "./tree_rows.js";

const MARK_MS = 4000; // how long a restarted row stays marked
const TICK_MS = 100; // how often age and marks are looked at
const PASSED_ON = new Set(["Tab", "Escape", "Shift", "Control", "Alt", "Meta"]);

/** The whole view as an HTML string. */
export function html(state, view = {}) {
  return toHtml(...draw(state, { ...initialView(), ...view }));
}

function render(props) {
  const host = adaptHost(props);
  const page = host.el.ownerDocument;
  const window = page.defaultView;
  const root = page.createElement("div");
  root.className = "accel-lab";
  host.el.append(root);

  const view = initialView();
  const freshness = new Freshness();
  const history = new History();
  const marks = new Map(); // path -> when its mark ends, ms of performance.now()
  let state = null;
  let frame = 0;

  const row = (path) => root.querySelector(`tr[data-path="${window.CSS.escape(path)}"]`);
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

  function take(next) {
    if (!next) return;
    if (!state) view.folded = initialFolds(next.root);
    view.said = news(state?.root, next.root) || view.said;
    for (const path of state ? restarted(state.root, next.root) : []) marks.set(path, window.performance.now() + MARK_MS);
    state = next;
    if (state.closed) view.stale = null;
    mark();
    sample(host.get("stamp"));
    redraw();
  }

  function mark() {
    for (const [path, end] of marks) if (end <= window.performance.now()) marks.delete(path);
    view.marked = new Set(marks.keys());
  }

  function sample(at) {
    const devices = [...walk(state?.root)].filter(([, actor]) => actor.kind === "device");
    history.retain(new Set(devices.map(([path]) => path)));
    for (const [path, actor] of devices) {
      history.push(path, at, actor.in_flight ?? 0);
      view.sparks.set(path, history.path(path, at, SPARK.width, SPARK.height));
    }
  }

  function tick() {
    const now = Date.now() / 1000;
    const stale = state && !state.closed && freshness.isStale(now) ? freshness.age(now) : null;
    const due = [...marks.values()].some((end) => end <= window.performance.now());
    if (due) mark();
    if (due || stale !== view.stale) {
      view.stale = stale;
      redraw();
    }
  }

  function activate(path) {
    view.active = path;
    patch(root, draw(state, view));
    row(path)?.focus({ preventScroll: true });
    row(path)?.scrollIntoView({ block: "nearest" });
  }

  function turn(path, fold) {
    if (view.filter || view.troubledOnly) return; // what is found is always unfolded
    if (fold) view.folded.add(path);
    else view.folded.delete(path);
    activate(path);
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || PASSED_ON.has(event.key)) return;
    event.stopPropagation(); // JupyterLab would run, delete or leave the cell
    if (event.type !== "keydown" || !event.target.closest?.("tr[data-path]")) return;
    const deed = press(event.key, rows(state?.root, view), view.active);
    if (!deed) return;
    event.preventDefault();
    if (deed.active !== undefined) activate(deed.active);
    else turn(deed.fold ?? deed.unfold, deed.fold !== undefined);
  }

  function onClick(event) {
    const deed = event.target.closest("[data-do]")?.dataset.do;
    const path = event.target.closest("tr[data-path]")?.dataset.path;
    const devices = () => [...walk(state?.root)].filter(([, actor]) => actor.kind === "device");
    if (deed === "turn") turn(path, !view.folded.has(path));
    else if (path) activate(path);
    if (deed === "trouble") view.troubledOnly = !view.troubledOnly;
    if (deed === "fold") view.folded = new Set(devices().map(([device]) => device));
    if (deed === "unfold") view.folded = new Set();
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

  host.listen("state", (value) => take(decode(value)));
  host.listen("stamp", (stamp) => {
    freshness.arrived(stamp, Date.now() / 1000);
    sample(stamp);
    redraw();
  });
  freshness.found(host.get("stamp"));
  take(decode(host.get("state")));
  paint();
  const stopTheme = followTheme(root);
  const timer = window.setInterval(tick, TICK_MS);
  return () => {
    host.close();
    stopTheme();
    window.clearInterval(timer);
    window.cancelAnimationFrame(frame);
    root.remove();
  };
}

export default { render };
