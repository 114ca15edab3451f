"""A program of numbers on `host`, replayed there, and where its products are a little different."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from tests.conftest import require
from tests.journal.numerical import ROUNDS, assert_equal, assert_near, run, verdicts


@pytest.fixture(scope="module")
def source() -> Iterator[System]:
    """Record the program, results and all."""
    require("compiler")
    with System("host", devices=1, results="values") as lab:
        run(lab.devices[0])
        yield lab


@pytest.fixture
def again() -> Iterator[System]:
    """Open where it is replayed."""
    with System("host", devices=1, journal=None) as lab:
        yield lab


def add_to_products(off: float) -> None:
    """Have each product of this context be off by so much, relative to itself."""
    from accel_lab.backends.host.blas import library as blas

    right = blas.HostBlas.gemm

    def wrong(self: Any, m: Any, a: Any, b: Any, c: Any, out: Any, alpha: Any, beta: Any) -> None:
        right(self, m, a, b, c, out, alpha, beta)
        out *= np.float32(1 + off)

    blas.HostBlas.gemm = wrong  # type: ignore[method-assign]


def test_it_is_the_same_bit_for_bit(source: System, again: System) -> None:
    assert_equal(source, again)


def test_where_roundings_differ_it_is_within_tolerance(source: System, again: System) -> None:
    again.devices[0].run(add_to_products, 2.0**-22).result()
    assert_near(source, again)
    assert verdicts(source, again)["Gemm", "within tolerance"] == ROUNDS


def test_where_more_than_roundings_differ_it_is_not(source: System, again: System) -> None:
    again.devices[0].run(add_to_products, 2.0**-10).result()
    with pytest.raises(AssertionError, match="differs"):
        assert_near(source, again)
