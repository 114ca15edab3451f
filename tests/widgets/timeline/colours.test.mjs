// What a name looks like: in the legend, and in the picture with the pattern of its kind.

import assert from "node:assert/strict";
import { test } from "node:test";

import { toHtml } from "../../../widgets/shared/dom.js";
import { timelineDraw } from "../../../widgets/timeline/draw.js";
import { TimelineFills, timelineShade } from "../../../widgets/timeline/paint/fills.js";
import { timelineDrawing } from "../../../widgets/timeline/picture.js";
import { TimelineRing } from "../../../widgets/timeline/ring.js";
import { workColour } from "../../../widgets/shared/colours.js";
import { Timeline, packed } from "./case.mjs";

const COLOURS = { bg: "white", muted: "grey", work: ["a", "b", "c", "d", "e", "f", "g", "h"] };

/** A pen that makes patterns of what was drawn into their tile. */
function pen() {
  const tile = () => {
    const inks = [];
    const ink = new Proxy({}, { get: (own, name) => own[name] ?? (() => {}), set: (own, name, value) => { inks.push(value); return Reflect.set(own, name, value); } });
    return { inks, getContext: () => ink };
  };
  return { made: 0, canvas: { ownerDocument: { createElement: tile } }, createPattern({ inks }) { this.made += 1; return { inks }; } };
}

test("the legend names the names that most slices have, each with its colour", () => {
  const timeline = new Timeline();
  const html = toHtml(...timelineDraw(timelineDrawing(timeline.look(), null, "t")).filter(Boolean));
  const names = [...html.matchAll(/fill: var\((--al-work-\d)\)[^>]*><\/rect><\/svg>(\w+)/g)].map(([, colour, name]) => [name, colour]);
  assert.deepEqual(names, [["Gemm", workColour("Gemm")], ["Upload", workColour("Upload")]]);
});

test("names are counted by what is held, and what is not traced has none", () => {
  const works = [[0, "Gemm", "kernel"], [1, "Gemm", "kernel"], [0, "saxpy", "kernel"], [0, "not traced", "untraced"]];
  const ring = new TimelineRing(4);
  ring.add(packed(0, [[1, 2, 0, 2], [2, 3, 1, 2], [3, 4, 2, 2], [4, 5, 3, 0], [5, 6, 4, 1], [6, 7, 900, 3]]), works);
  assert.deepEqual(ring.names(works, 8), [["Gemm", 2], ["saxpy", 1]]);
  assert.deepEqual(ring.names(works, 1), [["Gemm", 2]]);
});

test("a name has one colour whatever its kind, and the kind a pattern", () => {
  const one = pen();
  const fills = new TimelineFills(one, COLOURS);
  const shade = timelineShade("saxpy");
  assert.equal(`--al-work-${shade}`, workColour("saxpy"));
  assert.equal(fills.of("kernel", shade), COLOURS.work[shade]);
  for (const pattern of [fills.of("copy", shade), fills.of("function", shade), fills.lost(shade)]) assert.ok(pattern.inks.includes(COLOURS.work[shade]));
  assert.equal(new Set([fills.of("copy", shade), fills.of("function", shade), fills.lost(shade), fills.untraced]).size, 4);
  assert.equal(fills.of("copy", shade), fills.of("copy", shade), "made once");
  assert.equal(one.made, 4);
});
