"""What primitives made is there again after its context died, and the actor has its plans again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, System, primitives
from accel_lab.compute.actors.fault import Inject
from accel_lab.errors import ContextLost, DependencyFailed
from tests.contract.samples import assert_same, reals, value

SOURCE = """
__device__ float farther(float a, float b) { return a * a >= b * b ? a : b; }
__device__ bool positive(float a) { return a > 0.f; }
__device__ float broken(float a) { *(volatile int*)(a > 2.f ? 8 : 16) = 1; return a; }
"""
WAIT_S = 60.0
COMPILED = {"host": "host/*/kernel.so", "cuda": "primitives/*/algorithm.bin"}
"""Where the cache on disk has what was compiled."""


@pytest.fixture
def lab(backend: Any) -> Iterator[System]:
    with System(backend.__name__.rpartition(".")[2], devices=1, recover="replay") as system:
        yield system


def every_result(x: AccelRef, offsets: AccelRef) -> list[AccelRef]:
    """Send messages of every kind: one feeds another, some extents only the device knows."""
    ordered = primitives.sort_pairs(primitives.scan(x), x)
    chosen = primitives.select(x, op="positive", source=SOURCE)
    found = [
        primitives.reduce(x, "farther", source=SOURCE),
        primitives.reduce(chosen),
        *primitives.argmax(ordered.values),
        primitives.segmented_reduce(x, offsets, "max"),
        *primitives.top_k(chosen, 5),
        *primitives.run_length_encode(primitives.sort(x, descending=True)),
        primitives.histogram_even(x, 9, -2, 2),
    ]
    return [chosen, *ordered, *found]


def test_results_around_a_kill_are_what_they_would_have_been(lab: System) -> None:
    (device,) = lab.devices
    x = device.put(reals(3, (1000,), "float32"))
    offsets = device.put(np.array([0, 10, 10, 1000]))
    calm = [value(device, ref) for ref in every_result(x, offsets)]
    generation = device.generation
    before = every_result(x, offsets)
    lost = device.ask(Inject("kill"))
    after = every_result(x, offsets)
    with pytest.raises(ContextLost):
        lost.result(timeout_s=WAIT_S)
    for made in (before, after):
        for ref, expected in zip(made, calm, strict=True):
            assert_same(value(device, ref), expected)
    assert device.generation == generation + 1


def test_an_operator_at_an_illegal_address_costs_the_context_and_no_result(lab: System) -> None:
    (device,) = lab.devices
    x = device.put(reals(3, (1000,), "float32"))
    sums = primitives.scan(x)
    calm, generation = value(device, sums), device.generation
    broken = primitives.transform(x, "broken", source=SOURCE)
    with pytest.raises((ContextLost, DependencyFailed)):  # as it was known, or tried once more
        device.get(broken).result(timeout_s=WAIT_S)
    assert_same(value(device, sums), calm)
    assert_same(value(device, primitives.scan(x)), calm)
    assert device.generation > generation


def test_a_second_process_finds_what_the_first_one_compiled(
    backend: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = backend.__name__.rpartition(".")[2]
    monkeypatch.setenv("ACCEL_LAB_CACHE", str(tmp_path))
    x = np.arange(100, dtype="float32")
    seen = []
    for _ in range(2):
        with System(name, devices=1) as lab:
            (device,) = lab.devices
            farthest = primitives.reduce(device.put(x), "farther", source=SOURCE)
            assert value(device, farthest) == 99
        seen.append({path: path.stat().st_mtime_ns for path in tmp_path.glob(COMPILED[name])})
    assert len(seen[0]) == 1
    assert seen[0] == seen[1]
