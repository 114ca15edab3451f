"""The solvers' results are there again, with the same bits, after their context was killed."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, System, solver
from accel_lab.compute.actors.fault import Inject
from accel_lab.compute.events.lifecycle import BuffersRebuilt
from accel_lab.errors import ContextLost
from tests.contract.matrices import definite
from tests.contract.samples import assert_same, reals, value

WAIT_S = 60.0


@pytest.fixture
def lab(backend: Any) -> Iterator[System]:
    with System(backend.__name__.rpartition(".")[2], devices=1, recover="replay") as system:
        yield system


def every_result(a: AccelRef, b: AccelRef) -> list[AccelRef]:
    """Send every message, in a chain where one can take what another makes."""
    lu, pivots = solver.lu(a)
    found: list[AccelRef | None] = [
        *solver.qr(b),
        solver.lu_solve(lu, pivots, b),
        solver.cholesky_solve(solver.cholesky(a), solver.solve(a, b)),
        solver.inv(solver.inv(a)),
        solver.det(a),
        *solver.slogdet(a),
        *solver.lstsq(b, b),
        *solver.svd(b),
        *solver.randomized_svd(b, 3, seed=7),
        *solver.eigh(a),
        *solver.eigh_general(a, a),
        *solver.eig(a),
    ]
    return [one for one in found if one is not None]


def test_what_was_solved_before_and_meanwhile_survives_a_kill(lab: System) -> None:
    (device,) = lab.devices
    a = device.put(np.stack([definite(i, 40, "float64") for i in range(4)]))
    b = device.put(reals(9, (4, 40, 30), "float64"))
    made = every_result(a, b)
    before = [value(device, ref) for ref in made]
    mark, generation = lab.events.published, device.generation
    large = device.put(reals(5, (300, 300), "float64"))
    meanwhile = solver.eig(large).w
    with pytest.raises(ContextLost):
        device.ask(Inject("kill")).result(WAIT_S)
    fact = lab.events.wait_for(BuffersRebuilt, WAIT_S, since=mark)
    assert isinstance(fact, BuffersRebuilt)
    assert fact.lost == 0
    assert_same(value(device, meanwhile), value(device, solver.eig(large).w))
    for ref, one in zip(made, before, strict=True):
        assert_same(value(device, ref), one)
    for ref, one in zip(every_result(a, b), before, strict=True):
        assert_same(value(device, ref), one)
    assert device.generation == generation + 1
