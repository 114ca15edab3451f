"""Which stream a library gets, and what is refused."""

import inspect
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab import System, streams
from accel_lab.backends.host.device import HostBackend, HostStream
from accel_lab.compute.execution.context import Context
from accel_lab.compute.streams import Allocator, HostFn, PerActor, Polled, Pooled, Single, Sync
from accel_lab.compute.streams.allocators import APART, Place, require_allocator
from accel_lab.compute.streams.strategies import Strategy, require_strategy
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import ACTORS

made: Any = streams  # what it is given here is not always what it takes
opened: Any = System
LIBRARIES = [actor.library for actor in ACTORS]


def placed(allocator: Allocator) -> dict[str, Place]:
    found: dict[str, Place] = {}
    for library in LIBRARIES:
        found[library] = allocator.place(library, found)
    return found


def test_per_actor_gives_each_its_own() -> None:
    found = placed(PerActor({"blas": 2}))
    assert found == {name: Place(name, 2 if name == "blas" else 0) for name in LIBRARIES}


def test_single_gives_all_the_same_but_those_that_wait_for_others() -> None:
    for library, place in placed(Single(priority=3)).items():
        assert place == (Place(library) if library in APART else Place("single", 3))


@given(n=st.integers(1, 32), data=st.data())
def test_a_pool_is_used_evenly_and_as_the_hints_say(n: int, data: st.DataObject) -> None:
    libraries = st.sampled_from([one for one in LIBRARIES if one not in APART])
    hints = data.draw(st.dictionaries(libraries, st.integers(0, n - 1)))
    found = placed(Pooled(n, hints, {0: 1}))
    free: dict[str, int] = {}
    for library, (stream, priority) in found.items():
        if library in APART:
            assert (stream, priority) == (library, 0)
            continue
        assert priority == int(stream == "pool 0")
        if library in hints:
            assert stream == f"pool {hints[library]}"
        else:
            free[stream] = free.get(stream, 0) + 1
    counts = [free.get(f"pool {at}", 0) for at in range(n)]
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: made.Pooled(0), "Pooled: n is how many streams there are, 1 to 32, not 0"),
        (lambda: made.Pooled(33), "1 to 32, not 33"),
        (lambda: made.Pooled("two"), "Pooled: n is a count, 0 or more, not 'two'"),
        (lambda: made.Pooled(n=True), "Pooled: n is a count, 0 or more, not True"),
        (
            lambda: made.Pooled(2, {"blas": 2}),
            "hints['blas'] is the number of a stream, 0 to 1",
        ),
        (lambda: made.Pooled(2, {"blas": -1}), "hints['blas'] is a count, 0 or more, not -1"),
        (lambda: made.Pooled(2, {7: 1}), "hints goes by libraries, as 'blas', not 7"),
        (lambda: made.Pooled(2, ["blas"]), "hints is a dict, not ['blas']"),
        (lambda: made.Pooled(2, {"run": 1}), "'run' has a stream of its own always"),
        (lambda: made.Pooled(2, priorities={5: 1}), "the number of a stream, 0 to 1, not 5"),
        (
            lambda: made.Pooled(2, priorities={1: 1.5}),
            "priorities[1] is a count, 0 or more",
        ),
        (lambda: made.Single(-1), "Single: priority is a count, 0 or more, not -1"),
        (lambda: made.Single(101), "Single: priority is 0 to 100, not 101"),
        (lambda: made.PerActor({"blas": "high"}), "priorities['blas'] is a count, 0 or more"),
        (
            lambda: made.PerActor({"run": 1}),
            "the default stream, which takes no priority",
        ),
        (lambda: made.Sync(look_s=-1), "Sync: look_s is a number of seconds above 0, not -1"),
        (lambda: made.Polled(look_s=2), "Polled: look_s is 1 s at most, not 2"),
        (
            lambda: made.Polled(look_s=False),
            "Polled: look_s is a number of seconds above 0",
        ),
        (lambda: made.HostFn(watchdog_s=0), "HostFn: watchdog_s is a number of seconds above 0"),
        (lambda: made.HostFn(watchdog_s=60), "HostFn: watchdog_s is 1 s at most, not 60"),
        (lambda: made.HostFn(look_s="soon"), "HostFn: look_s is a number of seconds above 0"),
        (lambda: opened("host", streams="pooled"), "streams is PerActor(), Single() or Pooled(n)"),
        (lambda: opened("host", streams=Pooled), "streams is PerActor(), Single() or Pooled(n)"),
        (lambda: opened("host", completion="sync"), "completion is Sync(), Polled() or HostFn()"),
        (lambda: opened("host", completion=Single()), "completion is Sync(), Polled() or HostFn()"),
        (
            lambda: opened("host", streams=PerActor({"cublas": 1})),
            "streams names the library 'cublas', and a device has array, ",
        ),
        (lambda: opened("host", streams=Pooled(2, {"cufft": 1})), "the library 'cufft'"),
    ],
)
def test_a_mistake_is_refused_with_what_and_what_was_expected(make: Any, words: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(words)):
        make()


@pytest.mark.parametrize(
    "chosen",
    [PerActor({"fft": 1}), Single(2), Pooled(3, {"blas": 2}, {2: 4}), Sync(), Polled(0), HostFn(1)],
)
def test_each_comes_to_a_context_as_it_was(chosen: Allocator | Strategy) -> None:
    packed = msgspec.msgpack.encode(chosen)
    kind: Any = Allocator if isinstance(chosen, Allocator) else Strategy
    assert msgspec.msgpack.decode(packed, type=kind) == chosen


def test_nothing_is_what_it_was_before_there_was_a_choice() -> None:
    assert require_allocator(None, LIBRARIES) == PerActor()
    assert require_strategy(None) == Polled()
    defaults = inspect.signature(System).parameters
    assert defaults["streams"].default is defaults["completion"].default is None


class Prioritized(HostBackend):
    """A device whose streams have priorities up to 5."""

    made: list[int]

    @property
    def most_priority(self) -> int:
        return 5

    def native_stream(self, priority: int = 0) -> HostStream:
        self.made.append(priority)
        return HostStream()


def test_a_stream_has_as_much_of_its_priority_as_there_is() -> None:
    backend = Prioritized(0)
    backend.made = []
    unused: Any = None
    context = Context(
        backend, [], unused, 1, {}, None, allocator=Pooled(2, {"fft": 1}, {0: 3, 1: 9})
    )
    blas, fft = context.stream("blas"), context.stream("fft")
    assert context.stream("array") is fft, "those without a hint take turns"
    assert context.stream("solver") is blas
    assert [(one.name, one.asked, one.priority) for one in (blas, fft)] == [
        ("pool 0", 3, 3),
        ("pool 1", 9, 5),
    ]
    assert backend.made == [3, 5]
    assert list(context.streams) == ["pool 0", "pool 1"], "each is counted once"
    blas.operations, fft.operations = 2, 3
    assert (context.launched(), context.operations()) == (5, {"pool 0": 2, "pool 1": 3})
