import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { bufferNumber, bytes, clockTime, count, look, memory, percent, plural, seconds } from "../../../widgets/shared/format.js";

const cases = JSON.parse(readFileSync(new URL("../../views/format_cases.json", import.meta.url)));

test("sizes read as they do in Python", () => {
  for (const [size, text] of cases.size) assert.equal(bytes(size), text);
  for (const [number, text] of cases.buffer) assert.equal(bufferNumber(number), text);
});

test("memory reads as it does in Python", () => {
  for (const [used, total, text] of cases.memory) assert.equal(memory(used, total), text);
});

test("a count takes at most five characters", () => {
  const written = [0, 9, 940, 9999, 10_000, 12_345, 999_499, 999_500, 3_400_000, 12_000_000].map(count);
  assert.deepEqual(written, ["0", "9", "940", "9999", "10k", "12k", "999k", "1M", "3.4M", "12M"]);
});

test("a waiting time has a unit that fits", () => {
  const written = [0, 0.44, 9.94, 9.95, 89.4, 90, 5399, 5400, 86_400].map(seconds);
  assert.deepEqual(written, ["0.0 s", "0.4 s", "9.9 s", "10 s", "89 s", "2 min", "90 min", "2 h", "24 h"]);
});

test("a moment is written in local time, to the millisecond", () => {
  const at = 1_700_000_000.25;
  const local = new Date(at * 1000);
  assert.equal(clockTime(at), `${local.toTimeString().slice(0, 8)}.250`);
});

test("a share is never none while something is used", () => {
  const written = [[0, 100], [1, 1e6], [3.14, 100], [9.96, 100], [25, 100], [100, 100]].map(([used, total]) => percent(used, total));
  assert.deepEqual(written, ["0 %", "< 0.1 %", "3.1 %", "10 %", "25 %", "100 %"]);
});

test("one is singular", () => {
  assert.deepEqual([0, 1, 2].map((n) => plural(n, "device")), ["0 devices", "1 device", "2 devices"]);
});

test("a state nobody knows has a look too", () => {
  assert.deepEqual(look("dreaming"), { tone: "warn", icon: "half-open" });
});
