// The timeline on a page: hears what happens there, and has the parts say what that changes.

import { patch } from "../shared/dom.js";
import { timelineDraw } from "./draw.js";
import { timelineIsPassedOn, timelineKey } from "./keys.js";
import { TimelineModel } from "./model.js";
import { timelineMapDown, timelineMapKey, timelineMapMove, timelineMapSpan } from "./time/minimap.js";
import { TIMELINE_MAP_HIGH, TimelineMapPicture } from "./paint/map.js";
import { timelineColours } from "./paint/fills.js";
import { timelinePaint } from "./paint/paint.js";
import { TimelineFrames, timelineDrawing, timelineFit, timelineHovered, timelineIsDue, timelineScene, timelineSheetHeight } from "./picture.js";
import { timelineButton, timelineClick, timelineDown, timelineLeave, timelineMove, timelineUp, timelineWheel } from "./pointer.js";
import { timelineSave } from "./trace.js";

const TIMELINE_UNMEASURED = 600; // pixels of width, before there is a picture

let timelineMounted = 0;

/** Draw the timeline into `root`; see `standalone.js`. */
export function mountTimeline(root, bus) {
  const window = root.ownerDocument.defaultView;
  const model = new TimelineModel(bus, () => window.performance.now());
  const sheet = new TimelineSheet(root, model, (message) => bus.command(message));
  const redraw = () => sheet.frames.ask();
  timelineListen(sheet);
  const unwatch = ["stale", "cursor", "span", "selection", "kernel", "closed"].map((key) => bus.watch(key, redraw));
  unwatch.push(bus.watch("moment", (moment) => model.showMoment(moment) && redraw()));
  unwatch.push(bus.watch("paused", (paused) => {
    model.pause(paused);
    redraw();
  }));
  const sizes = new window.ResizeObserver(redraw);
  sizes.observe(root);
  const themes = new window.MutationObserver(redraw);
  themes.observe(root, { attributes: true, attributeFilter: ["data-theme"] });
  sheet.frames.now();
  return {
    take(state, stamp) {
      model.take(state, stamp);
      redraw();
    },
    columns: (packed) => model.columns(packed),
    tick() {
      if (timelineIsDue(model.look(), sheet.frames.age)) redraw();
    },
    stamp: (stamp) => model.hear(stamp),
    unmount() {
      unwatch.forEach((end) => end());
      sizes.disconnect();
      themes.disconnect();
      sheet.frames.cancel();
    },
  };
}

/** The element of a timeline: what is measured of it, drawn into it, and done to it. */
class TimelineSheet {
  #mapPicture = new TimelineMapPicture();
  #id = `accel-lab-timeline-${(timelineMounted += 1)}`;

  #command;

  constructor(root, model, command) {
    this.#command = command;
    this.root = root;
    this.model = model;
    this.window = root.ownerDocument.defaultView;
    this.frames = new TimelineFrames(this.window, () => this.#paint());
  }

  get canvas() { return this.root.querySelector(".timeline-canvas"); }

  get body() { return this.root.querySelector(".timeline-body"); }

  get #scrolled() { return this.body?.scrollTop ?? 0; }

  look() {
    return { ...this.model.look(), width: this.canvas?.clientWidth || TIMELINE_UNMEASURED, top: this.#scrolled };
  }

  /** Where over the picture an event was. */
  point(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  get map() { return this.root.querySelector(".timeline-map"); }

  /** Where on the minimap an event was. */
  mapPoint(event) {
    const box = this.map.getBoundingClientRect();
    return { x: event.clientX - box.left, width: box.width };
  }

  /** Take a change, and draw it. Of a slice that is picked it is asked what it has to do with others. */
  act(change) {
    if (change.picked) this.#ask(change.picked);
    if (this.model.apply(change)) this.frames.ask();
    if (change.scrollBy) this.body.scrollTop += change.scrollBy;
    if (change.focus === undefined) return;
    this.frames.now(); // there must be a row before it can have the focus
    const row = this.root.querySelector(`[data-row="${change.focus}"]`);
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest" });
  }

  #ask({ row, number, seq }) {
    const { state, ring } = this.model.look();
    const track = ring.tracks[row];
    const place = number === undefined ? -1 : (track?.placeOf(number) ?? -1);
    const asked = place < 0 ? seq : track.seq[place];
    if (asked !== undefined && state.works && !(place >= 0 && state.works[track.work[place]][2] === "untraced")) this.#command({ do: "relate", device: state.rows[row].device, seq: asked });
  }

  #paint() {
    const view = this.look();
    const hovered = timelineHovered(view);
    patch(this.root, timelineDraw(timelineDrawing(view, hovered, this.#id)));
    const { canvas } = this; // measured only now, when all around it has its size
    const width = canvas.clientWidth;
    const ratio = this.window.devicePixelRatio || 1;
    timelineFit(canvas, width, timelineSheetHeight(view), ratio);
    if (!width || !view.state) return;
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const colours = timelineColours(this.root);
    timelinePaint(pen, timelineScene(view, hovered, { width, top: this.#scrolled }), colours);
    this.#paintMap(view, ratio, colours);
  }

  #paintMap(view, ratio, colours) {
    const canvas = this.root.querySelector(".timeline-map-canvas");
    const width = canvas.clientWidth;
    if (!width) return;
    if (timelineFit(canvas, width, TIMELINE_MAP_HIGH, ratio)) this.#mapPicture.forget();
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#mapPicture.paint(pen, view, timelineMapSpan(view), width, colours, this.window.performance.now());
  }
}

/** Have what happens to a sheet change it. */
function timelineListen(sheet) {
  const { root, model } = sheet;
  const redraw = () => sheet.frames.ask();
  const isPicture = ({ target }) => target === sheet.canvas && model.look().state !== null;
  const listen = (type, listener, options) => root.addEventListener(type, listener, options);

  listen("pointerdown", (event) => {
    if (event.button === 0 && sheet.map?.contains(event.target) && model.look().state) {
      sheet.act(timelineMapDown(sheet.look(), sheet.mapPoint(event)));
      sheet.map.setPointerCapture(event.pointerId);
      sheet.root.querySelector(".timeline-handle").focus({ preventScroll: true });
      event.preventDefault();
      return;
    }
    if (event.button !== 0 || !isPicture(event)) return;
    sheet.act(timelineDown(sheet.look(), sheet.point(event), event));
    sheet.canvas.setPointerCapture(event.pointerId);
  });
  listen("pointermove", (event) => {
    if (sheet.look().drag?.map) sheet.act(timelineMapMove(sheet.look(), sheet.mapPoint(event)));
    else if (isPicture(event)) sheet.act(timelineMove(sheet.look(), sheet.point(event)));
  });
  for (const type of ["pointerup", "pointercancel"]) {
    listen(type, (event) => sheet.act(sheet.look().drag?.map ? { drag: null } : timelineUp(sheet.look(), sheet.point(event), type === "pointercancel")));
  }
  listen("pointerout", ({ target }) => {
    if (target === sheet.canvas || target === root) sheet.act(timelineLeave(sheet.look()));
  });
  listen("wheel", (event) => {
    const change = isPicture(event) ? timelineWheel(sheet.look(), sheet.point(event), event) : null;
    if (!change) return;
    event.preventDefault();
    sheet.act(change);
  }, { passive: false });
  listen("click", (event) => timelineOnClick(sheet, event));
  for (const type of ["keydown", "keypress", "keyup"]) listen(type, (event) => timelineOnKey(sheet, event));
  listen("scroll", redraw, true);
  listen("toggle", ({ target }) => {
    if (target.matches(".timeline-newest")) sheet.act({ tabled: target.open });
    redraw(); // the picture has more room now, or less
  }, true);
  listen("focusin", ({ target }) => {
    const row = timelineRowOf(target);
    if (row !== null) sheet.act({ active: row });
    redraw();
  });
}

function timelineOnKey(sheet, event) {
  if (timelineIsPassedOn(event)) return;
  event.stopPropagation(); // JupyterLab would run, delete or leave the cell
  const view = sheet.look();
  const isMap = Boolean(event.target.closest?.(".timeline-map"));
  if (event.type !== "keydown" || !view.state || !(isMap || event.target.closest?.(".timeline-body"))) return;
  const change = (isMap && timelineMapKey(view, event.key)) || timelineKey(view, event.key, timelineRowOf(event.target));
  if (!change) return;
  event.preventDefault();
  sheet.act(change);
}

function timelineOnClick(sheet, { target }) {
  const deed = target.closest("[data-do]")?.dataset.do;
  const device = target.closest("[data-device]")?.dataset.device;
  const view = sheet.look();
  if (deed === "export") timelineSave(sheet.root.ownerDocument, view.state, view.ring);
  else if (deed) sheet.act(timelineButton(view, deed));
  else if (device) sheet.act(timelineClick(view, device, timelineRowOf(target)));
}

/** The row that an element belongs to; null when none. */
function timelineRowOf(element) {
  const row = element.closest("[data-row]")?.dataset.row;
  return row === undefined ? null : Number(row);
}
