"""A small network served in batches, beside one call for each request; and how long requests wait.

    python -m tests.benchmarks.patterns --rounds 5 --json patterns.json
    python -m tests.benchmarks.patterns --kill --devices 2

The network (256 → 512 → 10, float32) lies on a device. Clients are threads, each of which sends its
next request when it has its answer. The ways take turns in each round, in one system.

With `--kill`, a context is killed while the clients ask, and how long the slowest hundredth of the
requests takes is told beside how long it takes without, and how long a restart takes that nobody
disturbs. The aim is a restart and twice the time without.
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
from accel_lab.blueprints.patterns import DynamicBatchingServer, ModelReplicaPool, stage
from accel_lab.blueprints.patterns.base.pattern import Service
from accel_lab.errors import AccelError

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
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    with System(options.backend, options.devices, max_restarts=1000) as lab:
        if options.kill:
            rows = _kills(lab, options.clients, options.requests, options.rounds)
        else:
            rows = _throughput(lab, options.clients, options.requests, options.rounds)
            rows += _waits(lab, max(8, options.rounds * 10))
    for row in rows:
        told = (f"{one:.4g}" if isinstance(one, float) else str(one) for one in row.values())
        sys.stdout.write(" | ".join(told) + "\n")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


def _throughput(lab: System, clients: int, requests: int, rounds: int) -> list[dict[str, Any]]:
    direct = Network(lab.devices[0])
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


def _kills(lab: System, clients: int, requests: int, rounds: int) -> list[dict[str, Any]]:
    """Measure requests while a context is killed, beside those of a quiet time and a restart."""
    device, model = lab.devices[0], stage(devices=lab)(Network)
    servers: dict[str, Service] = {
        "batches": DynamicBatchingServer(
            lab, model, stack=True, max_batch=clients, max_wait_s=0.002, name="batched"
        ),
        "pool": ModelReplicaPool(
            lab, stage(devices=lab)(OneByOne), max_running=4, name="pool of replicas"
        ),
    }

    def kill() -> None:
        lab.inject("kill", device).add_waiter(lambda: None)

    restarts: list[float] = []
    quiet: dict[str, list[float]] = {name: [] for name in servers}
    killed: dict[str, list[float]] = {name: [] for name in servers}
    failed = dict.fromkeys(servers, 0)
    for server in servers.values():
        slowest(server, clients, 10 * clients, lambda: None)  # warms up
    for _ in range(rounds):
        restarts.append(_restart(device, kill))
        for name, server in servers.items():
            quiet[name].append(slowest(server, clients, requests, lambda: None))
            before = server.statistics.failed
            killed[name].append(slowest(server, clients, requests, kill))
            failed[name] += server.statistics.failed - before
    rows = []
    for name, server in servers.items():
        restart, p99 = statistics.median(restarts), statistics.median(quiet[name])
        under = statistics.median(killed[name])
        limits = [a + 2 * b for a, b in zip(restarts, quiet[name], strict=True)]
        met = sum(one <= limit for one, limit in zip(killed[name], limits, strict=True))
        rows.append(
            {
                "way": f"{name}, {len(lab.devices)} devices",
                "p99 s": p99,
                "p99 under a kill s": under,
                "restart s": restart,
                "restart and twice p99 s": restart + 2 * p99,
                "rounds within": f"{met} of {rounds}",
                "failed": failed[name],
            }
        )
        server.close()
    return rows


class OneByOne(Network):
    """The network, called with one input."""

    def __call__(self, one: Any) -> Any:
        """Send it, and return the reply of its array."""
        return super().__call__(one[None])


def _restart(device: Device, kill: Callable[[], None]) -> float:
    """Return how long after a kill the network answers again."""
    model, one = Network(device), np.zeros((1, INPUTS), np.float32)
    model(one).result()
    generation, begin = device.generation, time.perf_counter()
    kill()
    while True:
        try:
            model(one).result()
        except AccelError:
            continue
        if device.generation > generation:
            return time.perf_counter() - begin


def slowest(
    server: Service, clients: int, requests: int, in_the_middle: Callable[[], None]
) -> float:
    """Return how long the slowest hundredth of the requests takes at least."""
    took: list[float] = []
    middle = requests // clients // 2

    def client(first: int) -> None:
        one = np.full(INPUTS, first, np.float32)
        for n in range(requests // clients):
            if first == 0 and n == middle:
                in_the_middle()
            begin = time.perf_counter()
            try:
                server.ask(one).result()
            except AccelError:
                continue  # the statistics count it
            took.append(time.perf_counter() - begin)

    threads = [threading.Thread(target=client, args=(first,)) for first in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statistics.quantiles(took, n=100)[-1]


if __name__ == "__main__":
    raise SystemExit(main())
