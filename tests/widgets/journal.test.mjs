import assert from "node:assert/strict";
import { test } from "node:test";

import { html } from "../../widgets/journal/journal.js";
import { journalReplays, journalShare } from "../../widgets/journal/draw.js";
import { JOURNAL_PAGE, journalPress } from "../../widgets/journal/keys.js";
import { replayWhere } from "../../widgets/shared/replay.js";

const AT = 1_700_000_000;
const row = (n, more = {}) => ({ n, at: AT + n, device: "cpu0", generation: 1, what: `Gemm ${n}`, outcome: "ok so far", ...more });

function state(more = {}) {
  const bins = Array.from({ length: 120 }, (_, i) => (i % 3 ? i : 0));
  return {
    name: "lab", kind: "journal", closed: false, live: true, count: 2000, position: 2000, at: AT + 100, first: AT, last: AT + 100,
    faults: 2, speed: 1, speeds: [0.25, 1, 16], strip: { bins, faults: [3, 60], turns: [61] }, window: [row(1997), row(1998), row(1999)], ...more,
  };
}

const replay = (more = {}) => state({ live: false, position: 1999, at: AT + 98, ...more });

test("live it says so, and marks no row", () => {
  const text = html(state());
  assert.match(text, /al-badge al-live[^>]*>.*live/);
  assert.doesNotMatch(text, /REPLAY/);
  assert.doesNotMatch(text, /aria-current/);
});

test("live the newest entry is the first, and what runs is said to run", () => {
  const text = html(state({ window: [row(1997), row(1998, { outcome: "running", running: true }), row(1999)] }));
  const order = (page) => [...page.matchAll(/data-n="(\d+)"/g)].map(([, n]) => Number(n));
  assert.deepEqual(order(text), [1999, 1998, 1997]);
  assert.match(text, /<span class="al-word al-busy"><svg class="al-icon al-icon-play".*<\/svg>running<\/span>/);
  assert.deepEqual(order(html(replay())), [1997, 1998, 1999], "in the past they are in their order");
});

test("what failed is counted by what it is, so that it agrees with the faults of supervision", () => {
  assert.match(html(state({ faults: 3, losses: 1 })), /2 failed requests<.*1 loss of a context</);
  const few = html(state({ faults: 2, losses: 2 }));
  assert.match(few, />2 losses of a context</);
  assert.doesNotMatch(few, /failed request/);
  assert.match(html(state({ kind: "recording", faults: 2 })), />2 facts of faults</);
});

test("drawings of one kind that would overlap are one, and none leaves the strip", () => {
  const { bins } = state().strip;
  const text = html(replay({ strip: { bins, faults: [0, 1, 2, 3], turns: [119] } }));
  assert.equal(text.match(/al-journal-mark al-journal-fault/g).length, 4);
  assert.equal(text.match(/al-journal-fault"[^>]*><svg/g).length, 2);
  assert.match(text, /al-journal-turn" style="left: clamp\(7px, 99\.58%, 100% - 7px\)"/);
});

test("at any other position a banner says REPLAY, where, and how to come back", () => {
  const text = html(replay());
  assert.match(text, /<strong>REPLAY<\/strong>/);
  assert.match(text, /entry 1,999 of 2,000 · \d\d:\d\d:\d\d\.000/);
  assert.match(text, /data-do="live"[^>]*>.*Back to live/);
  assert.match(html(replay({ closed: true })), /Back to the last state/);
});

test("what has no system behind it is always a replay, and has no way to live", () => {
  const { live, ...recording } = state({ kind: "recording" });
  assert.equal(live, true);
  assert.ok(journalReplays(recording));
  assert.match(html(recording), /Recording of lab/);
  assert.match(replayWhere(recording), /^fact 2,000 of/);
  assert.doesNotMatch(html(recording), /data-do="live"/);
});

test("nothing yet is neither live nor a replay", () => {
  assert.equal(journalReplays(null), false);
  assert.equal(journalReplays(state({ live: false, count: 0 })), false);
  assert.match(html(null), /Waiting for the first entries/);
  assert.match(html({ name: "lab", kind: "journal", closed: false, live: true, count: 0, position: 0, faults: 0, speed: 1, speeds: [1] }), /Nothing has been sent yet/);
  assert.match(html({ name: "lab", kind: "journal", closed: true, live: true, count: 0, position: 0, faults: 0, speed: 1, speeds: [1], unread: "its store was away" }), /None of it could be read here: its store was away\./);
});

test("the row at the position is current, those beyond it are ahead", () => {
  const text = html(replay());
  assert.equal(text.match(/aria-current="true"/g).length, 1);
  assert.match(text, /al-journal-here" data-n="1998"/);
  assert.match(text, /al-journal-ahead" data-n="1999"/);
});

test("a fault and a new generation have a drawing and a word", () => {
  const text = html(replay({ window: [row(1, { mark: "fault" }), row(2, { mark: "turn" })] }));
  assert.match(text, /al-icon-warn.*<span class="al-sr">fault: <\/span>/);
  assert.match(text, /al-icon-restarting.*<span class="al-sr">new generation: <\/span>/);
  assert.equal(text.match(/al-journal-mark al-journal-fault/g).length, 2);
  assert.equal(text.match(/al-journal-mark al-journal-turn/g).length, 1);
});

test("the strip has a bar for each part of the time with entries", () => {
  const [, path] = html(state()).match(/<path d="(M[^"]*)"><\/path><\/svg><span class="al-journal-past/);
  assert.equal(path.match(/M/g).length, 80);
});

test("the slider says its position", () => {
  const text = html(replay());
  assert.match(text, /role="slider" tabindex="0" aria-label="Position" aria-valuemin="0" aria-valuemax="2000" aria-valuenow="1999" aria-valuetext="entry 1,999 of 2,000/);
});

test("a moment has its share of the strip, also when all is one moment", () => {
  assert.equal(journalShare({ first: 10, last: 20 }, 15), 0.5);
  assert.equal(journalShare({ first: 10, last: 20 }, 99), 1);
  assert.equal(journalShare({ first: 10, last: 20 }, 1), 0);
  assert.equal(journalShare({ first: 10, last: 10 }, 10), 1);
});

test("play becomes pause, and ends are not to be gone beyond", () => {
  assert.match(html(replay()), /data-do="play"[^>]*>.*Play</);
  assert.match(html(replay({ playing: true })), /data-do="pause"[^>]*>.*Pause</);
  assert.match(html(replay({ position: 0 })), /data-do="back"[^>]*disabled/);
  assert.doesNotMatch(html(replay()), /data-do="on"[^>]*disabled/);
  assert.match(html(replay({ faults: 0 })), /data-do="next_fault" disabled/);
});

test("the speed that is chosen is selected", () => {
  assert.match(html(replay({ speed: 16 })), /<option value="16" selected="">16×/);
});

test("what is gone or damaged is said", () => {
  const text = html(state({ dropped: 1234, damage: "line 7" }));
  assert.match(text, /1,234 gone/);
  assert.match(text, /title="line 7"[^>]*>.*damaged/);
});

test("runs that differ are listed with the way there", () => {
  const found = [{ device: "cpu0", why: "another result", here: 41, there: 40, what: "Gemm(a=#1)", other: "", at: AT + 50 }];
  const text = html(state({ compared: { with: "lab2", messages: 1, undigested: 1, found } }));
  assert.match(text, /The runs differ/);
  assert.match(text, /1 message is as in lab2 · 1 without a digest/);
  assert.match(text, /data-do="seek" data-position="42"[^>]*>Go to entry 41/);
  assert.match(text, /<dt>there<\/dt><dd>nothing<\/dd>/);
  assert.match(text, /al-journal-differs" style="left: 50\.00%"/);
  assert.match(html(state({ compared: { with: "lab2", messages: 9, undigested: 0, found: [] } })), /No difference/);
});

test("words are text, never markup", () => {
  assert.doesNotMatch(html(replay({ window: [row(1, { what: "<img src=x>" })] })), /<img/);
});

test("keys move as those of a slider do", () => {
  const view = { position: 20, count: 30, playing: false };
  const step = (n) => ({ do: "step", n });
  const seek = (position) => ({ do: "seek", position });
  assert.deepEqual(["ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown"].map((key) => journalPress(key, view)), [step(1), step(1), step(-1), step(-1)]);
  assert.deepEqual(["PageUp", "PageDown", "Home", "End"].map((key) => journalPress(key, view)), [seek(30), seek(20 - JOURNAL_PAGE), seek(0), seek(30)]);
  assert.deepEqual(journalPress("PageDown", { ...view, position: 3 }), seek(0));
  assert.deepEqual([journalPress(" ", view), journalPress(" ", { ...view, playing: true })], [{ do: "play" }, { do: "pause" }]);
  assert.deepEqual(journalPress("n", view), { do: "next_fault" });
  assert.equal(journalPress("x", view), null);
});

test("what is gone is said in full, with what would keep more", () => {
  assert.doesNotMatch(html(state()), /are gone/);
  const text = html(state({ dropped: 2381, bound: "it keeps 32 MiB, and System(journal_bytes=…) more" }));
  assert.match(text, />2,381 entries are gone: it keeps 32 MiB, and System\(journal_bytes=…\) more\.</);
});

test("a row speaks of its cell, and what the journal itself has is one click away", () => {
  const detail = [["kind", "message, Gemm"], ["request", "#12"], ["makes", "float32[8, 8], buffer 3 (3)"]];
  const rows = [row(1998, { what: "c = Gemm(a, b)", cell: 4, detail }), row(1999)];
  const text = html(state({ window: rows }));
  assert.match(text, /<code>c = Gemm\(a, b\)<\/code>/);
  assert.match(text, /<td class="al-journal-cell">cell 4<\/td>/);
  assert.match(text, /data-do="details" data-entry="1998" aria-expanded="false" aria-label="Details of entry 1,998"/);
  assert.doesNotMatch(text, /#12|message, Gemm|>g1</);
  const open = html(state({ window: rows }), { open: new Set([1998]) });
  assert.match(open, /aria-expanded="true"/);
  assert.match(open, /<ul aria-label="Details of entry 1,998"><li><span class="al-muted">kind<\/span> <code>message, Gemm<.*>request<\/span> <code>#12</);
  assert.equal(open.match(/data-do="details"/g).length, 1, "only where there are any");
});
