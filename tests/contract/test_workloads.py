"""The workloads of the benchmark: what is timed by turns computes the same."""

from typing import Any

import numpy as np
import pytest

from accel_lab.bench import calls
from accel_lab.bench.workloads import WORKLOADS, prepare
from accel_lab.compute.device import Device

DRAWN = "rng."
NAMES = [name for name, workload in WORKLOADS.items() if workload.cupy]


def peers(backend: str, name: str, size: int) -> Any:
    """Make the peer's call and return its result as NumPy has it; runs in the context."""
    made: Any = calls.prepared(backend, "workloads.call", name, size).run()
    made = getattr(made, "data", made) if name == "sparse.spgemm" else made
    return made.get() if hasattr(made, "get") else np.asarray(made)


@pytest.mark.parametrize("name", NAMES)
def test_a_workload_computes_what_its_peer_does(backend: Any, device: Device, name: str) -> None:
    size = WORKLOADS[name].cuda[0]
    kind = backend.__name__.rpartition(".")[2]
    theirs = device.run(peers, kind, name, size).result()
    ours = prepare(device, name, size)().get()
    assert ours.shape == theirs.shape
    if name.startswith(DRAWN):
        return
    if name == "solver.qr":  # a row's sign is anybody's
        ours, theirs = abs(ours), abs(theirs)
    if name == "sparse.spgemm":  # the order in a row is anybody's
        ours, theirs = np.sort(ours), np.sort(theirs)
    assert np.allclose(ours, theirs, rtol=1e-3, atol=1e-3 * max(1.0, float(abs(theirs).max())))
