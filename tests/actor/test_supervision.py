"""Strategies, back-off and the restart window, by themselves."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab.actor.clock import FakeClock
from accel_lab.actor.supervision import (
    AllForOne,
    Backoff,
    OneForOne,
    RestartWindow,
    RestForOne,
    as_accel_error,
    directive_of,
)
from accel_lab.errors import ActorFailed, Directive, InvalidArgument, LibraryError


def test_directive_comes_from_the_error_class() -> None:
    assert directive_of(InvalidArgument("x")) is Directive.RESUME
    assert directive_of(LibraryError("x")) is Directive.RESTART


def test_foreign_exception_counts_as_actor_failed() -> None:
    original = ZeroDivisionError("division by zero")
    error = as_accel_error(original)
    assert isinstance(error, ActorFailed)
    assert error.__cause__ is original
    assert "ZeroDivisionError: division by zero" in str(error)
    assert directive_of(original) is Directive.RESTART


def test_first_restart_has_no_delay_then_delays_double_up_to_the_cap() -> None:
    backoff = Backoff(jitter=0.0)
    assert [backoff.delay_s(attempt) for attempt in range(1, 8)] == [
        0.0,
        0.1,
        0.2,
        0.4,
        0.8,
        1.6,
        2.0,
    ]


def test_back_off_of_a_very_late_attempt_is_the_cap() -> None:
    assert Backoff(jitter=0.0).delay_s(100_000) == 2.0


def test_jitter_stays_in_its_band() -> None:
    backoff = Backoff(base_s=1.0, jitter=0.1)
    assert backoff.delay_s(2, lambda: 0.0) == pytest.approx(0.9)
    assert backoff.delay_s(2, lambda: 0.5) == pytest.approx(1.0)
    assert backoff.delay_s(2, lambda: 1.0) == pytest.approx(1.1)


def test_jitter_takes_no_number_of_the_users_sequence() -> None:
    before = random.getstate()
    assert Backoff().delay_s(3) != Backoff().delay_s(3)
    assert random.getstate() == before


def test_affected_children_keep_their_order() -> None:
    children = ["a", "b", "c"]
    assert OneForOne().affected(children, "b") == ["b"]
    assert AllForOne().affected(children, "b") == ["a", "b", "c"]
    assert RestForOne().affected(children, "b") == ["b", "c"]


def test_strategies_are_frozen_values() -> None:
    assert OneForOne(max_restarts=2) == OneForOne(max_restarts=2)
    assert OneForOne() != OneForOne(within_s=1.0)
    with pytest.raises(AttributeError):
        OneForOne().max_restarts = 4  # type: ignore[misc]
    with pytest.raises(ValueError, match="STOP or ESCALATE"):
        OneForOne(exhausted=Directive.RESUME)


def test_window_slides() -> None:
    clock = FakeClock()
    window = RestartWindow(2, 10.0, clock)
    assert window.record() == 1
    clock.advance(6.0)
    assert window.record() == 2
    assert window.record() is None
    clock.advance(4.0)  # the first is now 10 s old
    assert window.count == 1
    assert window.record() == 2
    window.reset()
    assert window.record() == 1


@settings(deadline=None, print_blob=True)
@given(
    st.integers(0, 4),
    st.integers(1, 20),
    st.lists(st.integers(0, 12), max_size=40),
)
def test_window_never_admits_more_than_its_budget_in_any_span(
    max_restarts: int, within_s: int, pauses: list[int]
) -> None:
    """Whole seconds, so that the plain model's sums are exact."""
    clock = FakeClock()
    window = RestartWindow(max_restarts, float(within_s), clock)
    admitted: list[float] = []
    for pause in pauses:
        clock.advance(float(pause))
        recent = [t for t in admitted if clock.now() - t < within_s]
        expected = len(recent) + 1 if len(recent) < max_restarts else None
        assert window.record() == expected
        if expected is not None:
            admitted.append(clock.now())
