"""The libraries beside BLAS: one operation again and again, against the array library's own."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from accel_lab.bench import cases
from accel_lab.bench.case import Case, Send
from accel_lab.bench.effort import Effort
from accel_lab.bench.peer import Peer
from accel_lab.bench.rounds import compare, latencies
from accel_lab.bench.row import Budget, Row
from accel_lab.bench.rows.latency import blocking, percentiles
from accel_lab.bench.rows.pipelined import seconds_of

FEWEST_CALLS = 3
CASES: dict[str, tuple[Case, ...]] = {
    found.name: import_module(f"{cases.__name__}.{found.name}").CASES
    for found in iter_modules(cases.__path__)
}


def library(peer: Peer, effort: Effort, group: str) -> list[Row]:
    """Measure the cases of a library, named as its group: in a row, and one at a time.

    PyTorch is a second peer of the loops where a context can import it.
    """
    return [row for case in CASES[group] for row in _case(peer, effort, group, case)]


def _case(peer: Peer, effort: Effort, group: str, case: Case) -> list[Row]:
    limit = case.ask if peer.backend == "cuda" else None
    send = case.prepare(peer.device)
    what, name = f"{group}.{case.what}", f"{group}-{case.name}"
    count, call_s = _enough(peer, effort, what, case.arguments)
    calls = round(min(effort.calls, max(FEWEST_CALLS, effort.telling_s / call_s)))
    settling = effort.settling if calls == effort.calls else 1
    found = latencies(
        lambda: peer.each(what, case.arguments, settling + calls)[settling:],
        lambda: blocking(send, settling + calls)[settling:],
        effort.rounds,
    )
    rows = [
        loop(peer, effort, case, send, what, count=count, group=group, name=name),
        *percentiles(
            f"{name}-ask",
            found,
            group=group,
            title=f"{case.title} and .result()",
            peer=f"{peer.label(what, *case.arguments)} + sync",
            budget=None if limit is None else Budget(limit, "at most"),
        ),
    ]
    if case.torch and peer.label(case.torch, *case.arguments):
        pair = f"{name}-torch"
        rows.append(loop(peer, effort, case, send, case.torch, count=count, group=group, name=pair))
    return rows


def loop(
    peer: Peer,
    effort: Effort,
    case: Case,
    send: Send,
    what: str,
    *,
    count: int,
    group: str,
    name: str,
) -> Row:
    """Send `count` messages in a row, against as many calls of `what`."""
    found = compare(
        lambda: count / peer.many(what, case.arguments, count),
        lambda: count / seconds_of(send, count),
        effort.rounds,
    )
    limit = case.pipelined if peer.backend == "cuda" else None
    return Row(
        name=name,
        group=group,
        title=f"pipelined {case.title} with out",
        unit="messages/s",
        peer=f"{peer.label(what, *case.arguments)} loop",
        budget=None if limit is None else Budget(limit, "at least"),
        **found._asdict(),
    )


def _enough(peer: Peer, effort: Effort, what: str, arguments: tuple[Any, ...]) -> tuple[int, float]:
    """Find how many calls take long enough, and what one takes; the library is warm then."""
    count, most = 1, effort.messages[peer.backend]
    peer.many(what, arguments, count)
    while (seconds := peer.many(what, arguments, count)) < effort.telling_s and count < most:
        count = min(2 * count, most)
    return count, seconds / count
