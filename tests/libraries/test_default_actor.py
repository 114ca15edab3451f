"""A message that needs no handler of its own has one that reads, makes and calls."""

from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.launch import Launch, LibraryActor, handled_by, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.libraries import ACTORS
from accel_lab.libraries.authoring.default_actor import (
    DefaultActor,
    actor_of,
    complete,
    default_handler,
)
from accel_lab.libraries.authoring.options import Factor


class Solve(Operation[AccelRef], frozen=True):
    library: ClassVar[str] = "made_up"
    a: AccelRef
    times: int
    b: AccelRef | None = None
    out: AccelRef | None = None


class Fresh(Operation[AccelRef], frozen=True):
    library: ClassVar[str] = "made_up"
    a: AccelRef


class Sum(Operation[AccelRef], frozen=True):
    library: ClassVar[str] = "made_up"
    scaled_by: ClassVar = {"y": "beta"}
    x: AccelRef
    y: AccelRef | None = None
    alpha: Factor = 1.0
    beta: Factor | None = None
    shift: Factor | None = None
    out: AccelRef | None = None


class Part(Operation[AccelRef], frozen=True):
    library: ClassVar[str] = "made_up"
    aliased: ClassVar[str] = "x"
    x: AccelRef
    first: int

    def infer(self) -> Spec:
        return Spec((7,), "float64")


class Reads:
    """A launch that says what was asked of it."""

    def __init__(self, message: Operation[Any], *, comes_again: bool = False) -> None:
        self.message, self.spec, self.calls = message, Spec((), "bool"), list[str]()
        self.comes_again, self.prepared = comes_again, list[Any]()

    def read(self, ref: Any) -> str:
        self.calls.append(f"read {ref.name}")
        return f"array of {ref.name}"

    def empty(self) -> str:
        self.calls.append("empty")
        return "new"

    def write(self, ref: Any) -> str:
        self.calls.append(f"write {ref.name}")
        return f"array of {ref.name}"

    def view(self, *given: Any) -> None:
        self.calls.append(f"view {given[1:]}")

    def prepare(self, call: Any, *, reads: Any, writes: Any) -> None:
        self.prepared = [call, [ref.name for ref in reads], [ref.name for ref in writes]]


def handled(message: Operation[Any]) -> tuple[list[str], list[Any]]:
    """Return what the default handler does with a launch, and what it gives a backend."""
    given: list[Any] = []
    called = SimpleNamespace(**dict.fromkeys(("solve", "fresh", "sum"), lambda *m: given.extend(m)))
    launch: Any = Reads(message)
    default_handler(type(message))(SimpleNamespace(lib=called), message, launch)
    return launch.calls, given


def named(name: str) -> Any:
    return SimpleNamespace(name=name, storage=object(), dtype="complex64")


def test_operands_are_read_and_the_output_is_new() -> None:
    message = Solve(named("a"), 3, named("b"))
    calls, given = handled(message)
    assert calls == ["empty", "read a", "read b"]
    assert given == [message, "array of a", "array of b", "new"]


def test_an_operand_that_is_not_there_is_none() -> None:
    message = Solve(named("a"), 3)
    assert handled(message)[1] == [message, "array of a", None, "new"]


def test_out_is_written() -> None:
    message = Solve(named("a"), 3, out=named("o"))
    calls, given = handled(message)
    assert calls == ["write o", "read a"]
    assert given[-1] == "array of o"


def test_a_message_without_out_makes_a_buffer() -> None:
    message = Fresh(named("a"))
    assert handled(message) == (["empty", "read a"], [message, "array of a", "new"])


def test_factors_come_as_numbers_of_the_dtype_and_what_they_make_zero_is_not_read() -> None:
    number: Any = [1.0, 2.0]  # as a complex one arrives
    whole = Sum(named("x"), named("y"), number, 3, 4)
    calls, given = handled(whole)
    assert calls == ["empty", "read x", "read y"]
    assert given == [whole, "array of x", "array of y", "new", 1 + 2j, 3.0, 4.0]
    assert [type(one) for one in given[-3:]] == [complex, float, float]
    for one in (Sum(named("x"), named("y"), 1, 0), Sum(named("x"), None, 1)):
        calls, given = handled(one)
        assert calls == ["empty", "read x"]
        assert given == [one, "array of x", None, "new", 1.0, 0, None]


def test_what_writes_in_place_again_is_prepared_if_the_backend_can() -> None:
    ready = object()
    message = Sum(named("x"), None, 2, out=named("o"))
    for again, comes_again, expected in (
        ({"sum_again": lambda *_: ready}, True, [ready, ["x"], ["o"]]),
        ({"sum_again": lambda *_: ready}, False, []),
        ({}, True, []),
    ):
        launch: Any = Reads(message, comes_again=comes_again)
        lib = SimpleNamespace(sum=lambda *_: None, **again)
        default_handler(Sum)(SimpleNamespace(lib=lib), message, launch)
        assert launch.prepared == expected


def test_a_view_is_what_the_backend_makes_of_the_operands_array() -> None:
    x = Buffer(1)
    x.array = np.arange(3)
    message, launch = Part(x, 2), Reads(Part(x, 2))
    lib = SimpleNamespace(part=lambda m, x: x[m.first])
    default_handler(Part)(SimpleNamespace(lib=lib), message, launch)  # type: ignore[arg-type]
    assert launch.calls == ["view (np.int64(2), (7,), 'float64')"]


class Own(LibraryActor):
    library = "made_up"

    @handles(Solve)
    def mine(self, m: Solve, launch: Launch) -> None:
        """Do more."""


def test_an_actors_own_handlers_stay() -> None:
    complete(Own, [Solve, Fresh])
    assert handled_by(Own) == {Solve: "mine", Fresh: "fresh"}


def test_a_library_without_an_actor_has_one_that_counts_what_the_backend_counts() -> None:
    actor = actor_of("made_up_too", ModuleType("accel_lab.libraries.made_up_too"))
    assert issubclass(actor, DefaultActor)
    assert (actor.__name__, actor.library) == ("MadeUpTooActor", "made_up_too")
    made: Any = SimpleNamespace(lib=SimpleNamespace(statistics=lambda: {"plans": 3}))
    assert DefaultActor.statistics(made) == {"plans": 3}


@pytest.mark.parametrize("library", ["fft", "array", "blas"])
def test_every_message_has_one_handler(library: str) -> None:
    (actor,) = [one for one in ACTORS if one.library == library]
    names: Mapping[Any, str] = handled_by(actor)
    assert len(set(names.values())) == len(names) >= 3
