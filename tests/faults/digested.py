"""Buffers that come back, compared with their recorded digests: the test of every backend."""

import os
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, System, array, blas, fft, rng
from accel_lab.compute.actors.fault import Fault
from accel_lab.compute.events.lifecycle import BuffersRebuilt
from accel_lab.errors import ContextLost, StaleRef

WAIT_S = 60.0
A = np.random.default_rng(0).standard_normal((64, 64))


def whose(x: Any) -> Any:
    """Return what is different in each context, whatever library `x` is of."""
    return 0.0 * x + os.getpid()


def assert_given_up(backend: str, fault: Fault) -> None:
    """Lose a context twice: what is as it was recorded comes back, and nothing else."""
    with System(backend, devices=1, recover="replay", results="digests") as lab:
        (device,) = lab.devices
        a = device.put(A)
        product, view = blas.gemm(a, a), array.transpose(a)
        blas.scal(a, 2.0, out=a)
        drawn = rng.normal(device, (64, 64), seed=7)
        same = [product, a, view, drawn, fft.r2c(drawn), blas.nrm2(drawn)]
        changing = device.run(whose, a, pure=True)
        after = blas.scal(changing, 2.0)
        lab.flush()
        before = [ref.get(timeout_s=WAIT_S) for ref in same]
        np.testing.assert_allclose(before[0], A @ A)
        np.testing.assert_array_equal(before[1], 2 * A)
        np.testing.assert_array_equal(before[2], 2 * A.T)
        after.result(WAIT_S)
        assert changing.durability == "replayable"
        for _ in range(2):
            mark = lab.events.published
            with pytest.raises(ContextLost):
                lab.inject(fault, device).result(WAIT_S)
            for ref, was in zip(same, before, strict=True):
                assert ref.get(timeout_s=WAIT_S).tobytes() == was.tobytes()
            fact = lab.events.wait_for(BuffersRebuilt, WAIT_S, since=mark)
            assert (fact.buffers, fact.lost) == (len(same), 2)
            refuse(changing)
            refuse(after)


def refuse(ref: AccelRef) -> None:
    with pytest.raises(StaleRef, match="differs from what it was: its digest was"):
        ref.get(timeout_s=WAIT_S)
