"""The empty message: what the way to a context and back costs."""

from itertools import chain

from accel_lab.bench.effort import Effort
from accel_lab.bench.rounds import percentile
from accel_lab.bench.row import Row
from accel_lab.bench.rows.latency import MICROSECONDS, awaiting, blocking
from accel_lab.compute.device import Device


def ping(device: Device, effort: Effort) -> list[Row]:
    """Ping, one at a time, and block in `.result()` or `await`."""
    rows: list[Row] = []
    for name, how, sample in (("result", ".result()", blocking), ("await", "await", awaiting)):
        rounds = [
            sample(device.ping, effort.settling + effort.calls)[effort.settling :]
            for _ in range(effort.rounds)
        ]
        together = [*chain(*rounds)]
        rows += [
            Row(
                name=f"ping-{name}-p{percent}",
                group="ping",
                title=f"empty ask and {how}, p{percent}",
                unit="µs",
                ours=percentile(together, percent) * MICROSECONDS,
                rounds=effort.rounds,
            )
            for percent in (50, 99)
        ]
    return rows
