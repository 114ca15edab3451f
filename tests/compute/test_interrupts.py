"""Interrupting user code: when it arrives, and what keeps it back."""

import signal
from collections.abc import Iterator

import pytest

from accel_lab.compute.interrupts import SIGNAL, Interrupts


@pytest.fixture
def interrupts() -> Iterator[Interrupts]:
    before = signal.getsignal(SIGNAL)
    made = Interrupts()
    made.serve()
    yield made
    signal.signal(SIGNAL, before)


def test_it_ends_user_code_and_nothing_else(interrupts: Interrupts) -> None:
    interrupts.interrupt()
    with pytest.raises(KeyboardInterrupt), interrupts:
        interrupts.interrupt()
    interrupts.interrupt()


def test_a_shield_lets_our_own_work_end_first(interrupts: Interrupts) -> None:
    done = []

    def code() -> None:
        with interrupts.shield():
            interrupts.interrupt()
            done.append("our work")
        done.append("more of the user's")

    with pytest.raises(KeyboardInterrupt), interrupts:
        code()
    assert done == ["our work"]
    with interrupts, interrupts.shield():  # nothing is left of it
        pass
