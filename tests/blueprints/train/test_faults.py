"""What counts as a fault, and what of a lost step nobody is told."""

import numpy as np
import pytest

from accel_lab import System
from accel_lab.blueprints.train.faults import Hearing, is_fault
from accel_lab.errors import (
    AccelError,
    CircuitOpen,
    ContextLost,
    DependencyFailed,
    InvalidArgument,
    OutOfBounds,
    StaleRef,
)
from accel_lab.libraries import dnn
from accel_lab.libraries.collective import CollectiveAborted, CommunicatorLost


def because(error: AccelError, *causes: AccelError) -> AccelError:
    first = error
    for cause in causes:
        error.__cause__ = error = cause
    return first


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (ContextLost("gone"), True),
        (StaleRef("lost"), True),
        (CommunicatorLost("left"), True),
        (CollectiveAborted("late"), True),
        (because(DependencyFailed("no"), CollectiveAborted("no"), ContextLost("gone")), True),
        (because(DependencyFailed("no"), CollectiveAborted("no"), OutOfBounds("no")), False),
        (because(DependencyFailed("no"), InvalidArgument("no")), False),
        (CircuitOpen("too often"), False),
        (OutOfBounds("no"), False),
    ],
)
def test_a_fault_is_what_comes_of_a_lost_context(error: AccelError, *, wanted: bool) -> None:
    assert is_fault(error) == wanted


def test_failures_that_are_heard_are_told_to_nobody() -> None:
    with System("host", 1) as lab:
        (device,) = lab.devices
        table, wrong = device.put(np.ones((2, 3))), device.put(np.array([7]))
        dnn.embedding(table, wrong)
        hear = Hearing(lab.devices)  # from now on
        for _ in range(3):
            dnn.embedding(table, wrong)
            hear()
        device.get(table).result()
        with pytest.raises(OutOfBounds):  # one, that of before
            lab.check()
        lab.check()
