"""An empty message of ours beside one of each peer, in rounds that alternate."""

from collections.abc import Callable, Iterable
from time import perf_counter

from accel_lab.bench import own_loop
from accel_lab.bench.effort import Effort
from accel_lab.bench.rounds import alternate, compared, latencies
from accel_lab.bench.row import Budget, Row
from accel_lab.bench.rows.latency import MICROSECONDS, awaiting, percentiles
from accel_lab.compute.device import Device
from accel_lab.compute.message.builtin import Ping
from accel_lab.display.install import pip_install
from tests.benchmarks.peers.catalogue import PEERS, Peer
from tests.benchmarks.peers.orders import Told
from tests.benchmarks.peers.process import PeerFailed, PeerProcess

FEWEST, MOST = 64, 8192


def compare(
    device: Device,
    effort: Effort,
    versions: dict[str, str],
    notes: list[str],
    catalogue: Iterable[Peer] = PEERS,
) -> list[Row]:
    """Ask and tell other actor systems an empty message, those that are installed.

    Each runs only while it is measured. Both sides await in an asyncio loop; theirs is the loop of
    a process of its own.

    Parameters:
        versions: gets the version of each package that was measured.
        notes: gets which peers were not measured, and why.
        catalogue: the peers.
    """
    rows: list[Row] = []
    absent = []
    for peer in catalogue:
        if peer.missing:
            absent.append(peer.name)
            continue
        try:
            with PeerProcess(peer) as process:
                measured = _asks(device, process, effort) + _tells(device, process, effort)
                versions[peer.package] = process.version
                rows += measured
        except PeerFailed as error:
            notes.append(f"not measured: {error}")
    if absent:
        command = pip_install("peers")
        notes.append(f"not installed, so not measured: {', '.join(absent)}. {command}")
    return rows


def _asks(device: Device, process: PeerProcess, effort: Effort) -> list[Row]:
    peer = process.peer
    count = effort.settling + effort.calls
    found = latencies(
        lambda: process.ask(count)[effort.settling :],
        lambda: awaiting(device.ping, count)[effort.settling :],
        effort.rounds,
    )
    return percentiles(
        f"{peer.name}-ask",
        found,
        group="peers",
        title="empty ask and await",
        peer=peer.title,
        budget=None if peer.ask is None else Budget(peer.ask, "at least", "speedup"),
    )


def _tells(device: Device, process: PeerProcess, effort: Effort) -> list[Row]:
    def ours(count: int) -> Told:
        return own_loop.run(_tell(device, count))

    peer = process.peer
    few, many = (_enough(tell, effort.telling_s) for tell in (process.tell, ours))
    pairs = alternate(lambda: process.tell(few), lambda: ours(many), effort.rounds)
    rates = [(few / other.taken_s, many / mine.taken_s) for other, mine in pairs]
    costs = [
        (other.sending_s / few * MICROSECONDS, mine.sending_s / many * MICROSECONDS)
        for other, mine in pairs
    ]
    return [
        Row(
            name=f"{peer.name}-tell",
            group="peers",
            title="empty tells, until the last is taken",
            unit="messages/s",
            peer=peer.title,
            budget=None if peer.tell is None else Budget(peer.tell, "at least"),
            **compared(rates)._asdict(),
        ),
        Row(
            name=f"{peer.name}-tell-cost",
            group="peers",
            title="empty tell, cost to its sender",
            unit="µs",
            peer=peer.title,
            **compared(costs)._asdict(),
        ),
    ]


async def _tell(device: Device, count: int) -> Told:
    """Tell empty messages, then await one more, which comes after them."""
    begin = perf_counter()
    for _ in range(count):
        device.tell(Ping())
    sent = perf_counter()
    await device.ping()
    return Told(sent - begin, perf_counter() - begin)


def _enough(tell: Callable[[int], Told], at_least_s: float) -> int:
    """Find how many messages take so long; both sides are warm then."""
    count = FEWEST
    tell(count)
    while count < MOST and tell(count).taken_s < at_least_s:
        count *= 2
    return count
