import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { WORK_COLOURS, workColour } from "../../../widgets/shared/colours.js";

const sheet = readFileSync(new URL("../../../widgets/shared/theme.css", import.meta.url), "utf8");
const MODES = {
  light: { rule: /\.accel-lab \{([^}]*)\}/, grounds: ["#ffffff", "#eef1f4"] }, // a page's, and a lane's heading
  dark: { rule: /\.accel-lab\[data-theme="dark"\] \{([^}]*)\}/, grounds: ["#16191d", "#212121", "#2a2f35"] },
};

// How colours look to who lacks one kind of cone (Machado and others, 2009), and to who has all three.
const SIGHTS = [
  [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
];
const APART = 0.08; // in OKLab, where 0.02 is just seen side by side

const dot = (row, v) => row.reduce((sum, x, i) => sum + x * v[i], 0);
const times = (matrix, v) => matrix.map((row) => dot(row, v));
const linear = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
const luminance = (hex) => dot([0.2126, 0.7152, 0.0722], linear(hex));

function contrast(a, b) {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

function oklab(light) {
  const cones = times([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]], light);
  return times([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]], cones.map((c) => Math.cbrt(Math.max(0, c))));
}

function colours(mode) {
  const found = Object.fromEntries([...MODES[mode].rule.exec(sheet)[1].matchAll(/(--al-work-\w+): (#[0-9a-f]{6});/g)].map(([, name, hex]) => [name, hex]));
  const { "--al-work-text": text, ...work } = found;
  return { text, work };
}

test("a name has the same colour for ever", () => {
  const known = { saxpy: 5, gemm: 2, axpy: 4, put: 3, "": 4, "größe": 3 };
  for (const [name, number] of Object.entries(known)) assert.equal(workColour(name), `--al-work-${number}`, name);
});

test("names are spread over all eight colours", () => {
  const counts = new Map();
  for (let i = 0; i < 8000; i += 1) counts.set(workColour(`kernel_${i}`), (counts.get(workColour(`kernel_${i}`)) ?? 0) + 1);
  assert.equal(counts.size, WORK_COLOURS);
  for (const [name, count] of counts) assert.ok(count > 800 && count < 1200, `${name}: ${count}`);
});

for (const mode of Object.keys(MODES)) {
  test(`the ${mode} theme defines each colour, against its grounds with 3:1 and under words with 4.5:1`, () => {
    const { work, text } = colours(mode);
    assert.deepEqual(Object.keys(work), Array.from({ length: WORK_COLOURS }, (_, i) => `--al-work-${i}`));
    for (const [name, hex] of Object.entries(work)) {
      for (const ground of MODES[mode].grounds) assert.ok(contrast(hex, ground) >= 3, `${name} on ${ground}: ${contrast(hex, ground)}`);
      assert.ok(contrast(hex, text) >= 4.5, `${text} on ${name}: ${contrast(hex, text)}`);
    }
  });

  test(`the ${mode} theme's colours are told apart with any kind of colour vision`, () => {
    const work = Object.values(colours(mode).work);
    for (const sight of SIGHTS) {
      const seen = work.map((hex) => oklab(times(sight, linear(hex)).map((c) => Math.min(1, Math.max(0, c)))));
      seen.forEach((a, i) => seen.slice(0, i).forEach((b, j) => assert.ok(Math.hypot(...a.map((x, k) => x - b[k])) >= APART, `${work[i]} and ${work[j]}`)));
    }
  });
}
