"""A small network served in batches, beside one call for each request; and how long requests wait.

    python -m tests.benchmarks.patterns --rounds 5 --json patterns.json

The network (256 → 512 → 10, float32) lies on a device. Clients are threads, each of which sends its
next request when it has its answer. The ways take turns in each round, in one system.
"""

import argparse
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from accel_lab import Device, System
from accel_lab.blueprints.patterns import DynamicBatchingServer, stage

INPUTS, HIDDEN, OUTPUTS = 256, 512, 10
WAITS_S = (0.002, 0.005, 0.0125, 0.05)


def network(x: Any, first: Any, second: Any) -> Any:
    """Apply two layers; in a context."""
    return (x @ first).clip(0) @ second


class Network:
    """The network on a device; called with a stack of inputs."""

    def __init__(self, device: Device) -> None:
        rng = np.random.default_rng(0)
        self.device = device
        self.first = device.put(rng.standard_normal((INPUTS, HIDDEN)).astype(np.float32))
        self.second = device.put(rng.standard_normal((HIDDEN, OUTPUTS)).astype(np.float32))

    def __call__(self, stacked: Any) -> Any:
        """Send it, and return the reply of its array."""
        x = self.device.put(stacked)
        return self.device.get(self.device.run(network, x, self.first, self.second, pure=True))


def rate(answer: Callable[[Any], Any], clients: int, requests: int) -> float:
    """Return the requests a second of so many clients, which have `requests` in all."""
    inputs = np.random.default_rng(1).standard_normal((64, INPUTS)).astype(np.float32)
    each = requests // clients

    def client(first: int) -> None:
        for n in range(each):
            answer(inputs[(first + n) % len(inputs)])

    threads = [threading.Thread(target=client, args=(first,)) for first in range(clients)]
    begin = time.perf_counter()
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return clients * each / (time.perf_counter() - begin)


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.patterns")
    parser.add_argument("--backend", default="host")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--requests", type=int, default=800)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    with System(options.backend, 1) as lab:
        rows = _throughput(lab, options.clients, options.requests, options.rounds)
        rows += _waits(lab, max(8, options.rounds * 10))
    for row in rows:
        told = (f"{one:.4g}" if isinstance(one, float) else str(one) for one in row.values())
        sys.stdout.write(" | ".join(told) + "\n")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


def _throughput(lab: System, clients: int, requests: int, rounds: int) -> list[dict[str, Any]]:
    (device,) = lab.devices
    direct = Network(device)
    model = stage(devices=lab)(Network)
    ways: dict[str, Callable[[Any], Any]] = {"direct": lambda x: direct(x[None]).result()[0]}
    servers = {
        "batches of 1": DynamicBatchingServer(
            lab, model, stack=True, max_batch=1, max_wait_s=0, name="single"
        ),
        f"batches of {clients}": DynamicBatchingServer(
            lab, model, stack=True, max_batch=clients, max_wait_s=0.002, name="batched"
        ),
    }
    for name, server in servers.items():
        ways[name] = lambda x, server=server: server.ask(x).result()  # type: ignore[misc]
    sample = np.random.default_rng(2).standard_normal(INPUTS).astype(np.float32)
    answers = [way(sample) for way in ways.values()]  # also warms them up
    for other in answers[1:]:
        np.testing.assert_allclose(other, answers[0], rtol=1e-4, atol=1e-3)
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            found[name].append(rate(way, clients, requests))
    ratios = {
        name: [one / single for one, single in zip(found[name], found["batches of 1"], strict=True)]
        for name in ways
    }
    for server in servers.values():
        server.close()
    return [
        {
            "way": name,
            "requests a second": statistics.median(found[name]),
            "times one at a time": statistics.median(ratios[name]),
            "least": min(ratios[name]),
            "most": max(ratios[name]),
            "a call": servers[name].statistics.mean_size if name in servers else 1.0,
        }
        for name in ways
    ]


def _waits(lab: System, count: int) -> list[dict[str, Any]]:
    """Measure from the asking until the function begins, of requests that come alone."""
    rows = []
    for wait_s in WAITS_S:
        begun: list[float] = []

        def note(values: list[Any], begun: list[float] = begun) -> list[Any]:
            begun.append(time.perf_counter())
            return values

        with DynamicBatchingServer(lab, note, max_wait_s=wait_s) as server:
            server.ask(0).result()
            begun.clear()
            asked = []
            for _ in range(count):
                asked.append(time.perf_counter())
                server.ask(0).result()
        took = [end - start for start, end in zip(asked, begun, strict=True)]
        rows.append(
            {
                "max_wait_s": wait_s,
                "median": statistics.median(took) / wait_s,
                "p90": statistics.quantiles(took, n=10)[-1] / wait_s,
            }
        )
    return rows


if __name__ == "__main__":
    raise SystemExit(main())
