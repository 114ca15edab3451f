"""A message that needs no handler of its own has one that reads, makes and calls."""

from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

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


class Solve(Operation[AccelRef], frozen=True):
    library: ClassVar[str] = "made_up"
    a: AccelRef
    times: int
    b: AccelRef | None = None
    out: AccelRef | None = None


class Fresh(Operation[AccelRef], frozen=True):
    library: ClassVar[str] = "made_up"
    a: AccelRef


class Reads:
    """A launch that says what was asked of it."""

    def __init__(self, message: Operation[Any]) -> None:
        self.message, self.spec, self.calls = message, Spec((), "bool"), list[str]()

    def read(self, ref: Any) -> str:
        self.calls.append(f"read {ref.name}")
        return f"array of {ref.name}"

    def empty(self) -> str:
        self.calls.append("empty")
        return "new"

    def write(self, ref: Any) -> str:
        self.calls.append(f"write {ref.name}")
        return f"array of {ref.name}"


def handled(message: Operation[Any]) -> tuple[list[str], list[Any]]:
    """Return what the default handler does with a launch, and what it gives a backend."""
    given: list[Any] = []
    lib = SimpleNamespace(
        solve=lambda *all_: given.extend(all_), fresh=lambda *all_: given.extend(all_)
    )
    launch: Any = Reads(message)
    default_handler(type(message))(SimpleNamespace(lib=lib), message, launch)
    return launch.calls, given


def named(name: str) -> Any:
    return SimpleNamespace(name=name, storage=object())


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
