"""What a system on a GPU costs its owner: no CUDA in this process, and nothing left behind."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from accel_lab import Device, System, array, blas
from tests.gpu.card import assert_used_at_most, card_bytes

pytestmark = pytest.mark.gpu
WAIT = 120.0


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("cuda", devices=1, max_restarts=100) as system:
        yield system


@pytest.fixture
def gpu(lab: System) -> Device:
    return lab.devices[0]


def test_the_notebooks_process_never_imports_cuda() -> None:
    tour = """
import sys
import numpy as np
from accel_lab import System, array, blas, views
with System("cuda", devices=1) as lab:
    gpu = lab.devices[0]
    a = gpu.put(np.ones((64, 64), np.float32))
    big = gpu.put(np.ones(1 << 20))
    blas.gemm(a, a, out=array.zeros(gpu, (64, 64), "float32")).result(60)
    gpu.get(big).result(60)
    gpu.run(lambda x: x.sum(), a).result(60)
    try:
        lab.inject("poison").result(60)
    except Exception as error:
        print(type(error).__name__)
    gpu.get(gpu.put(np.ones(4))).result(60)
    views.tree(lab)
    repr(lab), lab.tree()
found = {name.split(".")[0] for name in sys.modules} & {"cupy", "cupyx", "nvmath", "cuda", "torch"}
print(sorted(found))
"""
    done = subprocess.run(
        [sys.executable, "-c", tour], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.stdout.split("\n")[:2] == ["ContextLost", "[]"], done.stderr


def test_the_card_is_as_it_was_after_close() -> None:
    before = card_bytes()
    with System("cuda", devices=1) as lab:
        kept = array.zeros(lab.devices[0], (1 << 28,), "float32").result(WAIT)
        assert card_bytes() > before + (1 << 30)
    assert_used_at_most(before)
    del kept


def test_an_array_beyond_four_gibibytes_makes_the_round_trip(gpu: Device) -> None:
    data = np.arange(5 * 2**30 // 8, dtype=np.float64)
    data = np.concatenate([data[-1000:], data])
    got = gpu.get(gpu.put(data), timeout_s=WAIT).result(WAIT)
    assert got.nbytes > 5 * 2**30
    np.testing.assert_array_equal(got[:2000], data[:2000])
    np.testing.assert_array_equal(got[-(1 << 20) :], data[-(1 << 20) :])
    assert (got[:: 1 << 16] == data[:: 1 << 16]).all()


def test_lab_memory_is_read_only_until_it_has_been_uploaded(lab: System, gpu: Device) -> None:
    data = lab.empty((1 << 26,), np.float32)
    data[:] = 3.0
    ref = gpu.put(data)
    ref.result(WAIT)
    data[:] = 4.0  # writable again
    assert gpu.get(ref).result(WAIT)[-1] == 3.0


def test_a_thousand_sends_return_while_the_device_is_held(gpu: Device, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    def hold(path: str) -> None:
        with open(path) as waiting:  # noqa: PTH123
            waiting.read()

    gpu.run(hold, str(gate))
    one = gpu.put(np.ones(4))
    refs = [one]
    for _ in range(1000):
        refs.append(blas.axpy(one, refs[-1]))
    assert not any(ref.done for ref in refs[1:])
    with gate.open("w"):
        pass
    assert (gpu.get(refs[-1]).result(WAIT) == 1001.0).all()
