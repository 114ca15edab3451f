// What the dashboard's list says of each system.

import assert from "node:assert/strict";
import test from "node:test";

import { dashboardState, dashboardSummary, dashboardTime, drawDashboard } from "../../widgets/dashboard/draw.js";
import { toHtml } from "../../widgets/shared/dom.js";

const SYSTEM = { key: "1-2-1", name: "train", program: "a.ipynb", folder: "/home/me", pid: 12, up_s: 61, states: { running: 2 }, in_flight: 3, restarts: 1, used_bytes: 2 ** 30, total_bytes: 2 ** 33 };
const html = (...systems) => toHtml(...drawDashboard({ systems, shown: SYSTEM.key }, null));

test("a row names the system, where it runs, and how it is", () => {
  const drawn = html(SYSTEM).replace(/<[^>]*>/g, "|");
  for (const part of ["train", "a.ipynb", "/home/me", "pid 12", "up 1 min", "2 running", "1.0 / 8 GiB".replace("1.0", "1"), "3 in flight · 1 restart", "live"]) assert.ok(drawn.includes(`|${part}|`), part);
});

test("only the one that is shown is the current one", () => {
  const drawn = html(SYSTEM, { ...SYSTEM, key: "other" });
  assert.equal(drawn.split('aria-current="true"').length, 2);
});

test("silence and the end are said in words", () => {
  assert.equal(dashboardState({ stale_s: 3 })[2], "stale 3 s");
  assert.equal(dashboardState({ ended: "closed", stale_s: 3 })[2], "ended");
  assert.equal(dashboardState({ ended: "killed" })[2], "ended · process gone");
});

test("the summary counts processes that run, and systems that ended", () => {
  assert.equal(dashboardSummary([]), "0 systems in 0 processes");
  assert.equal(dashboardSummary([SYSTEM, { ...SYSTEM, key: "b" }, { ...SYSTEM, key: "c", pid: 13, ended: "closed" }]), "2 systems in 1 process · 1 ended");
});

test("a recording is called that, and is no system that ended", () => {
  const recorded = { ...SYSTEM, ended: "recorded" };
  assert.equal(dashboardState(recorded)[2], "recording");
  assert.equal(dashboardSummary([recorded]), "1 recording");
  assert.equal(dashboardSummary([SYSTEM, recorded]), "1 system in 1 process · 1 recording");
});

test("a system without a scrubber says why", () => {
  const drawn = toHtml(...drawDashboard({ systems: [SYSTEM], shown: SYSTEM.key, unkept: "train: it keeps no journal" }, null));
  assert.match(drawn, /No scrubber for train: it keeps no journal\./);
  assert.doesNotMatch(html(SYSTEM), /No scrubber/);
});

test("an empty list says what to do, and a name is never markup", () => {
  assert.match(html(), /No system runs/);
  assert.ok(!html({ ...SYSTEM, name: "<b>" }).includes("<b>"));
});

test("a process that was killed is red, and no row that may be overlooked", () => {
  assert.equal(dashboardState({ ended: "killed" })[0], "al-bad");
  assert.equal(dashboardState({ ended: "closed" })[0], "al-off");
  assert.doesNotMatch(html({ ...SYSTEM, ended: "killed" }), /al-last/);
  assert.match(html({ ...SYSTEM, ended: "closed" }), /al-last/);
});

test("the time that a system is up never runs backwards", () => {
  const told = (s) => {
    const [, n, unit] = /^(\d+) (s|min|h)$/.exec(dashboardTime(s));
    return n * { s: 1, min: 60, h: 3600 }[unit];
  };
  // As Python sends it: exact up to a minute, then whole minutes.
  const sent = Array.from({ length: 8000 }, (_, s) => (s < 60 ? s : s - (s % 60)));
  sent.reduce((before, s) => {
    assert.ok(told(s) >= before, `${s}`);
    return told(s);
  }, 0);
});
