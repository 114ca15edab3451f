"""The states of a device's connection: what may follow in which, and that all else is refused."""

import threading
from collections.abc import Callable
from typing import Any, cast, get_args

import pytest

from accel_lab.compute.events.tree import State
from accel_lab.compute.requests.answers import Answers, InFlight
from accel_lab.compute.requests.connection import TRANSITIONS, Connection, Event
from accel_lab.compute.requests.send_queue import SendQueue
from accel_lab.compute.wire.link import Link
from accel_lab.errors import CircuitOpen, SystemClosed

STATES: tuple[State, ...] = get_args(State)
EVENTS: tuple[Event, ...] = get_args(Event)
REFUSAL = CircuitOpen("on purpose")


class Wire:
    """The link of a context that nobody has to answer."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed = False

    def send(self, data: bytes, *, idle: bool) -> bool:
        self.sent.append(data)
        return idle

    def flush(self) -> None:
        """Everything is written at once."""

    def close(self) -> None:
        self.closed = True


def connection_in(state: State, *, link: Link | None, filling: Link | None) -> Connection:
    """Return a connection in a state, however it came to it."""
    lock = threading.RLock()
    answers, room = Answers(lambda _, __: None), threading.Condition(lock)
    made = Connection("cpu0", lock, room, answers, SendQueue(None), None)
    made.state, made.link, made.filling = state, link, filling
    return made


# Where the link has to be for an event to concern this context.
CAUSES: dict[Event, tuple[str, Callable[[Connection, Link], Any]]] = {
    "fill": ("nowhere", lambda here, link: here.fill(link, "token")),
    "connect": ("filling", lambda here, link: here.connect(link, 1)),
    "hold": ("link", lambda here, _: here.hold()),
    "release": ("filling", lambda here, link: here.release(link)),
    "rest": ("filling", lambda here, link: here.rest(link)),
    "pause": ("filling", lambda here, link: here.pause(link)),
    "wake": ("nowhere", lambda here, _: here.wake()),
    "lose": ("link", lambda here, link: here.lose(link)),
    "give_up": ("nowhere", lambda here, _: here.give_up(REFUSAL)),
    "half_open": ("nowhere", lambda here, _: here.half_open()),
    "close": ("link", lambda here, link: here.close(link, SystemClosed("on purpose"))),
}


def test_every_event_has_its_method() -> None:
    assert set(CAUSES) == set(EVENTS) == {event for _, event in TRANSITIONS}
    told_of_the_past = {"not recorded"}
    reached = {state for state, _ in TRANSITIONS} | set(TRANSITIONS.values())
    assert reached == set(STATES) - told_of_the_past


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", STATES)
def test_an_event_moves_the_state_as_the_table_says_or_is_refused(
    state: State, event: Event
) -> None:
    """What is refused changes nothing, and whoever asked is told."""
    where, cause = CAUSES[event]
    link = cast("Link", Wire())
    here = connection_in(
        state,
        link=link if where == "link" else None,
        filling=link if where == "filling" else None,
    )
    before = here.generation, here.refusal, here.link, here.filling, here.kept
    answer = cause(here, link)
    after = TRANSITIONS.get((state, event))
    assert here.state == (after or state)
    if after is None:
        assert not answer
        assert (here.generation, here.refusal, here.link, here.filling, here.kept) == before
        assert not cast("Wire", link).closed
    elif event != "release":
        assert answer or isinstance(answer, InFlight)


@pytest.mark.parametrize("event", ["connect", "release", "rest", "pause", "lose", "close"])
@pytest.mark.parametrize("state", STATES)
def test_a_context_that_is_no_longer_the_current_one_moves_nothing(
    state: State, event: Event
) -> None:
    link, other = cast("Link", Wire()), cast("Link", Wire())
    here = connection_in(state, link=link, filling=None)
    assert not CAUSES[event][1](here, other)
    assert here.state == state
    assert here.current_link is link
    assert here.generation == 1


def test_nothing_follows_a_closed_device() -> None:
    assert {event for state, event in TRANSITIONS if state == "stopped"} == {"close"}


def test_only_a_loss_moves_the_generation() -> None:
    for (state, event), after in TRANSITIONS.items():
        where, cause = CAUSES[event]
        link = cast("Link", Wire())
        here = connection_in(
            state,
            link=link if where == "link" else None,
            filling=link if where == "filling" else None,
        )
        cause(here, link)
        assert here.state == after
        assert here.generation == (2 if event == "lose" else 1)


def test_what_is_kept_on_the_host_is_not_lost_with_a_context() -> None:
    link = cast("Link", Wire())
    here = connection_in("starting", link=None, filling=link)
    here.kept = True
    assert here.lose(link) is not None
    assert here.generation == 1
    assert here.kept


def test_what_has_waited_leaves_before_the_link_is_the_devices() -> None:
    """Else it would take along what is freed, and what waits may name that."""
    link = Wire()
    here = connection_in("starting", link=None, filling=cast("Link", link))
    queue = SendQueue(None)
    here = Connection("cpu0", here.lock, here.room, Answers(lambda _, __: None), queue, None)
    queue.waiting[1] = b"one"
    queue.freed.append(7)
    assert here.fill(cast("Link", link), "token")
    assert here.trailer() is None
    assert here.connect(cast("Link", link), 1)
    assert link.sent == [b"one"]
    assert here.trailer() is not None
