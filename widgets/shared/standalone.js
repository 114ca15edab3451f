// A view by itself, as JupyterLab's widgets and Panel's components call it.
//
// `mount(root, bus)` draws into `root`, an element of class `accel-lab`, and returns
// `{take(state, stamp), columns(view), tick(), unmount()}`: a new state (plain values), what is too
// large for it (a DataView), a look at the clock ten times a second, and the end. `columns` and
// `tick` may be absent. What is out of sight gets a new state twice a second, and looks as often.

import { Bus } from "./bus.js";
import { Freshness, staleAfter } from "./freshness.js";
import { adaptHost, decode } from "./host.js";
import { replayWhere } from "./replay.js";
import { followTheme } from "./theme.js";

const TICK_MS = 100;
const UNSEEN_MS = 500; // from one drawing to the next of what is out of sight

/** Wrap a view for the hosts. */
export function standalone(mount) {
  return { render: (props) => render(props, mount) };
}

function render(props, mount) {
  const host = adaptHost(props);
  const page = host.el.ownerDocument;
  const window = page.defaultView;
  const root = page.createElement("div");
  root.className = "accel-lab";
  host.el.append(root);

  const bus = new Bus((message) => bus.get("gone") || host.send(message));
  const view = mount(root, bus);
  const freshness = new Freshness();
  let held = false; // a state that came while the view was paused, or out of sight
  let seen = true;
  let drawn = 0;
  let ticked = 0;
  let drawnAgain = null; // watches for buttons, once nobody obeys them

  /** Whether it is time again for what was done last at `last`. */
  function isDue(last) {
    return seen || window.performance.now() - last >= UNSEEN_MS;
  }

  function take() {
    held = bus.get("paused") || !isDue(drawn);
    if (held) return;
    drawn = window.performance.now();
    const columns = host.get("columns");
    if (columns?.byteLength) view.columns?.(asView(columns));
    const state = decode(host.get("state"));
    if (!state) return;
    if (state.closed) bus.set("stale", null);
    bus.set("closed", Boolean(state.closed));
    bus.set("replay", state.replay ? replayWhere(state.replay) : null);
    view.take(state, host.get("stamp"));
  }

  function tick() {
    const now = Date.now() / 1000;
    bus.set("patience", staleAfter(host.get("silence")));
    if (bus.get("gone")) return;
    const silent = !bus.get("closed") && host.get("stamp") > 0 && freshness.isStale(now, bus.get("patience"));
    bus.set("stale", silent ? Math.floor(freshness.age(now) * 10) / 10 : null);
    if (held) take();
    if (!isDue(ticked)) return;
    ticked = window.performance.now();
    view.tick?.();
  }

  /** Show what is left as the past: grey, with the reason, and with no button that nobody obeys. */
  function grey(words) {
    if (bus.get("closed") || bus.get("gone")) return;
    bus.set("gone", words);
    bus.set("stale", words);
    root.classList.add("al-gone");
    const disable = () => root.querySelectorAll("button, select, input").forEach((one) => one.disabled || (one.disabled = true));
    disable();
    drawnAgain = new window.MutationObserver(disable);
    drawnAgain.observe(root, { childList: true, subtree: true, attributeFilter: ["disabled"] });
  }

  host.whenGone(grey);
  host.listen("state", take);
  host.listen("columns", take);
  host.listen("stamp", (stamp) => {
    freshness.arrived(stamp, Date.now() / 1000);
    if (!bus.get("paused")) view.stamp?.(stamp);
  });
  bus.watch("paused", (paused) => {
    if (!paused && held) take();
  });
  freshness.found(host.get("stamp"));
  take();
  const stopTheme = followTheme(root);
  const sight = new window.IntersectionObserver((entries) => {
    seen = entries.at(-1).isIntersecting;
    if (seen && held) take();
  });
  sight.observe(root);
  const timer = window.setInterval(tick, TICK_MS);
  return () => {
    host.close();
    stopTheme();
    sight.disconnect();
    drawnAgain?.disconnect();
    window.clearInterval(timer);
    view.unmount();
    root.remove();
  };
}

/** Bytes as they come from either host: a DataView there, an ArrayBuffer here. */
function asView(bytes) {
  return bytes.buffer ? new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength) : new DataView(bytes);
}
