// The sidebar on a page: what new states, the clock and the pointer do to it.

import { patch } from "../shared/dom.js";
import { History } from "../shared/history.js";
import { SIDEBAR_SPARK, STOPPING_MS, drawSidebar, sidebarView } from "./draw.js";

const INTERRUPT_MS = 1000; // a server that answers later has its reasons; the device is stopped without it

/**
 * Interrupt the notebook's cell, then order the stop of a device; also where nobody answers.
 * The cell first: what is taken back ends it, and an interrupt would then hit its traceback.
 */
export function interruptThen(interrupt, order) {
  const late = new Promise((resolve) => setTimeout(resolve, INTERRUPT_MS));
  return Promise.race([interrupt(), late]).then(order, order);
}

/** Draw the sidebar into `root`; see `standalone.js`. `interrupt` stops the notebook's cell, too, and returns a promise. */
export function mountSidebar(root, bus, { interrupt = null } = {}) {
  const window = root.ownerDocument.defaultView;
  const view = sidebarView();
  const history = new History();
  let state = null;
  let frame = 0;
  root.classList.add("al-side");

  function paint() {
    frame = 0;
    view.now = window.performance.now();
    patch(root, drawSidebar(state, view));
  }

  function redraw() {
    if (!frame) frame = window.requestAnimationFrame(paint);
  }

  function sample(at) {
    if (!state) return;
    view.at = at;
    history.retain(new Set(state.devices.map(({ name }) => name)));
    for (const { name, busy } of state.devices) {
      if (busy !== null) history.push(name, at, busy); // messages were lost: a gap, no zero
      view.sparks.set(name, history.path(name, at, SIDEBAR_SPARK.width, SIDEBAR_SPARK.height, 1));
    }
  }

  function onClick(event) {
    const button = event.target.closest("[data-do]");
    if (!button || button.disabled) return;
    const { device } = button.closest("[data-device]").dataset;
    const deed = button.dataset.do; // now: by the time of the order the button may say another
    const order = () => bus.command({ do: deed, device });
    if (deed === "stop") view.stopped.set(device, window.performance.now());
    else view.stopped.delete(device);
    if (deed === "stop" && interrupt) void interruptThen(interrupt, order);
    else order();
    redraw();
  }

  root.addEventListener("click", onClick);
  const unwatch = bus.watch("stale", (seconds) => {
    view.stale = seconds;
    redraw();
  });
  paint();
  return {
    take(next, stamp) {
      state = next;
      for (const { name, running, in_flight: sent, waiting } of next.devices) if (!running.length && !sent && !waiting) view.stopped.delete(name);
      sample(stamp);
      redraw();
    },
    stamp(at) {
      sample(at);
      redraw();
    },
    tick() {
      const now = window.performance.now();
      for (const at of view.stopped.values()) if (now - at >= STOPPING_MS && view.now - at < STOPPING_MS) redraw();
    },
    unmount() {
      unwatch();
      window.cancelAnimationFrame(frame);
    },
  };
}
