"""What a device behind ssh costs, by the time that the way there and back takes.

    python -m tests.benchmarks.ssh

Starts an sshd on the loopback address, and a relay before it that holds back what it carries, so
no network is in it: only its delay is.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from accel_lab import Device, System
from tests.benchmarks.cluster import median_s
from tests.compute.cluster.ssh.far_host import HERE, Between, FarHost

WAYS_MS = (1.0, 10.0, 50.0)
SLOW, SLOW_MS = 12.5e6, 10.0
"""100 Mbit/s, as bytes a second, and the way there and back on such a line."""
ASKS, ROUNDS, MANY, MIB = 50, 3, 1000, 16


def rows(device: Device) -> Iterator[tuple[str, float]]:
    """Yield what was measured of a device, with its unit in the name."""
    yield "ping, ms", median_s(lambda: device.ping().result(), ASKS) * 1e3
    x = device.put(np.ones(64))

    def many() -> None:
        y = x
        for _ in range(MANY):
            y = y + 1
        y.get()

    yield "pipelined additions, messages/s", MANY / median_s(many, ROUNDS)
    noise = np.random.default_rng(0).integers(0, 255, MIB << 20, np.uint8)
    smooth = np.sin(np.arange(MIB << 18) / 1e4).astype("float16").repeat(2)
    for what, value in (("noise", noise), ("smooth values", smooth)):
        ref = device.put(value)
        assert np.array_equal(ref.get(), value)

        def put(value: np.ndarray = value) -> None:
            device.put(value)
            device.ping().result()

        yield f"put {MIB} MiB of {what}, MiB/s", MIB / median_s(put, ROUNDS)
        yield f"get {MIB} MiB of {what}, MiB/s", MIB / median_s(ref.get, ROUNDS)


def main() -> None:
    """Print a table for a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ms", type=float, nargs="*", default=WAYS_MS, help="there and back")
    given = parser.parse_args()
    options: dict[str, Any] = {"journal": None, "recover": "stale"}
    with System("host", **options) as lab:
        columns = {"this machine": dict(rows(lab.devices[0]))}
    with tempfile.TemporaryDirectory() as folder:
        host = FarHost(Path(folder))
        try:
            lines = [(way_ms, float("inf"), f"{way_ms:g} ms") for way_ms in given.ms]
            for way_ms, rate, name in (*lines, (SLOW_MS, SLOW, f"{SLOW_MS:g} ms, 100 Mbit/s")):
                between = Between(host.port, way_ms / 2e3, rate)
                url = host.at(between.port)
                with System(url, python=HERE, ssh=host.ssh, **options) as lab:
                    columns[name] = dict(rows(lab.devices[0]))
                between.close()
        finally:
            host.close()
    table = [f"| what | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    for what in columns["this machine"]:
        values = " | ".join(f"{column[what]:,.3g}" for column in columns.values())
        table.append(f"| {what} | {values} |")
    sys.stdout.write("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
