"""A journal as a past: which facts its entries become."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import blas, views
from accel_lab.compute.events.lifecycle import (
    BuffersRebuilt,
    ContextLost,
    ContextStarted,
    GenerationChanged,
    RequestFailed,
)
from accel_lab.compute.lineage import markers
from accel_lab.compute.lineage.markers import Marker
from accel_lab.compute.message.builtin import Free, Put, Run
from accel_lab.compute.message.operation import Operation
from accel_lab.errors import AccelError, UserCodeError
from accel_lab.journal.journal import Journal
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.libraries.array.library import Reshape
from accel_lab.libraries.memory import Growing, Managed, Shared
from accel_lab.system import System
from accel_lab.views.past.differences import Difference, compare
from accel_lab.views.past.journal import JournalPast
from accel_lab.views.scene.scene import Scene

encode = msgspec.msgpack.Encoder().encode


class Written:
    """A journal that a test writes, one group an entry."""

    def __init__(self, system: str = "lab", session: str = "one") -> None:
        self.store = MemoryStore(None)
        self.session = session
        self.at = 1000.0
        self.generation = 1
        self._position = -1
        facts = {"system": system, "backend": "host", "devices": {"cpu0": "a model"}}
        self.group("", encode(facts | {"started": 999.0, "schema": 1}))

    def group(self, device: str, *parts: bytes) -> None:
        self._position += 1
        self.at += 1.0
        made = Group(
            0,
            self.session,
            device,
            self.at,
            len(parts),
            b"".join(parts),
            self._position,
            len(parts),
            self.generation,
        )
        self.store.append([made], {})

    def mark(self, marker: Marker) -> None:
        self.group("cpu0", encode(marker))

    def began(self, pid: int = 7) -> None:
        self.mark(markers.ContextBegan(self.generation, self.at + 1, pid))

    def lost(self, *in_flight: int, cause: str = "it was killed") -> None:
        self.mark(markers.ContextEnded(self.generation, self.at + 1, list(in_flight)))
        self.mark(markers.Explained(self.generation, cause, 700, "SIGKILL"))
        self.generation += 1

    def message(self, seq: int, kind: type[Operation[Any]], result: int, *fields: Any) -> None:
        self.raw(seq, kind, result, fields, [[4, 4], "float32"])

    def raw(
        self, seq: int, kind: type[Operation[Any]], result: int, fields: Any, spec: Any
    ) -> None:
        tag = kind.__struct_config__.tag
        self.group("cpu0", encode([seq, result, None, [tag, *fields], spec]))

    def put(self, seq: int, result: int) -> None:
        self.message(seq, Put, result, [4, 4], "float32", b"\0" * 64)

    def free(self, *ids: int) -> None:
        self.raw(0, Free, 0, [list(ids)], None)

    @property
    def past(self) -> JournalPast:
        return JournalPast(self.store)

    def scene(self, position: int | None = None) -> Scene:
        past = self.past
        past.player.seek(len(past) if position is None else position)
        return past.player.look()


def facts(scene: Scene) -> list[Any]:
    return [fact for _, fact in scene.facts]


def ids(scene: Scene, device: str = "cpu0") -> list[tuple[int, ...]]:
    return [block.ids for block in scene.memory[device].blocks]


def test_a_session_is_a_tree_with_the_devices_that_it_names() -> None:
    written = Written()
    root = written.scene().tree
    assert root is not None
    assert (root.name, root.kind, root.detail) == ("lab", "system", "host backend, 1 device")
    (device,) = root.children
    assert (device.name, device.state, device.detail) == ("cpu0", "starting", "a model")
    written.began(pid=4242)
    root = written.scene().tree
    assert root is not None
    (device,) = root.children
    assert (device.state, device.generation) == ("running", 1)
    assert device.children[0].detail == "process 4242"


def test_a_context_that_began_took_what_passed_since_it_was_asked_for() -> None:
    written = Written()
    written.began()
    (began,) = facts(written.scene())
    assert began == ContextStarted(device="cpu0", generation=1, pid=7, seconds=3.0, at=1002.0)


def test_buffers_lie_one_after_the_other_until_they_are_freed() -> None:
    written = Written()
    written.began()
    for number in (1, 2, 3):
        written.put(number, number)
    written.free(2)
    memory = written.scene().memory["cpu0"]
    assert [(b.ids, b.address, b.nbytes, b.owner) for b in memory.blocks] == [
        ((1,), 0, 64, "Put #1"),
        ((3,), 64, 64, "Put #3"),
    ]
    assert memory.used_bytes == 128
    assert memory.blocks[0].shape == (4, 4)
    assert ids(written.scene(5)) == [(1,), (2,), (3,)]


def test_a_block_is_of_the_memory_that_its_message_makes() -> None:
    written = Written()
    written.began()
    written.put(1, 1)
    for number, kind in ((2, Managed), (3, Shared)):
        written.message(number, kind, number, [4, 4], "float32")
    written.message(4, Growing, 4, [4, 4], 8, "float32")
    kinds = [block.memory for block in written.scene().memory["cpu0"].blocks]
    assert kinds == ["pool", "managed", "shared", "growing"]


def test_a_view_shares_the_block_of_what_it_shows() -> None:
    written = Written()
    written.began()
    written.put(1, 1)
    written.message(2, Reshape, 2, 1, [16])
    assert ids(written.scene()) == [(1, 2)]
    written.free(1)
    assert ids(written.scene()) == [(2,)]


def test_a_result_of_unknown_shape_is_counted_until_its_digest_tells() -> None:
    written = Written()
    written.began()
    written.raw(1, Put, -1, ([4], "float32", b"\0" * 16), None)
    memory = written.scene().memory["cpu0"]
    assert (memory.unlisted, memory.blocks) == (1, ())
    written.mark(markers.Result(1, "abc", "", (4,), "float32"))
    memory = written.scene().memory["cpu0"]
    assert (memory.unlisted, memory.used_bytes) == (0, 16)


def test_what_overwrites_a_buffer_makes_none() -> None:
    written = Written()
    written.began()
    written.put(1, 1)
    out = blas.Gemm.__struct_fields__.index("out")
    fields: list[Any] = [1, 1, *[None] * (len(blas.Gemm.__struct_fields__) - 2)]
    fields[out] = 1
    written.message(2, blas.Gemm, 1, *fields)
    assert ids(written.scene()) == [(1,)]


def test_a_loss_is_told_with_its_cause_and_leaves_the_blocks_of_before() -> None:
    written = Written()
    written.began()
    written.put(1, 1)
    written.put(2, 2)
    written.lost(2)
    scene = written.scene()
    assert [block.ids for block in scene.lost["cpu0"][1]] == [(1,), (2,)]
    assert scene.memory["cpu0"].blocks == ()
    assert facts(scene)[1:] == [
        ContextLost(
            device="cpu0",
            generation=1,
            cause="it was killed",
            in_flight=1,
            code=700,
            name="SIGKILL",
            at=1006.0,
        ),
        GenerationChanged(device="cpu0", before=1, after=2, at=1006.0),
    ]
    assert scene.tree is not None
    (device,) = scene.tree.children
    assert (device.state, device.restarts, device.generation) == ("restarting", 1, 2)
    assert device.detail == "a model · last loss: it was killed"


def test_a_context_that_ended_with_its_system_was_not_lost() -> None:
    written = Written()
    written.began()
    written.mark(markers.ContextEnded(1, 1003.0, []))
    scene = written.scene()
    assert len(facts(scene)) == 1
    assert list(written.past.faults) == []
    assert scene.tree is not None
    assert scene.tree.children[0].state == "stopped"


def test_a_generation_whose_loss_nobody_explained_still_changed() -> None:
    written = Written()
    written.began()
    written.mark(markers.ContextEnded(1, 1003.0, []))
    written.generation = 2
    written.began()
    assert [type(fact) for fact in facts(written.scene())] == [
        ContextStarted,
        GenerationChanged,
        ContextStarted,
    ]


def test_buffers_that_were_made_again_are_back() -> None:
    written = Written()
    written.began()
    for number in (1, 2, 3):
        written.put(number, number)
    written.lost(3)
    written.free(2)
    written.began()
    written.mark(markers.Rebuilt(2, 1010.0, [1], 1, 0.5, [3]))
    scene = written.scene()
    assert ids(scene) == [(1,)]
    assert facts(scene)[-1] == BuffersRebuilt(
        device="cpu0",
        generation=2,
        buffers=1,
        lost=1,
        messages=1,
        requests=(3,),
        seconds=0.5,
        at=1010.0,
    )


def test_a_failure_is_named_as_what_failed_and_its_buffer_is_not_there() -> None:
    written = Written()
    written.began()
    written.put(1, 1)
    written.mark(markers.Failed(1, "OutOfMemory", "no room"))
    scene = written.scene()
    assert ids(scene) == []
    failed = facts(scene)[-1]
    assert isinstance(failed, RequestFailed)
    assert (failed.message, failed.error) == ("Put #1", "OutOfMemory: no room")
    assert list(written.past.faults) == [3]
    assert written.past.lines(range(2, 4))[0].outcome == "failed: OutOfMemory: no room"
    assert written.past.lines(range(3, 4))[0].what == "Put #1 failed"


@pytest.mark.parametrize("kind", ["Cancelled", "Interrupted"])
def test_what_was_taken_back_is_no_failure(kind: str) -> None:
    written = Written()
    written.began()
    written.put(1, 1)
    written.mark(markers.Failed(1, kind, "it was taken back"))
    assert len(facts(written.scene())) == 1
    assert list(written.past.faults) == []


def test_a_failure_after_a_loss_is_named_too() -> None:
    written = Written()
    written.began()
    written.put(1, 1)
    written.lost(1)
    written.mark(markers.Failed(1, "ContextLost", "gone"))
    failed = facts(written.scene())[-1]
    assert isinstance(failed, RequestFailed)
    assert failed.message == "Put #1"


def test_in_flight_is_what_is_answered_later() -> None:
    written = Written()
    written.began()
    for number in (1, 2, 3):
        written.put(number, number)
    written.mark(markers.Result(2, "abc", "", (4, 4), "float32"))
    written.lost(3)

    def in_flight(position: int) -> int:
        tree = written.scene(position).tree
        assert tree is not None
        return tree.children[0].in_flight

    assert [in_flight(position) for position in range(2, 9)] == [0, 0, 1, 2, 1, 0, 0]


def test_libraries_are_those_that_were_sent_something() -> None:
    written = Written()
    written.began()
    written.put(1, 1)
    tree = written.scene().tree
    assert tree is not None
    assert [node.path for node in tree.walk()][-1] == "lab/cpu0/context/upload"


def test_of_several_sessions_the_last_is_shown_and_the_others_memory_is_not() -> None:
    first, second = Written(), Written("other", session="two")
    first.began()
    first.put(1, 1)
    second.at = 2000.0
    second.group("gpu9", encode(markers.ContextBegan(1, 2001.0, 9)))
    for group in second.store.groups():
        first.store.append([msgspec.structs.replace(group, number=0)], {})
    scene = first.scene()
    assert scene.tree is not None
    assert scene.tree.name == "other"
    assert ids(scene) == []
    assert ids(first.scene(3)) == [(1,)]


def test_entries_of_an_older_version_with_fewer_fields_are_read() -> None:
    written = Written()
    written.began()
    written.message(1, blas.Gemm, 1, 8, 9)
    assert ids(written.scene()) == [(1,)]


def test_what_is_written_later_is_read_later() -> None:
    written = Written()
    past = written.past
    assert len(past) == 1
    written.began()
    written.put(1, 1)
    past.read()
    assert len(past) == 3
    past.player.seek(3)
    assert ids(past.player.look()) == [(1,)]


def test_a_damaged_journal_is_read_up_to_the_damage() -> None:
    written = Written()
    written.began()
    written.group("cpu0", b"\xc1")
    written.put(1, 1)
    past = written.past
    assert len(past) == 2
    assert "does not decode" in past.damage


STEPS = st.lists(st.sampled_from(["put", "free", "lose", "fail", "rebuild", "view"]), max_size=25)


@settings(max_examples=40)
@given(steps=STEPS, moves=st.lists(st.integers(0, 40), max_size=8))
def test_wherever_one_goes_the_scene_is_the_same_as_from_the_start(
    steps: list[str], moves: list[int]
) -> None:
    written = Written()
    written.began()
    last = 0
    for step in steps:
        if step == "put":
            last += 1
            written.put(last, last)
        elif step == "free":
            written.free(max(1, last - 1))
        elif step == "lose":
            written.lost(last)
            written.began()
        elif step == "fail":
            written.mark(markers.Failed(last, "LibraryError", "no"))
        elif step == "rebuild":
            written.mark(markers.Rebuilt(written.generation, written.at, [last], 1, 0.1))
        else:
            last += 1
            written.message(last, Reshape, last, max(1, last - 1), [16])
    past = written.past
    for move in moves:
        past.player.seek(move)
        position = past.player.position
        fold = past.fold()
        for number in range(position):
            fold.advance(range(number, number + 1))
        here, there = past.player.look(), fold.scene
        assert facts(here) == facts(there)
        assert here.lost == there.lost
        assert here.tree == there.tree
        shown = {name: memory.blocks for name, memory in here.memory.items()}
        assert shown == {name: memory.blocks for name, memory in there.memory.items()}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[System, Path]]:
    """A real session, its journal on disk."""
    path = tmp_path_factory.mktemp("journal") / "session.db"
    system = System("host", name="session", journal=path, results="digests")
    device = system.devices[0]
    x = device.put(np.ones((4, 4), np.float32))
    kept = [x, device.ask(blas.Gemm(x, x)).result()]
    with pytest.raises(AccelError):
        system.inject("kill").result()
    system.ready()
    system.events.wait_for(BuffersRebuilt, 20, since=0)  # it is in the journal by then
    kept.append(device.put(np.ones((2, 2), np.float32)))
    system.flush()
    yield system, path
    del kept
    system.close()


def test_a_real_session_is_seen_as_it_was(session: tuple[System, Path]) -> None:
    system, path = session
    past = JournalPast(Journal.open(path).store)
    scene = past.player.look()
    live = system.tree()
    assert scene.tree is not None
    assert scene.tree.name == live.name
    (mine,), (real,) = scene.tree.children, live.children
    assert (mine.name, mine.state, mine.generation) == (real.name, real.state, real.generation)
    assert mine.restarts == real.restarts
    assert mine.children[0].detail == real.children[0].detail
    told = [type(fact) for fact in facts(scene)]
    assert told.index(ContextLost) < told.index(ContextStarted, 1)
    assert {GenerationChanged, RequestFailed} <= set(told)
    assert "SIGKILL" in next(f.cause for f in facts(scene) if isinstance(f, ContextLost))
    assert scene.memory["cpu0"].used_bytes >= 16
    assert views.tree(past.player).sample()["root"]["name"] == "session"


def run(*, other: str = "") -> Written:
    written = Written()
    written.began()
    written.put(1, 1)
    written.message(2, blas.Gemm, 2, 1, 1)
    written.mark(markers.Result(2, "differs" if other == "result" else "same", "", (4, 4), "f"))
    if other == "name":
        written.put(3, 3)
    elif other == "shape":
        written.raw(3, blas.Gemm, 3, (1, 1), [[8, 8], "float32"])
    elif other != "end":
        written.message(3, blas.Gemm, 3, 1, 1)
    return written


def test_runs_alike_have_no_difference() -> None:
    found = compare(run().past, run().past)
    assert (found.messages, found.undigested, found.found) == (3, 2, ())


@pytest.mark.parametrize(
    ("other", "why", "here", "messages"),
    [
        ("name", "another message", 5, 2),
        ("shape", "another shape", 5, 2),
        ("result", "another result", 3, 1),
        ("end", "the other ends before it", 5, 2),
    ],
)
def test_the_first_difference_is_found(other: str, why: str, here: int, messages: int) -> None:
    found = compare(run().past, run(other=other).past)
    (difference,) = found.found
    assert (difference.why, difference.here, found.messages) == (why, here, messages)
    here_is, there_is = {
        "name": ("Gemm(", "Put("),
        "result": ("digest same: Gemm(", "digest differs: Gemm("),
        "end": ("Gemm(", ""),
    }.get(other, ("Gemm(", "Gemm("))
    assert difference.what.startswith(here_is)
    assert difference.other.startswith(there_is)


def test_a_run_that_ended_is_compared_to_its_last_message() -> None:
    found = compare(run(other="end").past, run().past)
    assert found.found == (
        Difference("cpu0", "it ends before the other", 3, 5, "", found.found[0].other),
    )


def test_what_functions_made_is_theirs_and_what_failed_made_nothing() -> None:
    written = Written()
    written.began()
    written.put(1, 1)
    for seq, called in ((2, "step"), (3, "fails"), (4, "both"), (5, "")):
        fields = ([1], b"", False, None, None, called)
        written.raw(seq, Run, -seq, fields, None)
    written.mark(markers.Result(2, "digest", "", (4,), "float32"))
    written.mark(markers.Failed(3, "UserCodeError", "ValueError: no"))
    written.mark(markers.Arrays(4, [100, 101]))
    written.mark(markers.Failed(5, "UserCodeError", "ValueError: no"))
    memory = written.past.player.look().memory["cpu0"]
    assert [(block.ids, block.owner) for block in memory.blocks] == [
        ((1,), "Put #1"),
        ((2,), "step #2"),
    ]
    assert memory.unlisted == 2


def test_the_past_has_the_owners_that_the_system_had() -> None:
    def step(x: Any) -> Any:
        return x + 1

    def fail(x: Any) -> Any:
        raise ValueError(x.shape)

    with System("host", results="digests") as lab:
        device = lab.devices[0]
        x = device.put(np.ones(4))
        kept = [device.run(step, x), device.run(fail, x)]
        kept[0].result()
        with pytest.raises(UserCodeError):
            kept[1].result()
        lab.flush()
        now = str(views.vram(lab))
        then = JournalPast(lab.journal.store).player.look().memory["cpu0"]
        assert [block.owner for block in then.blocks] == ["Put #1", f"step #{kept[0].id}"]
        assert all(block.owner in now for block in then.blocks)
        assert then.unlisted == 0
