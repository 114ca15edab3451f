// The timeline on a page: what the pointer, the keys, the clock and new states do to it.

import { patch } from "../shared/dom.js";
import { timelineDescribe, timelineDraw } from "./draw.js";
import { TIMELINE_AXIS, timelineHeight, timelineLanes, timelinePath } from "./lanes.js";
import { timelineColours, timelinePaint } from "./paint.js";
import { TimelineRing } from "./ring.js";
import { timelinePan, timelineZoom } from "./scale.js";
import { timelineTrace } from "./trace.js";

const TIMELINE_FOLLOWED_S = 10; // what is shown at first
const TIMELINE_TALLEST = 440; // pixels of lanes before they scroll
const TIMELINE_QUIET_MS = 1000; // from one picture to the next while nothing but the axis moves
const TIMELINE_GRIP = 3; // pixels around a slice that count as it
const TIMELINE_STEP = 0.2; // of what is shown, for an arrow key
const TIMELINE_PASSED_ON = new Set(["Tab", "Shift", "Control", "Alt", "Meta"]);
const TIMELINE_ZOOMS = { "+": 0.5, "=": 0.5, "-": 2, _: 2 };

let timelineMounted = 0;

/** Draw the timeline into `root`; see `standalone.js`. */
export function mountTimeline(root, bus) {
  const page = root.ownerDocument;
  const window = page.defaultView;
  const ring = new TimelineRing();
  const id = `accel-lab-timeline-${(timelineMounted += 1)}`;
  let state = null;
  let lanes = [];
  let packed = null;
  let mode = "follow"; // or "all", or "free"
  let free = [0, TIMELINE_FOLLOWED_S]; // what is shown when it is free
  let chosen = false; // whether it is so for a moment that was chosen in another part
  let length = TIMELINE_FOLLOWED_S; // of what is shown when it follows
  let word = { stamp: 0, heard: 0 }; // the kernel's last word, and when it came (ms of performance.now())
  let held = null; // now, while the view is paused
  let active = null; // the row that has the keyboard's attention
  let picked = null; // the slice that was chosen: {row, number} or {row, seq}
  let pointer = null; // {x, y} over the canvas
  let drag = null; // {x, window, brushed}
  let said = "";
  let tabled = false;
  let frame = 0;
  let painted = 0; // ms of performance.now()

  const canvas = () => root.querySelector(".timeline-canvas");
  const body = () => root.querySelector(".timeline-body");
  const width = () => canvas()?.clientWidth || 600;

  function now() {
    if (state?.at !== undefined) return state.at;
    if (held !== null) return held;
    const passed = state?.closed ? 0 : (window.performance.now() - word.heard) / 1000;
    return word.stamp + Math.min(Math.max(0, passed), bus.get("patience"));
  }

  function extent() {
    const starts = state ? state.running.map(([, , start]) => start) : [];
    const known = ring.extent();
    const from = Math.min(...starts, ...(known ? [known[0]] : []));
    const to = state?.closed && known ? known[1] : now();
    if (!Number.isFinite(from)) return [to - TIMELINE_FOLLOWED_S, to];
    return [from, Math.max(to, known?.[1] ?? to, from + 1e-4)];
  }

  function shown() {
    if (mode === "free") return free;
    if (mode === "all") {
      const [from, to] = extent();
      return [from - (to - from) * 0.02, to + (to - from) * 0.02];
    }
    const to = now() + length * 0.02;
    return [to - length, to];
  }

  function show(next) {
    free = next;
    mode = "free";
    chosen = false;
    redraw();
  }

  /** Hold still with a moment in sight, in the middle if it was not; go on when that is over. */
  function showMoment(moment) {
    if (!state) return;
    if (!moment) {
      if (chosen) follow();
      return;
    }
    const [from, to] = shown();
    const isSeen = from <= moment.at && moment.at <= to;
    if (!isSeen) show(timelinePan([from, to], moment.at - (from + to) / 2));
    else if (mode === "follow") show([from, to]);
    chosen = mode === "free";
  }

  function follow() {
    chosen = false;
    if (mode !== "follow") length = Math.max(0.01, shown()[1] - shown()[0]);
    mode = state?.closed ? "all" : "follow";
    redraw();
  }

  /** Zoom around `at`; what follows keeps its right edge. */
  function zoom(factor, at) {
    if (mode === "follow") {
      const [from, to] = timelineZoom(shown(), factor, shown()[1]);
      length = to - from;
      redraw();
      return;
    }
    show(timelineZoom(shown(), factor, at ?? (shown()[0] + shown()[1]) / 2));
  }

  function timeAt(x) {
    const [from, to] = shown();
    return from + (x / width()) * (to - from);
  }

  /** What lies under the pointer: the row, and the slice or the mark there. */
  function under({ x, y }) {
    const lane = lanes.find((one) => one.y <= y + scrolled() && y + scrolled() < one.y + one.height);
    if (!lane || y < TIMELINE_AXIS) return null;
    const [from, to] = shown();
    const grip = (TIMELINE_GRIP * (to - from)) / width();
    const at = timeAt(x);
    if (lane.row === null) {
      const mark = state.marks.find(([when, device, kind]) => device === lane.device && Math.abs(when - at - (kind === "fault" ? grip * 2.6 : -grip * 5)) < grip * 5);
      return mark ? { row: null, mark } : null;
    }
    for (const [work, seq, start] of state.running) {
      if (state.works[work][0] === lane.row && start - grip <= at && at <= Math.max(now(), start) + grip) return { row: lane.row, seq, slice: { work, seq, start, end: null } };
    }
    const track = ring.tracks[lane.row];
    const found = track?.near(at, grip);
    return found ? { row: lane.row, number: track.number[found.place], slice: sliceAt(track, found.place, found.count - 1) } : { row: lane.row };
  }

  function sliceAt(track, i, more = 0) {
    return { work: track.work[i], seq: track.seq[i], start: track.start[i], end: track.end[i], more };
  }

  function pickedSlice() {
    if (!picked) return null;
    const track = ring.tracks[picked.row];
    const place = picked.number === undefined ? -1 : (track?.placeOf(picked.number) ?? -1);
    if (place >= 0) return sliceAt(track, place);
    const one = state.running.find(([work, seq]) => seq === picked.seq && state.works[work][0] === picked.row);
    return one ? { work: one[0], seq: one[1], start: one[2], end: null } : null;
  }

  function scrolled() {
    return body()?.scrollTop ?? 0;
  }

  function paint() {
    frame = 0;
    painted = window.performance.now();
    const seen = shown();
    const hovered = pointer && !drag && state ? under(pointer) : null;
    const slice = hovered?.slice ?? (hovered?.mark ? null : pickedSlice());
    const detail = hovered?.mark ? { what: hovered.mark[3], text: `${hovered.mark[2]} · ${hovered.mark[1]}` } : slice && timelineDescribe(state, slice, now());
    const view = { state, ring, lanes, mode, shown: seen, span: bus.get("span"), selection: bus.get("selection"), active: active ?? lanes.find((lane) => lane.row !== null)?.row ?? null, detail, said, stale: bus.get("stale"), tabled, id, now: now() };
    patch(root, timelineDraw(view));
    const sheet = canvas();
    const wide = sheet.clientWidth;
    const high = Math.min(TIMELINE_TALLEST, timelineHeight(lanes));
    const ratio = window.devicePixelRatio || 1;
    if (sheet.width !== Math.round(wide * ratio) || sheet.height !== Math.round(high * ratio)) {
      sheet.width = Math.round(wide * ratio);
      sheet.height = Math.round(high * ratio);
      sheet.style.blockSize = `${high}px`;
    }
    if (!wide || !state) return;
    const pen = sheet.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const scene = { state, ring, lanes, window: seen, now: now(), cursor: bus.get("cursor"), span: bus.get("span"), selection: bus.get("selection"), activeRow: active, picked, hovered, top: scrolled(), width: wide, height: high };
    timelinePaint(pen, scene, timelineColours(root));
  }

  function redraw() {
    if (!frame) frame = window.requestAnimationFrame(paint);
  }

  function hear(stamp) {
    word = { stamp, heard: window.performance.now() };
  }

  function columns(view) {
    packed = view;
  }

  function take(next, stamp) {
    const first = state === null;
    state = next;
    lanes = timelineLanes(state);
    hear(stamp);
    if (packed) ring.add(packed, state.works);
    if (state.closed && (first || mode === "follow")) mode = "all";
    redraw();
  }

  function tick() {
    const moves = state && !state.closed && state.at === undefined && held === null && bus.get("stale") === null;
    if (!moves || (mode === "free" && !state.running.length)) return;
    if (!isQuiet() || window.performance.now() - painted >= TIMELINE_QUIET_MS) redraw();
  }

  /** Whether nothing moves but the axis. */
  function isQuiet() {
    const [from] = shown();
    return mode === "follow" && !state.running.length && state.marks.every(([at]) => at < from) && ring.tracks.every((track) => track.from(from) === track.tail);
  }

  function brush(span) {
    bus.set("span", span);
  }

  function select(device) {
    const path = timelinePath(state, device);
    bus.set("selection", bus.get("selection") === path ? null : path);
  }

  function activate(row) {
    active = row;
    redrawNow();
    root.querySelector(`[data-row="${row}"]`)?.focus({ preventScroll: true });
    root.querySelector(`[data-row="${row}"]`)?.scrollIntoView({ block: "nearest" });
  }

  function redrawNow() {
    window.cancelAnimationFrame(frame);
    paint();
  }

  /** Go to the slice before or after the picked one of a row, and show it. */
  function step(row, by) {
    const track = ring.tracks[row];
    const running = state.running.filter(([work]) => state.works[work][0] === row).map(([, seq]) => ({ row, seq }));
    const head = track?.head ?? 0;
    const size = track?.size ?? 0;
    const total = size + running.length;
    if (!total) return;
    let at = total; // before the first key the newest is next
    if (picked?.row === row && picked.number !== undefined) at = track.placeOf(picked.number) - head;
    else if (picked?.row === row) at = size + running.findIndex((one) => one.seq === picked.seq);
    const to = Math.min(total - 1, Math.max(0, at + by));
    picked = to < size ? { row, number: track.number[head + to] } : running[to - size];
    const slice = pickedSlice();
    const [from, until] = shown();
    if (slice.start < from || slice.start > until) show(timelinePan([from, until], slice.start - (from + until) / 2));
    const told = timelineDescribe(state, slice, now());
    said = `${told.what}, ${told.text}`;
    bus.set("cursor", slice.start);
    redraw();
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || TIMELINE_PASSED_ON.has(event.key)) return;
    event.stopPropagation(); // JupyterLab would run, delete or leave the cell
    if (event.type !== "keydown" || !state || !event.target.closest?.(".timeline-body")) return;
    const option = event.target.closest("[data-row]");
    if (commonKey(event.key) || (option ? rowKey(event.key, Number(option.dataset.row)) : plotKey(event.key))) event.preventDefault();
  }

  function commonKey(key) {
    if (TIMELINE_ZOOMS[key]) zoom(TIMELINE_ZOOMS[key], bus.get("cursor") ?? undefined);
    else if (key === "Home") setAll();
    else if (key === "End") follow();
    else if (key === "Escape") brush(null);
    else if (key === "s" || key === "S") brush(shown());
    else return false;
    return true;
  }

  function plotKey(key) {
    const [from, to] = shown();
    const by = (to - from) * TIMELINE_STEP;
    if (key === "ArrowLeft") show(timelinePan([from, to], -by));
    else if (key === "ArrowRight") show(timelinePan([from, to], by));
    else if (key === "ArrowUp") body().scrollTop -= 40;
    else if (key === "ArrowDown") body().scrollTop += 40;
    else return false;
    return true;
  }

  function rowKey(key, row) {
    const rows = lanes.filter((lane) => lane.row !== null).map((lane) => lane.row);
    const go = (by) => activate(rows[Math.min(rows.length - 1, Math.max(0, rows.indexOf(row) + by))]);
    if (key === "ArrowDown") go(1);
    else if (key === "ArrowUp") go(-1);
    else if (key === "ArrowLeft") step(row, -1);
    else if (key === "ArrowRight") step(row, 1);
    else if (key === "Enter" || key === " ") select(state.rows[row].device);
    else return false;
    return true;
  }

  function setAll() {
    mode = "all";
    redraw();
  }

  const deeds = {
    follow,
    all: setAll,
    in: () => zoom(0.5),
    out: () => zoom(2),
    unbrush: () => brush(null),
    export: save,
  };

  function onClick(event) {
    const button = event.target.closest("[data-do]");
    if (button) {
      deeds[button.dataset.do]();
      return;
    }
    const device = event.target.closest("[data-device]")?.dataset.device;
    if (!device) return;
    select(device);
    const row = event.target.closest("[data-row]")?.dataset.row;
    if (row !== undefined) activate(Number(row));
  }

  function save() {
    const text = JSON.stringify(timelineTrace(state, ring));
    const url = window.URL.createObjectURL(new window.Blob([text], { type: "application/json" }));
    const link = page.createElement("a");
    link.href = url;
    link.download = `${state.name || "accel_lab"}-timeline.json`;
    link.click();
    window.setTimeout(() => window.URL.revokeObjectURL(url), 1000);
  }

  function pointAt(event) {
    const box = canvas().getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  function onDown(event) {
    if (event.button !== 0 || event.target !== canvas() || !state) return;
    const { x } = pointAt(event);
    drag = { x, window: shown(), brush: event.shiftKey, moved: false };
    canvas().setPointerCapture(event.pointerId);
  }

  function onMove(event) {
    if (event.target !== canvas() || !state) return;
    pointer = pointAt(event);
    bus.set("cursor", timeAt(pointer.x));
    if (drag && (drag.moved || Math.abs(pointer.x - drag.x) > TIMELINE_GRIP)) {
      drag.moved = true;
      const [from, to] = drag.window;
      const at = (x) => from + (x / width()) * (to - from);
      if (drag.brush) {
        mode = "free"; // what is brushed must not move away
        chosen = false;
        free = drag.window;
        brush([at(Math.min(drag.x, pointer.x)), at(Math.max(drag.x, pointer.x))]);
      } else {
        show(timelinePan(drag.window, at(drag.x) - at(pointer.x)));
      }
    }
    redraw();
  }

  function onUp(event) {
    const ended = drag;
    drag = null;
    if (!ended || ended.moved || event.type === "pointercancel") return;
    const found = under(pointAt(event));
    picked = found?.slice ? { row: found.row, number: found.number, seq: found.seq } : null;
    if (found && found.row !== null) {
      active = found.row;
      bus.set("selection", timelinePath(state, state.rows[found.row].device));
    }
    redraw();
  }

  function onLeave(event) {
    if (event.target !== canvas() && event.target !== root) return;
    pointer = null;
    if (!drag) bus.set("cursor", null);
    redraw();
  }

  function onWheel(event) {
    if (event.target !== canvas() || !state) return;
    const [from, to] = shown();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      show(timelinePan([from, to], (event.deltaX / width()) * (to - from)));
      return;
    }
    const [first, last] = extent();
    // Where all is shown and more is asked for, the wheel is the page's.
    if (event.deltaY > 0 && to - from > 4 * (last - first) && to - from > TIMELINE_FOLLOWED_S) return;
    event.preventDefault();
    zoom(Math.exp(Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 200) * 0.0025), timeAt(pointAt(event).x));
  }

  const listeners = { click: onClick, pointerdown: onDown, pointermove: onMove, pointerup: onUp, pointercancel: onUp, pointerout: onLeave };
  for (const [type, listener] of Object.entries(listeners)) root.addEventListener(type, listener);
  for (const type of ["keydown", "keypress", "keyup"]) root.addEventListener(type, onKey);
  root.addEventListener("wheel", onWheel, { passive: false });
  root.addEventListener("scroll", redraw, true);
  root.addEventListener("toggle", (event) => {
    tabled = event.target.open;
    redraw();
  }, true);
  root.addEventListener("focusin", (event) => {
    const row = event.target.closest("[data-row]")?.dataset.row;
    if (row !== undefined) active = Number(row);
    redraw();
  });

  const unwatch = ["stale", "cursor", "span", "selection", "closed"].map((key) => bus.watch(key, redraw));
  unwatch.push(bus.watch("moment", showMoment));
  unwatch.push(bus.watch("paused", (paused) => {
    held = paused ? now() : null;
    redraw();
  }));
  const sizes = new window.ResizeObserver(redraw);
  sizes.observe(root);
  const themes = new window.MutationObserver(redraw);
  themes.observe(root, { attributes: true, attributeFilter: ["data-theme"] });
  paint();
  return {
    take,
    columns,
    tick,
    stamp: hear,
    unmount() {
      unwatch.forEach((end) => end());
      sizes.disconnect();
      themes.disconnect();
      window.cancelAnimationFrame(frame);
    },
  };
}
