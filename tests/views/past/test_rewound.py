"""A running system's past: at any moment the views show it, or say what is not recorded of it."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import blas, views
from accel_lab.actor.events import Event
from accel_lab.compute.events.lifecycle import (
    CircuitOpened,
    ContextLost,
    ContextStarted,
    DeviceSuspended,
    GenerationChanged,
)
from accel_lab.compute.events.samples import (
    Block,
    HealthSampled,
    MemorySampled,
    Reading,
    Slice,
    TreeSampled,
    WorkTraced,
)
from accel_lab.compute.events.tree import Node, State
from accel_lab.errors import ContextLost as ContextLostError
from accel_lab.system import System
from accel_lab.views import HealthView, TimelineView, TreeView, VramView
from accel_lab.views.journal_view import JournalView
from accel_lab.views.past.facts import UNTOLD
from accel_lab.views.past.replayable import Replayable
from accel_lab.views.past.rewound import Rewound
from accel_lab.views.scene.observer import Lab, Want, observer_of
from accel_lab.views.scene.scene import Scene
from accel_lab.views.scene.seen import HOLE_S, Seen, Spans
from tests.faults.conftest import settle
from tests.views.past.test_facts import Written


class Live:
    """A source that a test tells what it sees."""

    lab: Lab | None = None
    ended = False

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.scene = Scene()
        self.seen = Seen(self.scene)

    def see(self, *facts: Event) -> None:
        for fact in facts:
            self.scene.add(fact)
            self.seen.take(fact)

    def look(self) -> Scene:
        return self.scene

    def want(self, holder: object, wants: Iterable[Want]) -> None:
        """Want nothing: all is told."""

    def on_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        del callback
        return lambda: None


def told() -> Scene:
    """Return what a journal with a gap tells."""
    scene = Scene()
    scene.unrecorded = dict(UNTOLD) | {"memory": "older entries are gone", "restarts": "gone"}
    scene.tree = actors("not recorded")
    scene.memory = {"gpu0": memory(0.0)}
    return scene


def actors(state: State, *, generation: int | None = None, in_flight: int = 0) -> Node:
    context = Node(
        name="context",
        path="lab/gpu0/context",
        kind="context",
        state=state,
        generation=generation,
        in_flight=in_flight,
    )
    device = Node(
        name="gpu0",
        path="lab/gpu0",
        kind="device",
        state=state,
        generation=generation,
        in_flight=in_flight,
        children=(context,),
    )
    return Node(name="lab", path="lab", kind="system", state="running", children=(device,))


def memory(at: float, *sizes: int) -> MemorySampled:
    blocks = tuple(Block((n,), n, size, "Put", "uint8", (size,)) for n, size in enumerate(sizes))
    return MemorySampled(
        at=at,
        device="gpu0",
        generation=1,
        used_bytes=sum(sizes),
        total_bytes=1 << 30,
        blocks=blocks,
    )


def traced(
    at: float, *done: Slice, running: tuple[Slice, ...] = (), dropped: int = 0
) -> WorkTraced:
    return WorkTraced(
        at=at, device="gpu0", generation=1, done=done, running=running, dropped=dropped
    )


def slice_(seq: int, start: float, end: float | None) -> Slice:
    return Slice(seq, "Gemm", "blas", "kernel", start, end)


def state_of(tree: Node | None) -> tuple[State, int | None]:
    assert tree is not None
    (device,) = tree.children
    return device.state, device.generation


def test_the_work_of_a_moment_is_what_was_done_by_then_and_what_ran() -> None:
    live = Live()
    live.see(traced(10.0), traced(20.0, slice_(1, 11, 12), slice_(2, 13, 15)))
    live.see(traced(30.0, slice_(3, 14, 25), running=(slice_(4, 26, None),)))
    past = Rewound(live)

    def work(moment: float) -> tuple[list[int], list[int]]:
        scene = past.at(moment, told())
        assert "work" not in scene.unrecorded
        running = [(one.seq, one.end) for one in scene.running["gpu0"]]
        assert all(end is None for _, end in running)
        return [one.seq for _, _, one in scene.slices], [seq for seq, _ in running]

    assert work(12.5) == ([1], [])
    assert work(14.5) == ([1], [2, 3])
    assert work(27.0) == ([1, 2, 3], [4])
    assert work(11.5) == ([], [1])


def test_before_anybody_looked_work_is_not_recorded() -> None:
    live = Live()
    past = Rewound(live)
    assert past.at(5.0, told()).unrecorded["work"] == "nobody has looked at the work"
    live.see(traced(10.0))
    assert past.at(9.0, told()).unrecorded["work"].startswith("work was first looked at ")
    assert "work" not in past.at(11.0, told()).unrecorded


def test_the_readings_of_a_moment_are_those_up_to_it() -> None:
    live = Live()
    for at in range(10, 20):
        reading = Reading("process CPU", float(at), "%")
        live.see(HealthSampled(at=float(at), source="notebook", model="", readings=(reading,)))
    past = Rewound(live)
    samples = past.at(13.5, told()).health["notebook"]
    assert [one.at for one in samples] == [10.0, 11.0, 12.0, 13.0]
    for moment in (9.0, 19.0 + HOLE_S + 0.1):
        scene = past.at(moment, told())
        assert (scene.health, scene.unrecorded["health"]) == ({}, "nothing was read then")


def test_the_tree_of_a_moment_is_the_one_that_was_seen_then() -> None:
    live = Live()
    live.see(TreeSampled(at=10.0, root=actors("starting", generation=1)))
    live.see(TreeSampled(at=11.0, root=actors("running", generation=1, in_flight=3)))
    live.see(TreeSampled(at=13.0, root=actors("running", generation=1, in_flight=3)))
    past = Rewound(live)
    assert state_of(past.at(10.5, told()).tree) == ("starting", 1)
    scene = past.at(13.5, told())
    assert state_of(scene.tree) == ("running", 1)
    assert scene.tree is not None
    assert scene.tree.children[0].in_flight == 3
    assert not {"mailbox", "in flight", "restarts"} & scene.unrecorded.keys()
    unseen = past.at(13.0 + HOLE_S + 1, told())
    assert state_of(unseen.tree) == ("not recorded", None)
    assert {"mailbox", "in flight"} <= unseen.unrecorded.keys()


def test_where_nobody_looked_supervision_tells_the_state() -> None:
    live = Live()
    live.see(
        ContextStarted(at=10.0, device="gpu0", generation=1, pid=7, seconds=1.0),
        GenerationChanged(at=20.0, device="gpu0", before=1, after=2),
        ContextStarted(at=21.0, device="gpu0", generation=2, pid=8, seconds=1.0),
        ContextLost(at=22.0, device="gpu0", generation=1, cause="told late", in_flight=0),
        CircuitOpened(at=30.0, device="gpu0", cause="again"),
        ContextLost(at=31.0, device="gpu0", generation=2, cause="again", in_flight=0),
    )
    past = Rewound(live)
    expected = {
        5.0: ("not recorded", None),
        10.5: ("running", 1),
        20.5: ("restarting", 2),
        22.5: ("running", 2),
        31.5: ("circuit open", 2),
    }
    for moment, state in expected.items():
        tree = past.at(moment, told()).tree
        found = state_of(tree)
        assert found[0] == state[0], moment
        if moment < 30:
            assert found[1] == state[1], moment


def test_a_look_from_before_a_fault_is_not_taken_for_one_from_after_it() -> None:
    live = Live()
    live.see(TreeSampled(at=10.0, root=actors("running", generation=1, in_flight=3)))
    live.see(
        GenerationChanged(at=10.5, device="gpu0", before=1, after=2),
        DeviceSuspended(
            at=11.0,
            device="gpu0",
            generation=2,
            buffers=0,
            objects=0,
            nbytes=0,
            lost=(),
            seconds=1.0,
        ),
    )
    past = Rewound(live)
    assert state_of(past.at(10.2, told()).tree) == ("running", 1)
    scene = past.at(10.7, told())
    assert state_of(scene.tree) == ("restarting", 2)
    assert {"mailbox", "in flight"} <= scene.unrecorded.keys()
    assert state_of(past.at(11.5, told()).tree) == ("suspended", 2)


def test_memory_that_the_journal_lacks_is_what_was_seen() -> None:
    live = Live()
    live.see(memory(10.0, 64), memory(11.0, 64, 128))
    past = Rewound(live)
    scene = past.at(11.5, told())
    assert scene.memory["gpu0"].used_bytes == 192
    assert "memory" not in scene.unrecorded
    scene = past.at(20.0, told())
    assert scene.memory["gpu0"].used_bytes == 0
    assert scene.unrecorded["memory"] == "older entries are gone"
    whole = told()
    del whole.unrecorded["memory"]
    assert past.at(11.5, whole).memory is not scene.memory
    assert past.at(11.5, whole).memory["gpu0"].used_bytes == 0, "a whole journal tells each step"


@settings(max_examples=50)
@given(
    spans=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), max_size=12),
    moments=st.lists(st.integers(0, 40), max_size=8),
)
def test_wherever_one_goes_the_work_is_the_same_as_from_the_start(
    spans: list[tuple[int, int]], moments: list[int]
) -> None:
    live = Live()
    live.see(traced(0.0))
    ones = [slice_(n, start, start + length) for n, (start, length) in enumerate(spans)]
    live.see(traced(50.0, *ones))
    past, base = Rewound(live), told()
    for moment in moments:
        here, there = past.at(moment, base), Rewound(live).at(moment, base)
        assert {one.seq for _, _, one in here.slices} == {one.seq for _, _, one in there.slices}
        assert [number for number, *_ in here.slices] == list(range(len(here.slices)))
        assert here.running == there.running
        assert here.traced == there.traced == len(here.slices)


def test_what_was_seen_is_bounded() -> None:
    spans: Spans[int] = Spans(100)
    for number in range(1000):
        spans.add(float(number), number, 1, is_new=True)
    assert spans.at(500.0) is None
    found = spans.at(999.5)
    assert found is not None
    assert found.what == 999
    assert spans.at(900.0) is None
    assert spans.at(950.0) is not None


# A real system.


@pytest.fixture(scope="module")
def worked() -> Iterator[tuple[System, list[float]]]:
    """A watched system: work, a lost context, more work; and when each of these was over."""
    with System("host", name="lab", journal_bytes=60_000) as system:
        gpu = system.devices[0]
        view = views.journal(system)
        watched = [kind(view.source) for kind in (TreeView, TimelineView, VramView, HealthView)]

        def look() -> bool:
            """Look once more; whether all that was sent has been seen at work."""
            for one in watched:
                one.sample()
            seen = {one.seq for _, _, one in observer_of(system).scene.slices}
            return gpu.last_number in seen

        def work(rounds: int) -> float:
            for _ in range(rounds):
                x = gpu.put(np.ones((8, 8)))
                blas.gemm(x, x).result()
                look()
            system.flush()
            assert settle(look)
            return time.time()

        system.ready()
        over = [work(40)]
        with suppress(ContextLostError):
            system.inject("kill").result()
        system.ready()
        over.append(work(60))
        yield system, over


def test_at_any_entry_the_views_show_what_was_so(
    worked: tuple[System, list[float]],
) -> None:
    system, over = worked
    journal: JournalView = views.journal(system)
    assert system.journal.dropped, "the oldest entries are gone, as in a session of hours"
    for at, generation in zip(over, (1, 2), strict=True):
        journal.do_seek(at=at)
        tree = TreeView(journal.source).sample()
        timeline = TimelineView(journal.source).sample()
        health = HealthView(journal.source).sample()
        device = tree["root"]["children"][0]
        assert (device["state"], device["generation"]) == ("running", generation)
        assert "unrecorded" not in tree
        assert "unrecorded" not in timeline
        assert sum(row["count"] for row in timeline["rows"]) >= 40
        assert health["sources"]
    journal.do_live()


def test_a_journal_alone_does_not_know_what_it_lacks() -> None:
    """Entries are gone before the first that is left: nothing tells that the device starts."""
    written = Written()
    written.began()
    for number in range(1, 9):
        written.put(number, number)
    groups = list(written.store.groups())
    later = Written()
    later.store.append(
        [msgspec.structs.replace(one, number=0, generation=2) for one in groups[6:]], {}
    )
    view = JournalView(Replayable(later.past))
    tree = TreeView(view.source)
    state = tree.sample()
    device = state["root"]["children"][0]
    assert (device["state"], device["generation"]) == ("not recorded", 2)
    assert set(state["unrecorded"]) == {"mailbox", "in flight", "restarts"}
    memory = VramView(view.source)
    said = memory.text(memory.sample())
    assert "what was there before" in said
    assert "cpu0: at least 256 B in use" in said
