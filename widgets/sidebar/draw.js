// The sidebar as plain nodes: a card a device.

import { h } from "../shared/dom.js";
import { bytes, look, memory, percent, plural, seconds } from "../shared/format.js";
import { freshBadge } from "../shared/fresh_badge.js";
import { icon } from "../shared/icons.js";

export const SIDEBAR_SPARK = { width: 96, height: 20 };
export const STOPPING_MS = 1500; // after a stop, until what still runs may be ended the hard way

/** What only this page knows. */
export function sidebarView() {
  return {
    sparks: new Map(), // device -> the path of how busy it was
    stopped: new Map(), // device -> when its stop was pressed, ms of performance.now()
    now: 0, // ms of performance.now()
    at: 0, // wall seconds
    stale: null,
  };
}

/** Draw `state` (null before the first one) as `view` sees it. */
export function drawSidebar(state, view) {
  const devices = state?.devices ?? [];
  return [
    h(
      "div",
      { key: "header", class: "al-header" },
      h("span", { class: "al-title" }, icon("system", 14), h("strong", {}, state?.lab || "accel_lab")),
      freshBadge(state, view.stale),
    ),
    h(
      "ul",
      { key: "devices", class: "al-side-devices" },
      devices.map((device) => sideDevice(device, state, view)),
    ),
    state && h("p", { key: "faults", class: `al-side-faults al-${state.faults[1]}` }, h("span", { class: "al-word" }, icon(state.faults[1] === "ok" ? "running" : "warn", 12), state.faults[0])),
  ].filter(Boolean);
}

function sideDevice(device, state, view) {
  const { tone, icon: name } = look(device.state);
  const busy = sideIsBusy(device);
  return h(
    "li",
    { key: device.name, class: "al-side-device", "data-device": device.name, "aria-label": device.name },
    h(
      "div",
      { class: "al-side-head" },
      icon("device", 14),
      h("strong", {}, device.name),
      h("span", { class: `al-word al-${busy && device.state === "running" ? "busy" : tone}` }, icon(name, 12), busy && device.state === "running" ? "busy" : device.state === "running" ? "idle" : device.state),
      h("span", { class: "al-side-busy", title: device.busy === null ? "not known: its work was not traced one by one" : "share of the last second in which it worked" }, sideSpark(view.sparks.get(device.name)), sideShare(device)),
    ),
    device.detail && h("div", { key: "detail", class: "al-side-detail al-muted" }, device.detail),
    sideWork(device, state, view),
    device.used_bytes !== undefined && sideMemory(device),
    device.holders?.length > 0 && sideHolders(device),
  );
}

/** Whether a device is busy, by the tree's rule: between two short messages it is not idle. */
function sideIsBusy({ running, in_flight: inFlight, waiting, busy }) {
  return running.length > 0 || inFlight + waiting > 0 || busy > 0;
}

function sideShare({ busy }) {
  return busy === null ? "–" : `${Math.round(100 * busy)} %`;
}

function sideSpark(path) {
  const { width, height } = SIDEBAR_SPARK;
  return h(
    "svg",
    { class: "al-side-spark", viewBox: `0 0 ${width} ${height}`, width, height, preserveAspectRatio: "none", "aria-hidden": "true" },
    h("path", { class: "al-side-base", d: `M0 ${height - 0.5}H${width}` }),
    path && h("path", { key: "line", class: "al-side-line", d: path }),
  );
}

function sideWork(device, state, view) {
  const waits = [device.in_flight && `${device.in_flight} in flight`, device.waiting && `${device.waiting} waiting`].filter(Boolean);
  if (!device.running.length && !waits.length) return null;
  const pressed = view.stopped.get(device.name);
  const hard = pressed !== undefined && view.now - pressed >= STOPPING_MS;
  const gentle = pressed === undefined ? "Stop" : "Stopping…";
  return h(
    "div",
    { key: "work", class: "al-side-work" },
    h("h4", {}, "Runs now"),
    h(
      "ul",
      {},
      device.running.map((one) =>
        h("li", { key: `${one.on} ${one.what}` }, icon("play", 12), h("span", { class: "al-side-what" }, `${one.what}`, h("span", { class: "al-muted" }, ` on ${one.on}`)), h("span", { class: "al-side-for" }, seconds(Math.max(0, view.at - one.since)))),
      ),
      waits.length > 0 && h("li", { key: "waits", class: "al-muted" }, waits.join(", ")),
    ),
    !state.closed &&
      h(
        "button",
        { key: "stop", type: "button", class: `al-side-stop${hard ? " al-bad" : ""}`, "data-do": hard ? "replace" : "stop", title: hard ? "It does not end by itself: end its process. What can be rebuilt comes back." : "Take back all that was sent and is not done, and interrupt the cell", disabled: gentle !== "Stop" && !hard },
        icon("stopped", 12),
        hard ? "Replace the context" : gentle,
      ),
  );
}

function sideMemory({ used_bytes: used, total_bytes: total }) {
  const share = total ? Math.min(1, used / total) : 0;
  return h(
    "div",
    { key: "memory", class: "al-side-memory" },
    h("div", { class: "al-side-row" }, h("span", {}, "Memory"), h("span", { class: "al-side-number" }, memory(used, total), total ? h("span", { class: "al-muted" }, ` ${percent(used, total)}`) : null)),
    total ? h("div", { key: "bar", class: `al-side-bar${share > 0.95 ? " al-bad" : share > 0.8 ? " al-warn" : " al-calm"}`, "aria-hidden": "true" }, h("span", { style: `inline-size:${(100 * share).toFixed(1)}%` })) : null,
  );
}

function sideHolders({ name, holders }) {
  return h(
    "table",
    { key: "holders", class: "al-side-holders" },
    h("caption", {}, "Holds most memory"),
    h("tbody", {}, holders.map(([held, size, what]) =>
      h("tr", { key: held }, h("th", { scope: "row", title: `${held} on ${name}: ${what}` }, held), h("td", { class: "al-muted" }, what), h("td", { class: "al-side-number" }, bytes(size))),
    )),
  );
}

/** The sentence of the status bar: each device in a few words. */
export function sidebarStatus(state) {
  if (!state?.devices.length) return "";
  const [first] = state.devices;
  const busy = state.devices.filter(sideIsBusy).length;
  const more = state.devices.length > 1 ? `${plural(state.devices.length, "device")}, ${busy} busy · ` : "";
  return `${more}${first.name} ${sideShare(first)} · ${memory(first.used_bytes, first.total_bytes)}`;
}
