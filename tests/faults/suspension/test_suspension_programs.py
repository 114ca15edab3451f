"""Programs compute the same wherever their device is suspended."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accel_lab import AccelRef, Device, System, blas
from tests.faults.suspension.suspended import WAIT


@pytest.fixture(scope="module")
def steady() -> Iterator[Device]:
    with System("host", max_restarts=1000) as lab:
        yield lab.devices[0]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "scale", "in place", "axpy", "view", "turn", "drop", "suspend"]),
        st.integers(0, 5),
        st.integers(0, 5),
    ),
    max_size=25,
)


def do(what: str, i: int, j: int, ours: dict[int, AccelRef], theirs: dict[int, Any]) -> None:
    """Do the same on both sides; what cannot be done is left out."""
    x, y = ours[i], theirs[i]
    match what:
        case "scale":
            ours[j], theirs[j] = blas.scal(x, 0.5), y * 0.5
        case "in place":
            blas.scal(x, 2.0, out=x)
            y *= 2.0
        case "axpy" if j in ours and y.shape == theirs[j].shape:
            ours[i], theirs[i] = blas.axpy(x, ours[j]), y + theirs[j]
        case "view" if y.shape[0] > 1:
            ours[j], theirs[j] = x[1:, ::-1], y[1:, ::-1]
        case "turn":
            ours[j], theirs[j] = x.T, y.T
        case "drop":
            del ours[i], theirs[i]


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
def test_a_program_computes_what_numpy_does_wherever_it_is_suspended(
    steady: Device, steps: list[tuple[str, int, int]]
) -> None:
    ours: dict[int, AccelRef] = {}
    theirs: dict[int, Any] = {}
    for place, (what, i, j) in enumerate(steps):
        if what == "suspend":
            steady.suspend()
        elif what == "put" or i not in ours:
            value = np.arange(12.0).reshape(3, 4) + place
            ours[i], theirs[i] = steady.put(value), value
        else:
            do(what, i, j, ours, theirs)
    steady.suspend()
    for i, ref in ours.items():
        np.testing.assert_array_equal(ref.get(timeout_s=WAIT), theirs[i])
