"""Buffers that are freed before their last handle is gone."""

import numpy as np
import pytest

from accel_lab import System, array, blas
from accel_lab.errors import ContextLost, StaleRef
from tests.faults.conftest import settle

ONES = np.ones((256, 256))


def used(lab: System) -> int:
    """Return what the first device's context holds, in bytes."""
    found = lab.look(memory=True, work=False)
    lab.devices[0].ping().result()
    return next((seen.used_bytes for seen in reversed(found) if hasattr(seen, "used_bytes")), -1)


def test_a_freed_buffer_is_gone_and_says_so() -> None:
    with System("host", devices=1) as lab:
        gpu = lab.devices[0]
        a = gpu.put(ONES)
        b = blas.gemm(a, a)
        row = array.slice(a, np.s_[0])
        assert settle(lambda: used(lab) == 2 * ONES.nbytes)
        a.free()
        a.free()  # once more is as once
        with pytest.raises(StaleRef, match="was freed"):
            blas.gemm(a, b)
        with pytest.raises(StaleRef, match="was freed"):
            gpu.get(a)
        assert repr(a) == f"<AccelRef float64[256, 256] on cpu0, buffer {a.id}, freed>"
        assert a.is_valid is False
        np.testing.assert_array_equal(gpu.get(row).result(), ONES[0])  # a view keeps the memory
        row.free()
        assert settle(lambda: used(lab) == ONES.nbytes)
        with pytest.raises(ContextLost):
            lab.inject("kill").result()
        np.testing.assert_array_equal(gpu.get(b).result(), 256 * ONES)
        with pytest.raises(StaleRef, match="was freed"):
            gpu.get(a)
