import assert from "node:assert/strict";
import { test } from "node:test";

import { Freshness, STALE_AFTER_S, staleAfter } from "../../../widgets/shared/freshness.js";
import { History, WINDOW_S } from "../../../widgets/shared/history.js";

test("before the first stamp nothing is stale", () => {
  assert.equal(new Freshness().isStale(1e9), false);
});

test("a page that opens on an old state says how old it is", () => {
  const fresh = new Freshness();
  fresh.found(1000);
  assert.equal(fresh.age(1012), 12);
  assert.equal(fresh.isStale(1012), true);
});

test("a kernel whose clock is an hour ahead or behind is not stale", () => {
  for (const skew of [-3600, 3600]) {
    const fresh = new Freshness();
    fresh.arrived(1000 + skew, 1000.01);
    fresh.arrived(1001 + skew, 1001.05);
    assert.equal(fresh.isStale(1002), false);
    assert.equal(fresh.isStale(1004), true);
  }
});

test("a silent kernel is stale within two seconds, and one that beats each second is not", () => {
  const fresh = new Freshness();
  fresh.arrived(1000, 1000);
  assert.equal(fresh.isStale(1001.5), false);
  assert.equal(fresh.isStale(1001.9), true);
  assert.ok(STALE_AFTER_S < 2);
});

test("a view that speaks every ten seconds is stale some seconds after that", () => {
  const fresh = new Freshness();
  fresh.arrived(1000, 1000);
  const after = staleAfter(10);
  assert.equal(fresh.isStale(1011, after), false);
  assert.equal(fresh.isStale(1013, after), true);
});

test("one that speaks often, or does not say how often, is stale after the usual time", () => {
  for (const silence of [0.5, 1.5, undefined, null]) assert.equal(staleAfter(silence), STALE_AFTER_S);
});

test("a state that arrives late is as old as it is late", () => {
  const fresh = new Freshness();
  fresh.arrived(1000, 1000);
  fresh.arrived(1001, 1005);
  assert.equal(fresh.age(1005), 4);
});

test("a clock that is set is forgiven after some stamps", () => {
  const fresh = new Freshness();
  for (let s = 0; s < 30; s += 1) fresh.arrived(1000 + s, 1000 + s);
  for (let s = 30; s < 60; s += 1) fresh.arrived(1000 + s, 8200 + s);
  assert.equal(fresh.isStale(8259), false);
});

test("a silent load draws no line", () => {
  const history = new History();
  history.push("a", 1, 0);
  assert.equal(history.path("a", 1, 60, 15), "");
  assert.equal(history.path("unknown", 1, 60, 15), "");
});

test("the line is stepped, scaled to its peak, and ends now", () => {
  const history = new History();
  history.push("a", 0, 2);
  history.push("a", 15, 4);
  assert.equal(history.path("a", 30, 60, 15), "M0.0 7.5H30.0V0.5H60");
});

test("values close together keep their peak", () => {
  const history = new History();
  history.push("a", 0, 1);
  history.push("a", 0.1, 9);
  history.push("a", 0.2, 3);
  history.push("a", 10, 9);
  assert.equal(history.path("a", 30, 60, 15), "M0.0 0.5H20.0V0.5H60");
});

test("history is bounded in time and in points", () => {
  const history = new History();
  for (let at = 0; at < 1000; at += 0.1) history.push("a", at, 1);
  const points = history.path("a", 1000, 60, 15).match(/H/g).length - 1;
  assert.ok(points <= 40, `${points} points`);
  const first = Number(history.path("a", 1000, 60, 15).match(/^M([\d.]+)/)[1]);
  assert.ok(first >= 0 && first < 60 * (2 / WINDOW_S), `starts at ${first}`);
});

test("what is gone is forgotten", () => {
  const history = new History();
  history.push("a", 0, 1);
  history.retain(new Set());
  assert.equal(history.path("a", 0, 60, 15), "");
});
