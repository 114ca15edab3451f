// The journal view on a page: what the pointer, the keys and new states do to it.

import { patch } from "../shared/dom.js";
import { drawJournal, drawJournalControls, journalLooks, journalReplays } from "./draw.js";
import { journalPress } from "./keys.js";
import { replayWhere } from "../shared/replay.js";

const JOURNAL_PASSED_ON = new Set(["Tab", "Escape", "Shift", "Control", "Alt", "Meta"]);
const JOURNAL_SEEK_MS = 60; // between two moments that a drag asks for

/** Draw the journal into `root`; see `standalone.js`. What moves it may be in `pinned`, apart. */
export function mountJournal(root, bus, { pinned = null } = {}) {
  const roots = pinned ? [root, pinned] : [root];
  const window = root.ownerDocument.defaultView;
  const view = journalLooks();
  let state = null;
  let frame = 0;
  let asked = 0; // when a drag last asked for a moment, ms of performance.now()

  const find = (selector) => roots.at(-1).querySelector(selector);
  const slider = () => find(".al-journal-slider");

  function paint() {
    frame = 0;
    patch(root, drawJournal(state, view, pinned !== null));
    if (pinned) patch(pinned, drawJournalControls(state, view));
    const speed = find(".al-journal-speed select");
    if (speed && speed.getRootNode().activeElement !== speed) speed.value = String(state.speed);
  }

  function redraw() {
    if (!frame) frame = window.requestAnimationFrame(paint);
  }

  /** Have the journal show another moment: one that was chosen elsewhere is that no more. */
  function move(deed) {
    bus.set("moment", null);
    bus.command(deed);
  }

  function take(next) {
    const before = journalReplays(state);
    const now = journalReplays(next);
    if (state && before !== now) view.said = now ? `Replay, ${replayWhere(next)}` : "Live again";
    state = next;
    redraw();
  }

  /** The moment under a pointer. */
  function moment(event) {
    const { left, width } = slider().getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - left) / width));
    return state.first + share * (state.last - state.first);
  }

  function drag(at, last) {
    view.dragged = last ? null : at;
    const now = window.performance.now();
    if (last || now - asked >= JOURNAL_SEEK_MS) {
      asked = now;
      move({ do: "seek", at });
    }
    redraw();
  }

  function hover(at) {
    view.hovered = at;
    bus.set("cursor", at);
    redraw();
  }

  function onPointer(event) {
    if (!state?.count) return;
    if (event.type === "pointerdown" && event.button === 0 && event.target.closest?.(".al-journal-slider")) {
      event.preventDefault();
      slider().focus({ preventScroll: true });
      slider().setPointerCapture(event.pointerId);
      drag(moment(event), false);
    } else if (event.type === "pointermove") {
      const over = event.target.closest?.(".al-journal-slider");
      if (view.dragged !== null) drag(moment(event), false);
      else if (over) hover(moment(event));
      else if (view.hovered !== null) hover(null);
    } else if (view.dragged !== null && event.type === "pointerup") {
      drag(moment(event), true);
    } else if (event.type === "pointercancel" || event.type === "pointerleave") {
      if (event.type === "pointercancel") view.dragged = null;
      if (view.hovered !== null) hover(null);
    }
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || JOURNAL_PASSED_ON.has(event.key)) return;
    event.stopPropagation(); // JupyterLab would run, delete or leave the cell
    if (event.type !== "keydown" || !state?.count || event.target.closest?.("select")) return;
    if (event.target.closest?.("button") && (event.key === " " || event.key === "Enter")) return;
    const deed = journalPress(event.key, state);
    if (!deed) return;
    event.preventDefault();
    move(deed);
  }

  function onClick(event) {
    const button = event.target.closest?.("button[data-do]");
    if (button?.dataset.do === "details") {
      const entry = Number(button.dataset.entry);
      if (!view.open.delete(entry)) view.open.add(entry);
      redraw();
      return;
    }
    const row = event.target.closest?.("tr[data-n]");
    if (row) {
      move({ do: "seek", position: Number(row.dataset.n) + 1 });
      slider()?.focus({ preventScroll: true });
    }
    if (!button) return;
    const deeds = {
      start: { do: "seek", position: 0 },
      end: { do: "seek", position: state.count },
      back: { do: "step", n: -1 },
      on: { do: "step", n: 1 },
      seek: { do: "seek", position: Number(button.dataset.position) },
    };
    move(deeds[button.dataset.do] ?? { do: button.dataset.do });
  }

  function onChange(event) {
    if (event.target.closest?.('select[data-do="speed"]')) move({ do: "speed", speed: Number(event.target.value) });
  }

  for (const one of roots) {
    for (const type of ["keydown", "keypress", "keyup"]) one.addEventListener(type, onKey);
    for (const type of ["pointerdown", "pointermove", "pointerup", "pointercancel", "pointerleave"]) one.addEventListener(type, onPointer);
    one.addEventListener("click", onClick);
    one.addEventListener("change", onChange);
  }

  const unwatch = bus.watch("stale", (seconds) => {
    view.stale = seconds;
    redraw();
  });
  paint();
  return {
    take,
    unmount() {
      unwatch();
      window.cancelAnimationFrame(frame);
    },
  };
}
