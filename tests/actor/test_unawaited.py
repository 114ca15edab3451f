"""Coroutines where nobody awaits them are refused by name."""

import warnings
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest

from accel_lab.actor import Actor, Message, handles
from accel_lab.actor.events import EventStream
from accel_lab.actor.system import ActorSystem
from accel_lab.actor.unawaited import require_plain
from accel_lab.errors import ActorFailed, ActorStopped, InvalidArgument

WAIT = 20.0


class Load(Message[int], frozen=True):
    """Answer five."""


async def five(*_: Any) -> int:
    return 5


async def fives(*_: Any) -> AsyncIterator[int]:
    yield 5


class Caller:
    """Is called as a function is."""

    async def __call__(self) -> int:
        return 5


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that a coroutine was never awaited
        with ActorSystem() as system:
            yield system


@pytest.mark.parametrize("function", [five, fives, partial(five, 1), Caller(), Caller().__call__])
def test_an_async_function_is_one_in_any_dress(function: Any) -> None:
    with pytest.raises(InvalidArgument, match="it is async, and nobody awaits it here: write def"):
        require_plain(function, "it", "write def")


@pytest.mark.parametrize("function", [print, lambda: five, int, partial(int, "5"), Caller])
def test_all_else_is_let_through(function: Any) -> None:
    require_plain(function, "it", "write def")


def test_an_async_handler_is_refused_as_its_class_is_made() -> None:
    with pytest.raises(InvalidArgument, match=r"the handler .*Loader\.load is async"):

        class Loader(Actor):
            @handles(Load)
            async def load(self, _: Load) -> int:
                return 5


def test_an_async_hook_is_refused_as_its_class_is_made() -> None:
    with pytest.raises(InvalidArgument, match=r"the hook Loader\.started is async"):

        class Loader(Actor):
            async def started(self) -> None:  # type: ignore[override]
                """Never run."""


@pytest.mark.parametrize(("made", "kind"), [(five, "coroutine five"), (fives, "generator fives")])
def test_a_coroutine_that_a_handler_returns_fails_its_asker(
    system: ActorSystem, made: Any, kind: str
) -> None:
    class Loader(Actor):
        @handles(Load)
        def load(self, _: Load) -> Any:
            return made()

    with pytest.raises(ActorFailed, match=rf"Loader\.load has returned the .*{kind}\(\)"):
        system.spawn(Loader).ask(Load()).result(WAIT)


def test_a_factory_that_makes_no_actor_says_what_it_makes(system: ActorSystem) -> None:
    made: Any = five
    with pytest.raises(ActorStopped, match=r"/store could not be made: .* the coroutine five\(\)"):
        system.spawn(made, name="store").ask(Load()).result(WAIT)


def test_an_async_callback_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="the callback five is async"):
        EventStream().subscribe(five)
