// The supervision feed on a page: what the pointer, the keys and new states do to it.

import { patch } from "../shared/dom.js";
import { drawSupervision, feedView } from "./draw.js";
import { FaultSpeaker, feedRows } from "./rows.js";
import { press } from "../shared/tree_keys.js";

const FEED_PASSED_ON = new Set(["Tab", "Escape", "Shift", "Control", "Alt", "Meta"]); // JupyterLab may have these

/** Draw the feed into `root`; see `standalone.js`. */
export function mountSupervision(root, bus) {
  const window = root.ownerDocument.defaultView;
  const view = feedView();
  const speaker = new FaultSpeaker();
  let state = null;
  let frame = 0;

  const now = () => window.performance.now() / 1000;
  const line = (path) => root.querySelector(`tr[data-path="${path}"]`);
  const visible = () => feedRows(state?.rows, view);
  const hasFocus = () => root.querySelector(".al-supervision-grid")?.contains(root.getRootNode().activeElement) ?? false;

  function paint() {
    frame = 0;
    const focused = hasFocus();
    patch(root, drawSupervision(state, view));
    // The focused row may be gone: its keys must not fall to the page.
    if (focused && !hasFocus()) root.querySelector('tr[tabindex="0"]')?.focus({ preventScroll: true });
  }

  function redraw() {
    if (!frame) frame = window.requestAnimationFrame(paint);
  }

  function take(next) {
    state = next;
    speaker.take(next.rows, now());
    redraw();
  }

  function tick() {
    const said = speaker.say(state?.rows ?? [], now());
    if (!said) return;
    view.said = said;
    redraw();
  }

  function activate(path) {
    view.active = path;
    paint();
    line(path)?.focus({ preventScroll: true });
    line(path)?.scrollIntoView({ block: "nearest" });
  }

  /** Have every view look at the row's actor, and at its moment. */
  function choose(path) {
    const found = visible().find((one) => one.path === path);
    if (!found) return;
    view.chosen = String(found.row.n);
    bus.set("selection", `${state.lab}/${found.row.path}`);
    const at = found.at ?? found.row.at;
    bus.set("cursor", at);
    bus.set("moment", { at });
    activate(path);
  }

  function turn(path, open) {
    if (open) view.open.add(path);
    else view.open.delete(path);
    activate(path);
  }

  function onKey(event) {
    if (view.confirm && event.key === "Escape") {
      event.stopPropagation();
      if (event.type === "keydown") answered();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || FEED_PASSED_ON.has(event.key)) return;
    event.stopPropagation(); // JupyterLab would run, delete or leave the cell
    if (event.type !== "keydown" || !event.target.closest?.("tr[data-path]")) return;
    if (event.key === "Enter") {
      event.preventDefault();
      choose(view.active);
      return;
    }
    const deed = press(event.key, visible(), view.active);
    if (!deed) return;
    event.preventDefault();
    if (deed.active !== undefined) activate(deed.active);
    else turn(deed.fold ?? deed.unfold, deed.unfold !== undefined);
  }

  function onClick(event) {
    const button = event.target.closest("[data-do]");
    const deed = button?.dataset.do;
    const path = event.target.closest("tr[data-path]")?.dataset.path;
    if (deed === "turn") turn(path, !view.open.has(path));
    else if (path) choose(path);
    if (deed === "all") view.faultsOnly = false;
    if (deed === "faults") view.faultsOnly = true;
    if (deed === "reset") bus.command({ do: "reset", device: button.dataset.device });
    if (deed === "inject") ask();
    if (deed === "confirm") inject();
    if (deed === "cancel") answered();
    redraw();
  }

  /** Ask first, in place of the buttons; Enter there is a Cancel. */
  function ask() {
    const chosen = (name) => root.querySelector(`select[name="${name}"]`)?.value;
    const device = chosen("target") ?? state.devices[0]?.name;
    if (!device) return;
    view.confirm = { device, fault: chosen("fault") };
    paint();
    root.querySelector('button[data-do="cancel"]')?.focus({ preventScroll: true });
  }

  function inject() {
    bus.command({ do: "inject", ...view.confirm });
    answered();
  }

  /** Have the buttons back, with the choice that was made. */
  function answered() {
    const { fault, device } = view.confirm ?? {};
    view.confirm = null;
    paint();
    for (const [name, value] of [["fault", fault], ["target", device]]) {
      const select = root.querySelector(`select[name="${name}"]`);
      if (select && value) select.value = value;
    }
    root.querySelector('button[data-do="inject"]')?.focus({ preventScroll: true });
  }

  function onChange(event) {
    if (event.target.name !== "device") return;
    view.device = event.target.value;
    redraw();
  }

  for (const type of ["keydown", "keypress", "keyup"]) root.addEventListener(type, onKey);
  root.addEventListener("click", onClick);
  root.addEventListener("change", onChange);
  root.addEventListener("focusin", (event) => {
    const path = event.target.closest("tr[data-path]")?.dataset.path;
    if (path) view.active = path;
  });

  const unwatch = ["stale", "selection"].map((key) =>
    bus.watch(key, (value) => {
      view[key] = value;
      redraw();
    }),
  );
  view.selection = bus.get("selection");
  paint();
  return {
    take,
    tick,
    unmount() {
      for (const end of unwatch) end();
      window.cancelAnimationFrame(frame);
    },
  };
}
