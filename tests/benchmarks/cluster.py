"""What a device of another node costs, beside one of this machine: asks, puts and gets over Ray.

    python -m tests.benchmarks.cluster [--backend cuda]

Starts Ray's own cluster of two nodes on this machine, so no network is in it. On
`cuda` each node has one of two cards.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from accel_lab import Device, System

STORE_BYTES = 512 << 20
ROUNDS = 7
ASKS = 300
SIZES = (1 << 20, 16 << 20, 64 << 20)


def median_s(call: Callable[[], object], rounds: int) -> float:
    """Return what a call takes, of several after one that does not count."""
    call()
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def rows(device: Device) -> Iterator[tuple[str, float]]:
    """Yield what was measured of a device, with its unit in the name."""
    yield "ping, µs", median_s(lambda: device.ping().result(), ASKS) * 1e6
    x = device.put(np.ones(64))

    def many() -> None:
        y = x
        for _ in range(2000):
            y = y + 1
        y.get()

    yield "pipelined additions, messages/s", 2000 / median_s(many, 3)
    for size in SIZES:
        value = np.random.default_rng(0).integers(0, 255, size, np.uint8)
        ref = device.put(value)
        assert np.array_equal(ref.get(), value)

        def put(value: Any = value) -> None:
            device.put(value)
            device.ping().result()

        mib = size >> 20
        yield f"put {mib} MiB, MiB/s", mib / median_s(put, ROUNDS)
        yield f"get {mib} MiB, MiB/s", mib / median_s(ref.get, ROUNDS)


def node(backend: str, card: str) -> dict[str, Any]:
    """Return what a node of Ray's has."""
    has: dict[str, Any] = {"num_cpus": 1, "object_store_memory": STORE_BYTES}
    if backend == "cuda":
        has |= {"num_gpus": 1, "env_vars": {"CUDA_VISIBLE_DEVICES": card}}
    return has


def main() -> None:
    """Print a table for a page."""
    import ray
    from ray.cluster_utils import Cluster

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="host", choices=("host", "cuda"))
    backend = parser.parse_args().backend
    cluster = Cluster()
    try:
        cluster.add_node(**node(backend, "0"), include_dashboard=False)
        cluster.add_node(**node(backend, "1"))
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        with System(backend, cluster="ray", journal=None, recover="stale") as lab:
            here, there = (dict(rows(device)) for device in lab.devices)
        lines = ["| what | this machine | another node |", "|---|---|---|"]
        lines += [f"| {what} | {here[what]:,.0f} | {there[what]:,.0f} |" for what in here]
        sys.stdout.write("\n".join(lines) + "\n")
    finally:
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    main()
