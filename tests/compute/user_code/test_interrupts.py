"""Interrupting user code: when it arrives, and what keeps it back."""

import signal
from collections.abc import Iterator

import pytest

from accel_lab.compute.user_code.interrupts import SIGNAL, Interrupts


@pytest.fixture
def interrupts() -> Iterator[Interrupts]:
    before = signal.getsignal(SIGNAL)
    made = Interrupts()
    made.serve()
    yield made
    signal.signal(SIGNAL, before)


def test_it_ends_user_code_and_nothing_else(interrupts: Interrupts) -> None:
    interrupts.interrupt(0)
    with pytest.raises(KeyboardInterrupt), interrupts.of(1):
        interrupts.interrupt(1)
    interrupts.interrupt(1)


def test_it_ends_code_that_has_not_begun(interrupts: Interrupts) -> None:
    """What comes between a look at the queue and the code would be lost."""
    interrupts.of(2).interrupt(2)
    with pytest.raises(KeyboardInterrupt), interrupts:
        raise AssertionError
    with interrupts:  # only once
        pass


def test_it_does_not_end_what_runs_instead(interrupts: Interrupts) -> None:
    interrupts.of(1).interrupt(1)
    with interrupts.of(2):
        interrupts.interrupt(1)


def test_a_shield_lets_our_own_work_end_first(interrupts: Interrupts) -> None:
    done = []

    def code() -> None:
        with interrupts.shield():
            interrupts.interrupt(1)
            done.append("our work")
        done.append("more of the user's")

    with pytest.raises(KeyboardInterrupt), interrupts.of(1):
        code()
    assert done == ["our work"]
    with interrupts, interrupts.shield():  # nothing is left of it
        pass
