"""Sparse matrices and solutions are there again after their context was killed amid their work."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System, sparse
from accel_lab.compute.actors.fault import Inject
from accel_lab.compute.events.lifecycle import BuffersRebuilt
from accel_lab.errors import ContextLost
from tests.contract.samples import value
from tests.contract.sparse_matrices import drawn


@pytest.fixture
def lab(backend: Any) -> Iterator[System]:
    with System(backend.__name__.rpartition(".")[2], devices=1, recover="replay") as system:
        yield system


def test_a_matrix_its_factors_and_a_solution_are_rebuilt(lab: System) -> None:
    (device,) = lab.devices
    x, _ = drawn(3, (40, 40), "float64")
    a = sparse.from_dense(device.put(x))
    eye = sparse.from_dense(device.put(20 * np.eye(40)))
    normal = a.T @ a + eye
    values, indices, pointers = normal.parts
    checked = sparse.csr(values, indices, pointers, normal.shape)
    b = device.put(np.ones(40))
    found = sparse.cg(checked, b, preconditioner="ic0", rtol=1e-10)
    kept = (*normal.parts, *checked.tobsr((2, 2)).parts, found.x, sparse.spsv(checked, b))
    before = [value(device, ref) for ref in kept]
    mark, generation = lab.events.published, device.generation
    killed = device.ask(Inject("kill"))
    again = sparse.gmres(checked, b, preconditioner="ilu0", rtol=1e-10)
    with pytest.raises(ContextLost):
        killed.result(30)
    fact = lab.events.wait_for(BuffersRebuilt, 60, since=mark)
    assert isinstance(fact, BuffersRebuilt)
    assert fact.lost == 0
    assert device.generation == generation + 1
    for ref, one in zip(kept, before, strict=True):
        got = value(device, ref)
        assert (got.shape, got.dtype) == (one.shape, one.dtype)
        np.testing.assert_allclose(got, one, rtol=1e-7)  # a sum may be formed in another order
    np.testing.assert_allclose(value(device, again.x), value(device, found.x), rtol=1e-7)
