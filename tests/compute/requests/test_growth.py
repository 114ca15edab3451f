"""What the notebook's process keeps grows with what lives, not with what has been."""

import gc
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from accel_lab import Device, System, blas, rng
from accel_lab.compute.lineage import content_store
from accel_lab.errors import UserCodeError
from tests.faults.conftest import settle

WAIT = 60.0
KIB = 1 << 10


@pytest.fixture
def lab() -> Iterator[System]:
    with System("host", devices=1) as opened:
        yield opened


@pytest.fixture
def gpu(lab: System) -> Device:
    return lab.devices[0]


def work(gpu: Device, seed: int) -> None:
    """Do some of everything; nothing of it lives on."""
    x = gpu.put(np.full((32, 32), seed % 100, np.float32))
    large = gpu.put(np.random.default_rng(seed).random((100, 100)))
    z = x
    for _ in range(5):
        z = blas.gemm(z, x, alpha=1e-3) + x * 0.5
    drawn = rng.uniform(gpu, (10, 10), seed=seed)
    gpu.run(np.negative, z).result(WAIT)
    float(drawn.sum())
    gpu.get(large).result(WAIT)
    with pytest.raises(UserCodeError):
        gpu.run(_fails, seed).result(WAIT)


def _fails(seed: int) -> None:
    raise ValueError(seed)


def census() -> Counter[str]:
    """Count what the collector sees, by type."""
    gc.collect()
    return Counter(type(one).__name__ for one in gc.get_objects())


def test_twice_as_much_work_leaves_as_many_objects(gpu: Device) -> None:
    """The last errors of a device were kept, and each has its frames: the first thousand."""
    for seed in range(60):
        work(gpu, seed)
    once = census()
    for seed in range(60, 180):
        work(gpu, seed)
    grown: Counter[str] = Counter()

    def few() -> bool:
        """What is on its way to other threads counts for a moment."""
        grown.clear()
        twice = census()
        grown.update(twice - once)
        many = sum(twice.values()) - sum(once.values())
        return many < 600 and grown["UserCodeError"] < 40

    assert settle(few), grown.most_common(10)


def test_what_was_uploaded_is_forgotten_with_its_buffers(
    lab: System, gpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was kept until three quarters of 256 MiB were full of it."""
    monkeypatch.setattr(content_store, "FRESH_S", 0.0)
    contents = lab._contents
    contents.memory_bytes = 64 * KIB * KIB
    kept = gpu.put(np.ones(64 * KIB, np.uint8))
    for seed in range(600):  # 38 MiB, less than three quarters of what may be
        gpu.put(np.full(64 * KIB, seed, np.uint32).view(np.uint8)[: 64 * KIB]).result(WAIT)
        if seed % 5 == 0:
            lab.flush()  # so that the record knows what is freed
    gpu.get(kept).result(WAIT)
    # The record's thread works when there is something to record.
    assert settle(lambda: gpu.ping().result(WAIT) is None and contents.used_bytes < 34 << 20, 10.0)
    assert contents.used_bytes >= 64 * KIB
    assert kept.durability == "replayable"
