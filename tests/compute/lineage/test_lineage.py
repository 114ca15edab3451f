"""Slices of random histories, run on a machine of ten lines, give what the whole history gave."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab.compute.lineage import lineage as lineage_module
from accel_lab.compute.lineage.history import Restore, Slice
from accel_lab.compute.lineage.lineage import Lineage
from accel_lab.compute.lineage.markers import Arrays, Checkpoint, Content, Failed, encode_marker
from accel_lab.compute.lineage.recorded_message import decode
from accel_lab.libraries import ACTORS

ZEROS, COPY, SLICE, AXPY, RUN, FREE, UPLOAD = 100, 102, 104, 143, 6, 1, 4
assert ACTORS  # every message is imported


def entry(seq: int, result: int, tag: int, *fields: Any) -> bytes:
    return msgspec.msgpack.encode([seq, result, None, [tag, *fields], None])


def zeros(seq: int, made: int) -> bytes:
    return entry(seq, made, ZEROS, [4], "float32")


def copy(seq: int, x: int, *, made: int = 0, out: int | None = None) -> bytes:
    return entry(seq, made, COPY, x, out)


def view(seq: int, x: int, made: int) -> bytes:
    return entry(seq, made, SLICE, x, [])


def run(
    seq: int,
    made: int,
    *refs: int,
    answer: int = 9,
    writes: list[int] | None = None,
    nbytes: int = 1,
) -> bytes:
    """Call a function that answers with an operand, or with an array of its own.

    Parameters:
        writes: the places of what it writes; a function is pure without.
        nbytes: how long it is.
    """
    blob = bytes([answer]) * nbytes
    return entry(seq, -made, RUN, list(refs), blob, writes is None, None, writes)


def free(*ids: int) -> bytes:
    return entry(0, 0, FREE, list(ids))


class Machine:
    """Buffers hold what made them: equal values mean equal histories."""

    def __init__(self) -> None:
        self.cells: dict[int, list[Any]] = {}

    def run(self, data: bytes) -> None:
        seq, made, _, (tag, *fields), _ = decode(data)
        if tag == ZEROS:
            self.cells[made] = [(seq,)]
        elif tag == SLICE:
            self.cells[made] = self.cells[fields[0]]
        elif tag == COPY:
            x, out = fields
            target = self.cells.setdefault(made, [None]) if out is None else self.cells[out]
            target[0] = (seq, self.cells[x][0], target[0])
        elif tag == RUN:
            refs, (answer,), _, _, writes = fields
            found = [self.cells[id_] for id_ in refs]
            for i in writes or ():
                found[i][0] = (seq, i, found[i][0])
            new = [(seq, *(cell[0] for cell in found))]
            self.cells[-made] = found[answer] if answer < len(found) else new

    def have(self, found: Slice, kept: dict[tuple[int, int], Any]) -> None:
        """Do what a slice says, with what was kept by buffer and message."""
        for step in found.steps:
            if isinstance(step, Restore):
                point = step.checkpoint
                self.cells[point.id] = [kept[point.id, point.seq]]
            else:
                assert not step.opaque
                self.run(step.data)

    def value(self, id_: int) -> Any:
        return self.cells[id_][0]


def lineage_of(*parts: bytes) -> Lineage:
    lineage = Lineage()
    lineage.follow(list(parts))
    return lineage


def tidy(lineage: Lineage) -> None:
    for _ in lineage.tidy(at_once=True):
        pass


def seqs(found: Slice) -> list[int]:
    return [-step.checkpoint.id if isinstance(step, Restore) else step.seq for step in found.steps]


def test_only_what_a_buffer_depends_on_is_in_its_slice() -> None:
    parts = zeros(1, 1), zeros(2, 2), copy(3, 1, made=3), copy(4, 2, made=4), copy(5, 3, out=1)
    lineage = lineage_of(*parts)
    assert seqs(lineage.slice([3])) == [1, 3]
    assert seqs(lineage.slice([1])) == [1, 3, 5]
    assert seqs(lineage.slice([4])) == [2, 4]
    assert seqs(lineage.slice(lineage.live)) == [1, 2, 3, 4, 5]


def test_what_failed_or_was_never_answered_is_as_if_it_had_not_been() -> None:
    parts = zeros(1, 1), copy(2, 1, out=1), encode_marker(Failed(2, "OutOfMemory", "")), zeros(3, 2)
    lineage = lineage_of(*parts, copy(4, 1, out=1))
    assert seqs(lineage.slice([1])) == [1, 4]
    assert seqs(lineage.slice([1], without={4})) == [1]
    assert lineage_of(zeros(1, 1), encode_marker(Failed(1, "OutOfMemory", ""))).live == set()


def test_what_was_never_made_is_lost_by_the_failure_of_its_message() -> None:
    """A request without an answer may name it, and is told why it is not run again."""
    failed = encode_marker(Failed(1, "NotDefinite", "the minor of order 2 is not positive"))
    lineage = lineage_of(zeros(1, 1), failed, copy(2, 1, made=2), copy(3, 2, made=3))
    why = "its message failed: NotDefinite: the minor of order 2 is not positive"
    assert lineage.slice([1], without=[2, 3]).lost == {1: why}
    assert lineage.slice([3]).lost == {3: f"it depends on buffer 1: {why}"}


@pytest.mark.parametrize("kind", ["LibraryError", "Cancelled", "ContextLost"])
@pytest.mark.parametrize("cut", [False, True])
def test_what_an_upload_did_not_fill_was_never_made(kind: str, *, cut: bool) -> None:
    """Not even where its memory was had, and one of its parts has come."""
    first, second = entry(2, 1, UPLOAD, 1, 0, 1, 0, 8, []), entry(3, 1, UPLOAD, 1, 8, 1, 8, 8, [])
    failed = encode_marker(Failed(3, kind, "it cannot be mapped"))
    bytes_ = encode_marker(Content(2, "key"))
    lineage = lineage_of(zeros(1, 1), first, bytes_, second, failed, copy(4, 1, made=2))
    lineage._unanswered = lambda: 4
    if cut:
        lineage.cut()
    assert 1 not in lineage.live
    found = lineage.slice([1], without=[4])
    assert set(found.lost) == {1}
    assert found.steps == []


def test_a_function_that_failed_may_have_changed_what_it_writes() -> None:
    impure = entry(2, -3, RUN, [1], b"", *[False, None, None])
    reads = entry(2, -3, RUN, [1], b"", *[False, None, []])
    failed = encode_marker(Failed(2, "UserCodeError", ""))
    for kind in ("UserCodeError", "Interrupted"):
        ended = encode_marker(Failed(2, kind, ""))
        assert "may have changed" in lineage_of(zeros(1, 1), impure, ended).durability(1).why
        writes = entry(2, -3, RUN, [1], b"", *[False, None, [0]])
        assert "may have changed" in lineage_of(zeros(1, 1), writes, ended).durability(1).why
    assert seqs(lineage_of(zeros(1, 1), reads, failed).slice([1])) == [1]
    for kind in ("Cancelled", "DependencyFailed", "ContextLost", "DeadlineExceeded"):
        assert seqs(lineage_of(zeros(1, 1), impure, encode_marker(Failed(2, kind, ""))).slice([1]))
    lineage = lineage_of(zeros(1, 1), impure, failed)
    lineage.cut()
    assert set(lineage.slice([1]).lost) == {1}


@pytest.mark.parametrize("cut", [False, True])
def test_a_failure_that_is_told_of_before_its_message_counts(*, cut: bool) -> None:
    """A message is sent first and recorded then; a history may be cut in between."""
    impure = entry(2, 0, RUN, [1], b"", *[False, None])
    for kind, found in (("UserCodeError", "may have changed"), ("Cancelled", "1 message would")):
        lineage = lineage_of(zeros(1, 1), encode_marker(Failed(2, kind, "")))
        if cut:
            lineage.cut()
        lineage.follow([impure, zeros(3, 3)])
        assert found in lineage.durability(1).why
        lineage.cut()
        assert not lineage._history._early


def test_a_function_that_is_not_pure_costs_what_it_wrote_and_all_that_follows_from_it() -> None:
    impure = entry(3, -3, RUN, [1, 2], b"", *[False, None, [0]])
    lineage = lineage_of(zeros(1, 1), zeros(2, 2), impure, copy(4, 3, made=4), copy(5, 2, made=5))
    found = lineage.slice(lineage.live)
    assert set(found.lost) == {1, 3, 4}
    assert "pure=True" in found.lost[1]
    assert "buffer 3" in found.lost[4]
    assert seqs(found) == [2, 5]
    assert lineage.durability(2) == "replayable"
    assert lineage.durability(2).why == "1 message would make it again"
    assert lineage.durability(4) == "lost on fault"


def test_the_end_of_a_long_chain_is_lost_for_the_reason_of_its_beginning() -> None:
    impure = entry(2, -3, RUN, [1], b"", *[False, None, None])
    chain = [copy(seq, seq, made=seq + 1) for seq in range(3, 100)]
    lost = lineage_of(zeros(1, 1), impure, *chain).slice([4, 99]).lost
    assert lost[99] == lost[4]
    assert lost[4].startswith("it depends on buffer 3: ")


def test_a_pure_function_may_answer_with_a_view_of_any_operand() -> None:
    pure = entry(3, -3, RUN, [1, 2], b"", *[True, None, None])
    lineage = lineage_of(zeros(1, 1), zeros(2, 2), pure, copy(4, 1, out=3))
    assert seqs(lineage.slice([2])) == [1, 2, 3, 4]


def test_a_function_may_answer_with_a_view_whatever_it_writes() -> None:
    for writes in ([], [1]):
        called = run(3, 3, 1, 2, answer=0, writes=writes)
        lineage = lineage_of(zeros(1, 1), zeros(2, 2), called, zeros(4, 4))
        assert lineage.durability(1) == "replayable"
        lineage.follow([copy(5, 4, out=3)])
        assert lineage.durability(1) == "lost on fault"
        assert set(lineage.slice(lineage.live).lost) == {1, 2, 3}


def test_an_answer_that_is_lost_anyway_does_not_keep_a_checkpoint_from_use() -> None:
    point = encode_marker(Checkpoint(1, 3, "aa", (4,), "float32"))
    lineage = lineage_of(zeros(1, 1), run(2, 2, 1, writes=[0]), view(3, 2, 3), point)
    assert set(lineage.slice(lineage.live).lost) == {2, 3}
    assert lineage.durability(1) == "checkpointed"
    lineage.follow([copy(4, 1, out=3)])
    assert set(lineage.slice(lineage.live).lost) == {1, 2, 3}


def test_two_operands_of_a_function_do_not_share_the_fate_of_each_other() -> None:
    point = encode_marker(Checkpoint(1, 2, "aa", (4,), "float32"))
    lineage = lineage_of(zeros(1, 1), zeros(2, 2), point)
    tidy(lineage)
    lineage.follow([run(3, 3, 1, 2)])
    assert seqs(lineage.slice(lineage.live)) == [2, -1, 3]
    lineage.follow([run(4, 4, 1, writes=[0])])
    assert set(lineage.slice(lineage.live).lost) == {1, 3, 4}


def test_an_upload_is_as_durable_as_its_bytes() -> None:
    allocate = entry(1, 1, 3, [4], "float32")
    upload = entry(2, 0, UPLOAD, 1, 0, 7, 0, 16)
    kept = lineage_of(allocate, upload, encode_marker(Content(2, "aa")))
    assert seqs(kept.slice([1])) == [1, 2]
    assert kept.content_key(2) == "aa"
    assert kept.keys == {"aa"}
    large = lineage_of(allocate, upload, encode_marker(Content(2, "", "it is large")))
    assert large.durability(1) == "lost on fault"
    assert large.durability(1).why == "it is large"
    assert lineage_of(allocate, upload).durability(1) == "lost on fault"


def test_buffers_inside_an_answer_are_lost() -> None:
    lineage = lineage_of(zeros(1, 1), encode_marker(Arrays(1, [-7])), copy(2, -7, made=2))
    assert set(lineage.slice(lineage.live).lost) == {-7, 2}


def test_a_checkpoint_stands_for_all_that_came_before_it() -> None:
    point = encode_marker(Checkpoint(1, 3, "aa", (4,), "float32"))
    parts = zeros(1, 1), copy(2, 1, out=1), point, copy(5, 1, out=1)
    lineage = lineage_of(*parts)
    assert seqs(lineage.slice([1])) == [-1, 5]
    assert lineage.durability(1) == "replayable"
    assert lineage_of(*parts[:3]).durability(1) == "checkpointed"
    lineage.cut()
    assert seqs(lineage.slice([1])) == [-1, 5]
    lineage.follow([view(6, 1, 2)])
    assert seqs(lineage.slice([1, 2])) == [-1, 5, 6]


def test_a_checkpoint_lasts_as_long_as_something_is_made_of_it() -> None:
    point = encode_marker(Checkpoint(1, 2, "aa", (4,), "float32"))
    lineage = lineage_of(zeros(1, 1), point, copy(3, 1, made=2), free(1))
    tidy(lineage)
    assert lineage.durability(2) == "replayable"
    assert seqs(lineage.slice([2])) == [-1, 3]
    lineage.follow([free(2)])
    tidy(lineage)
    assert lineage.keys == set()


def test_what_was_made_of_an_earlier_checkpoint_is_had_after_a_later_one() -> None:
    first, second = (
        encode_marker(Checkpoint(1, at, key, (4,), "float32")) for at, key in ((2, "a"), (6, "b"))
    )
    lineage = lineage_of(zeros(1, 1), first)
    tidy(lineage)
    lineage.follow([copy(3, 1, made=3), copy(4, 3, out=1), second, copy(7, 1, out=3)])
    for _ in range(2):
        assert seqs(lineage.slice([1, 3])) == [-1, 3, -1, 7]
        assert lineage.keys == {"a", "b"}
        tidy(lineage)
    lineage.follow([free(3)])
    tidy(lineage)
    assert lineage.keys == {"b"}


def test_a_checkpoint_does_not_part_views_from_what_they_look_at() -> None:
    point = encode_marker(Checkpoint(1, 3, "aa", (4,), "float32"))
    lineage = lineage_of(zeros(1, 1), view(2, 1, 2), point)
    assert seqs(lineage.slice([1, 2])) == [1, 2]
    assert seqs(lineage.slice([1])) == [-1]


def test_a_checkpoint_promises_nothing_that_a_recovery_cannot_keep() -> None:
    point = encode_marker(Checkpoint(2, 3, "aa", (4,), "float32"))
    lineage = lineage_of(zeros(1, 1), run(2, 2, 1, answer=0, writes=[]), point)
    assert set(lineage.slice(lineage.live).lost) == {2}
    assert lineage.durability(2) == "lost on fault"
    assert "buffer 1" in lineage.durability(2).why
    lineage.follow([free(1)])
    assert lineage.slice(lineage.live).lost == {}
    assert lineage.durability(2) == "checkpointed"


def test_what_is_lost_anyway_keeps_no_checkpoint_from_use() -> None:
    """Though it shares the memory, and was made by a message that could be run again."""
    point = encode_marker(Checkpoint(1, 5, "aa", (4,), "float32"))
    for later in (view(4, 1, 4), run(4, 4, 1)):
        lineage = lineage_of(zeros(1, 1), view(2, 1, 2), run(3, 3, 1, writes=[0]), later, point)
        found = lineage.slice(lineage.live)
        assert set(found.lost) == {2, 3, 4}
        assert seqs(found) == [-1]
        assert lineage.durability(1) == "checkpointed"


def test_of_two_checkpoints_that_keep_each_other_from_use_the_older_buffers_is_used() -> None:
    """Neither could be had without, and whether they share memory is not known."""
    first, second = (encode_marker(Checkpoint(id_, 4, "a", (4,), "float32")) for id_ in (1, 2))
    for made in (run(2, 2, 1, writes=[]), view(2, 1, 2)):
        lineage = lineage_of(zeros(1, 1), made, run(3, 3, 1, writes=[0]), free(3), first, second)
        for _ in range(3):
            found = lineage.slice(lineage.live)
            assert (set(found.lost), seqs(found)) == ({2}, [-1])
            assert lineage.durability(1) == "checkpointed"
            assert lineage.durability(2) == "lost on fault"
            assert "while buffer 1 is in use" in lineage.durability(2).why
            tidy(lineage)
        lineage.follow([free(1)])
        assert lineage.slice(lineage.live).lost == {}
        assert lineage.durability(2) == "checkpointed"


def test_a_checkpoint_is_kept_that_is_of_use_once_another_is_not_used() -> None:
    """That of 2 keeps those of 1 from use; the earlier of these has the view of 1 come back."""
    points = [
        encode_marker(Checkpoint(id_, at, str(at), (4,), "f4"))
        for id_, at in ((1, 4), (1, 6), (2, 7))
    ]
    made = zeros(1, 1), run(2, 2, 1, writes=[]), run(3, 3, 1, writes=[0]), free(3)
    lineage = lineage_of(*made, points[0], view(5, 1, 5), *points[1:])
    for _ in range(3):
        found = lineage.slice(lineage.live)
        assert (set(found.lost), seqs(found)) == ({2}, [-1, 5])
        tidy(lineage)


@st.composite
def programs(draw: st.DrawFn) -> list[bytes]:
    """Draw a history: buffers made, overwritten, viewed, freed, and requests that failed."""
    parts: list[bytes] = []
    alive: list[int] = []
    next_id = 1
    for seq in range(1, draw(st.integers(1, 40)) + 1):
        what = draw(st.sampled_from(["zeros", "copy", "out", "out", "view", "free", "fail"]))
        if what == "zeros" or not alive:
            parts.append(zeros(seq, next_id))
        elif what == "copy":
            parts.append(copy(seq, draw(st.sampled_from(alive)), made=next_id))
        elif what == "view":
            parts.append(view(seq, draw(st.sampled_from(alive)), next_id))
        elif what == "free":
            gone = draw(st.sampled_from(alive))
            alive.remove(gone)
            parts.append(free(gone))
            continue
        else:
            parts.append(copy(seq, draw(st.sampled_from(alive)), out=draw(st.sampled_from(alive))))
            if what == "fail":
                parts.append(encode_marker(Failed(seq, "OutOfMemory", "")))
            continue
        alive.append(next_id)
        next_id += 1
    return parts


@st.composite
def mixed_programs(draw: st.DrawFn) -> list[bytes]:
    """Draw a history with functions, pure and not, and with checkpoints."""
    parts: list[bytes] = []
    alive: list[int] = []
    for seq in range(1, draw(st.integers(1, 25)) + 1):
        what = draw(st.sampled_from(["zeros", "out", "view", "pure", "run", "free", "keep"]))
        x, y = (draw(st.sampled_from(alive or [0])) for _ in range(2))
        if what == "zeros" or not alive:
            parts.append(zeros(seq, seq))
        elif what == "out":
            parts.append(copy(seq, x, out=y))
            continue
        elif what == "free":
            alive.remove(x)
            parts.append(free(x))
            continue
        elif what == "keep":
            parts.append(encode_marker(Checkpoint(x, seq, str(x), (4,), "float32")))
            continue
        elif what == "view":
            parts.append(view(seq, x, seq))
        else:
            writes = None if what == "pure" else draw(st.sampled_from([[], [0], [1], [0, 1]]))
            parts.append(run(seq, seq, x, y, answer=draw(st.integers(0, 2)), writes=writes))
        alive.append(seq)
    return parts


class Told:
    """What the context tells of the results of functions, some messages after them, or never."""

    def __init__(self, delays: list[int]) -> None:
        self._delays = iter(delays)
        self._waiting: list[tuple[int, int, int, int]] = []

    def sent(self, at: int, data: bytes) -> None:
        """Follow a message."""
        seq, made, _, (tag, *fields), _ = decode(data)
        if tag == RUN and (delay := next(self._delays, None)) is not None:
            refs, (answer,) = fields[:2]
            shared = refs[answer] if answer < len(refs) else 0
            self._waiting.append((at + delay, seq, -made, shared))

    def now(self, at: int) -> list[tuple[int, int]]:
        """Return what is told at this moment."""
        told = [(made, shared) for when, _, made, shared in self._waiting if when == at]
        self._waiting = [one for one in self._waiting if one[0] != at]
        return told

    def first_unanswered(self) -> int | None:
        """Return the first of whose result something is still to be told."""
        return min((seq for _, seq, *_ in self._waiting), default=None)


@pytest.mark.parametrize("long", [0, 20_000])
@settings(max_examples=1000, deadline=None)
@given(mixed_programs(), st.sets(st.integers(0, 30)), st.lists(st.integers(0, 9)))
def test_what_is_not_lost_is_as_it_was(
    long: int, parts: list[bytes], cuts: set[int], delays: list[int]
) -> None:
    """Whatever is a view, checkpointed, written by a function, or cut away by then."""
    whole, again, kept = Machine(), Machine(), {}
    told = Told(delays)
    lineage, uncut = Lineage(told.first_unanswered), Lineage()
    for at, data in enumerate(parts):
        if (raw := decode(data))[0] > 0:
            whole.run(data)
            told.sent(at, data)
        elif raw[0] < 0:
            kept[raw[1], raw[2]] = whole.value(raw[1])
        news = told.now(at)
        for one in (lineage, uncut):
            one.follow([data])
            for id_, shared in news:
                one.tell(id_, (4,), "float32", shared)
        if at in cuts:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(lineage_module, "LONG_HISTORY", long)
                tidy(lineage)
            uncut.read()
    found = lineage.slice(lineage.live)
    again.have(found, kept)
    there = lineage.live - found.lost.keys()
    assert {id_: again.value(id_) for id_ in there} == {id_: whole.value(id_) for id_ in there}
    for id_ in there:
        assert [again.cells[o] is again.cells[id_] for o in there] == [
            whole.cells[o] is whole.cells[id_] for o in there
        ]
    if not kept:
        # A checkpoint may be gone that could not be used when it was cut.
        assert found.lost.keys() <= uncut.slice(uncut.live).lost.keys()


@settings(max_examples=400, deadline=None)
@given(programs(), st.integers(0, 80))
def test_slices_of_random_histories_give_what_the_histories_gave(
    parts: list[bytes], cut_at: int
) -> None:
    whole, failed = Machine(), set()
    for data in parts:
        raw: Any = decode(data)
        if raw[0] == -4:
            failed.add(raw[1])
    for data in parts:
        if decode(data)[0] > 0 and decode(data)[0] not in failed:
            whole.run(data)
    lineage = lineage_of(*parts[:cut_at])
    # A cut between a failed request and the news of its failure is what `unanswered` prevents.
    if cut_at < len(parts) and (decode(parts[cut_at])[0] != -4):
        lineage.read()
        lineage.cut()
    lineage.follow(parts[cut_at:])
    live = lineage.live
    found = lineage.slice(live)
    assert found.lost == {}
    again = Machine()
    for step in found.steps:
        assert not isinstance(step, Restore)
        again.run(step.data)
    assert {id_: again.value(id_) for id_ in live} == {id_: whole.value(id_) for id_ in live}
    for id_ in live:  # views still share memory
        assert [again.cells[o] is again.cells[id_] for o in live] == [
            whole.cells[o] is whole.cells[id_] for o in live
        ]


def test_a_long_history_is_cut_to_what_is_in_use() -> None:
    lineage = Lineage()
    parts = [zeros(1, 1)]
    for seq in range(2, 120_002, 2):
        parts += [copy(seq, 1, made=seq), free(seq)]
    lineage.follow(parts)
    for _ in lineage.tidy():
        pass
    assert len(lineage) == 1
    assert lineage.live == {1}


def test_a_history_of_large_messages_is_cut_sooner() -> None:
    """What is remembered of those that nobody needs is less than 32 MiB."""
    lineage = Lineage()
    most = 0
    for seq in range(1, 10_000):
        lineage.follow([run(seq, seq, nbytes=16 << 10), free(seq)])
        for _ in lineage.tidy():
            pass
        most = max(most, len(lineage._history.steps) + len(lineage._unread) // 2)
    assert most < 2000


def test_a_needed_history_of_large_messages_is_given_up_sooner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lineage_module, "MOST_STEPS", 600)
    for nbytes, durability in (1, "replayable"), (16 << 10, "lost on fault"):
        chain = [run(seq, seq, seq - 1, nbytes=nbytes) for seq in range(2, 30)]
        lineage = lineage_of(zeros(1, 1), *chain)
        tidy(lineage)
        assert lineage.durability(29) == durability


def test_what_shared_memory_is_known_as_long_as_somebody_wants_to() -> None:
    unwritten = {2}
    lineage = Lineage(unwritten=unwritten.copy)
    lineage.follow([zeros(1, 1), view(2, 1, made=2), view(3, 1, made=3), zeros(4, 4), free(2)])
    assert lineage.sharing([2, 3], {1, 3, 4}) == {2: {1, 3}}
    lineage.cut()
    assert lineage.sharing([2], {1, 3, 4}) == {2: {1, 3}}
    unwritten.clear()
    lineage.cut()
    assert lineage.sharing([2], {1, 3, 4}) == {2: set()}


def test_what_is_told_of_a_result_counts_though_its_message_is_read_after_a_cut() -> None:
    lineage = lineage_of(zeros(1, 1))
    lineage.read()
    lineage.tell(2, (4,), "float32", 0)
    lineage.follow([run(2, 2, 1)])
    lineage.cut()
    assert lineage.sharing([2], {1}) == {2: set()}


def test_a_history_is_cut_while_more_comes_than_is_read() -> None:
    """A loop that sends without end does not put it off for ever."""
    lineage = Lineage()
    lineage.follow([zeros(1, 1)])
    seq = 2
    for _ in range(60_000):
        lineage.follow([copy(seq, 1, made=seq), free(seq)])
        seq += 2
    steps = 0
    for _ in lineage.tidy():
        lineage.follow([copy(seq, 1, made=seq), free(seq)] * 500)
        seq, steps = seq + 2, steps + 1
        assert steps < 1000
    assert len(lineage._history.steps) < 1000
    assert lineage.live >= {1}  # which reads the rest


def test_a_history_is_cut_when_something_in_it_may_be_needless(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lineage_module, "UNREAD_LIMIT", 100)
    lineage = Lineage()
    lineage.follow([zeros(1, 1), zeros(2, 2)])
    lengths, cuts = [], []
    for turn in range(9):
        if turn == 7:
            lineage.follow([free(2)])
        first = 1000 * (turn + 1)
        lineage.follow([copy(seq, 1, out=2) for seq in range(first, first + 100)])
        for _ in lineage.tidy():
            pass
        lengths.append(len(lineage))
        cuts.append(lineage._kept_after_cut)
    assert lengths[:7] == [2 + 100 * n for n in range(1, 8)], "each of them changes what is in use"
    assert cuts == [102, 102, 302, 302, 302, 302, 702, 1, 1]
    assert lengths[7] == 1


def test_a_checkpoint_is_given_up_with_the_messages_that_came_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """But that of what none of them has changed is as good as before."""
    monkeypatch.setattr(lineage_module, "MOST_STEPS", 5)
    points = [encode_marker(Checkpoint(id_, 5, str(id_), (4,), "float32")) for id_ in (1, 2, 3)]
    made = [*(zeros(seq, seq) for seq in (1, 2, 3)), view(4, 3, 4)]
    writes = [copy(seq, 2, out=1 if seq % 2 else 4) for seq in range(6, 16)]
    lineage = lineage_of(*made, *points, *writes, free(4))
    tidy(lineage)
    assert [lineage.durability(id_) for id_ in (1, 2, 3)] == [
        "lost on fault",
        "checkpointed",
        "lost on fault",
    ]
    assert "does not reach back" in lineage.durability(1).why
    late = encode_marker(Checkpoint(1, 5, "late", (4,), "float32"))
    lineage.follow([late])
    assert lineage.durability(1) == "lost on fault"
    lineage.follow([encode_marker(Checkpoint(1, 16, "new", (4,), "float32"))])
    assert lineage.durability(1) == "checkpointed"


def test_what_is_lost_in_any_case_needs_no_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage_module, "LONG_HISTORY", 100)
    lineage = lineage_of(zeros(1, 1), zeros(2, 2), copy(3, 2, made=3), run(4, 4, 2, writes=[0]))
    seq = 5
    for _ in range(4):
        lineage.follow([copy(at, 1, out=2) for at in range(seq, seq + 200)])
        tidy(lineage)
        seq += 200
    assert seqs(lineage.slice(lineage.live)) == [1, 2, 3]
    assert len(lineage) == 3
    assert "pure=True" in lineage.durability(2).why
    lineage.follow([copy(seq, 2, made=seq), encode_marker(Checkpoint(2, 3, "old", (4,), "f"))])
    assert set(lineage.slice(lineage.live).lost) == {2, 4, seq}
    point = encode_marker(Checkpoint(2, seq, "new", (4,), "float32"))
    lineage.follow([point, copy(seq + 1, 2, made=seq + 1)])
    for _ in range(3):
        assert set(lineage.slice(lineage.live).lost) == {4, seq}
        tidy(lineage)


def test_what_is_given_up_is_not_taken_for_what_it_was_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lineage_module, "LONG_HISTORY", 0)
    lineage = lineage_of(zeros(1, 1), copy(2, 1, made=2), zeros(3, 3), run(4, 4, 1, writes=[0]))
    for _ in range(3):
        tidy(lineage)
    assert seqs(lineage.slice(lineage.live)) == [1, 2, 3]
    lineage.follow([copy(5, 1, out=3), free(1)])
    tidy(lineage)
    assert set(lineage.slice(lineage.live).lost) == {3, 4}


def test_the_longest_histories_are_given_up_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage_module, "MOST_STEPS", 300)
    writes = [copy(seq, 2, out=1) for seq in range(4, 504)]
    lineage = lineage_of(zeros(1, 1), zeros(2, 2), copy(3, 1, made=3), *writes)
    tidy(lineage)
    assert len(lineage) == 3
    assert [lineage.durability(id_) for id_ in (1, 2, 3)] == [
        "lost on fault",
        "replayable",
        "replayable",
    ]
    assert "does not reach back" in lineage.durability(1).why
    lineage.follow([copy(504, 1, made=504)])
    assert set(lineage.slice(lineage.live).lost) == {1, 504}
    tidy(lineage)
    assert set(lineage.slice(lineage.live).lost) == {1, 504}
