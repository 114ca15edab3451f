"""Every library, of fresh results: by turns with the same call of NumPy, CuPy and PyTorch.

On `host` the peer is called in this process, where a notebook would call it; on `cuda` in the
context. A workload that fails is a note, and the others go on.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from accel_lab.bench import calls
from accel_lab.bench.effort import Effort
from accel_lab.bench.peer import Peer
from accel_lab.bench.rounds import compare
from accel_lab.bench.row import Budget, Row, Unit
from accel_lab.bench.rows.pipelined import seconds_of
from accel_lab.bench.workloads import WORKLOADS, Workload, prepare

CALL = {"array": "workloads.call", "torch": "torch.call"}
PACKAGES = {"array": "CuPy", "torch": "PyTorch"}
WORK_S = 1e-4
"""From so much work on the device decides, and not what launches it."""
MESSAGES, WORK, PRODUCTS = 0.9, {"host": 0.9, "cuda": 0.98}, 0.95
"""The least ratios: of small messages on `cuda`, of work, and of the huge products."""
TERA = 1e12
Note = Callable[[str], object]


class _Turns(NamedTuple):
    """Whose calls are timed by turns with ours: the label, and the seconds of so many."""

    label: str
    seconds: Callable[[int], float]


def workloads(peer: Peer, effort: Effort, note: Note) -> Iterator[Row]:
    """Measure every workload of this backend, and note what is not measured and why."""
    missing: dict[str, None] = {}
    for name, workload in WORKLOADS.items():
        for size in workload.host if peer.backend == "host" else workload.cuda:
            yield from _rows(peer, effort, name, size, note, missing)
    for package in missing:
        note(f"{package} is not installed where the device computes: no row compares with it")


def _rows(
    peer: Peer, effort: Effort, name: str, size: int, note: Note, missing: dict[str, None]
) -> list[Row]:
    """Measure one workload against each peer, or alone where there is none."""
    rows: list[Row] = []
    row_name = name_of(name, size)
    try:
        send = prepare(peer.device, name, size)
        send().result()
    except Exception as error:  # noqa: BLE001 - whatever it is, the next one is measured
        note(_failed(row_name, error))
        return rows
    for kind in _kinds(peer.backend, WORKLOADS[name]):
        suffix = "-torch" if kind == "torch" else ""
        try:
            turns = _turns(peer, kind, name, size)
            if turns is None:
                missing[PACKAGES[kind]] = None
            else:
                rows.append(_row(peer, effort, name, size, send, turns, row_name + suffix))
        except Exception as error:  # noqa: BLE001
            note(_failed(row_name + suffix, error))
    if not rows:
        try:
            rows.append(_alone(effort, name, size, send, row_name))
        except Exception as error:  # noqa: BLE001
            note(_failed(row_name, error))
    return rows


def _kinds(backend: str, workload: Workload) -> list[str]:
    if backend == "host":
        return ["array"]
    has = {"array": workload.cupy, "torch": workload.torch}
    return [kind for kind, there in has.items() if there]


def _turns(peer: Peer, kind: str, name: str, size: int) -> _Turns | None:
    """Prepare a peer's call; None where its package is missing."""
    what, arguments = CALL[kind], (name, size)
    if peer.backend == "host":
        label = calls.label("host", what, *arguments)
        return _Turns(label, partial(calls.many, "host", what, arguments))
    label = peer.label(what, *arguments)
    return _Turns(label, partial(peer.many, what, arguments)) if label else None


def _enough(seconds: Callable[[int], float], effort: Effort, most: int) -> int:
    """Find how many calls take long enough; all is warm then."""
    count = 1
    seconds(count)
    while seconds(count) < effort.telling_s and count < most:
        count = min(2 * count, most)
    return count


def _row(
    peer: Peer,
    effort: Effort,
    name: str,
    size: int,
    send: Callable[[], Any],
    turns: _Turns,
    row_name: str,
) -> Row:
    count = _enough(turns.seconds, effort, effort.messages[peer.backend])
    seconds_of(send, count)  # the context has the memory for so many results in flight
    unit, factor = _unit(WORKLOADS[name], size)
    found = compare(
        lambda: factor * count / turns.seconds(count),
        lambda: factor * count / seconds_of(send, count),
        effort.workloads,
        warm_up=0,
    )
    limit = _limit(peer.backend, WORKLOADS[name], factor / found.theirs, row_name)
    return Row(
        name=row_name,
        group="libraries",
        title=_title(name, size),
        unit=unit,
        peer=turns.label,
        budget=None if limit is None else Budget(limit, "at least"),
        **found._asdict(),
    )


def _alone(effort: Effort, name: str, size: int, send: Callable[[], Any], row_name: str) -> Row:
    """Measure a workload that has no peer here."""
    ours = partial(seconds_of, send)
    count = _enough(ours, effort, max(effort.messages.values()))
    unit, factor = _unit(WORKLOADS[name], size)
    found = compare(lambda: 1.0, lambda: factor * count / ours(count), effort.workloads)
    return Row(
        name=row_name,
        group="libraries",
        title=_title(name, size),
        unit=unit,
        ours=found.ours,
        rounds=found.rounds,
    )


def _unit(workload: Workload, size: int) -> tuple[Unit, float]:
    """Return the unit, and what one call is of it."""
    if workload.flops is None:
        return "messages/s", 1.0
    return "TFLOP/s", workload.flops(size) / TERA


def _limit(backend: str, workload: Workload, call_s: float, row_name: str) -> float | None:
    """Return the least ratio for calls that take their peer so long; None where any will do."""
    if workload.flops is not None:
        return PRODUCTS
    if call_s >= WORK_S:
        return WORK[backend]
    return MESSAGES if backend == "cuda" and not row_name.endswith("-torch") else None


def name_of(name: str, size: int) -> str:
    """Return the name of a row, short enough for a terminal: a size of 1024 is 1k."""
    short = f"{size >> 10}k" if size and not size % 1024 else size
    return f"lib-{name.replace('.', '-')}-{short}"


def _title(name: str, size: int) -> str:
    library, _, _ = name.partition(".")
    return f"{library}: {WORKLOADS[name].title} {size}"


def _failed(row_name: str, error: Exception) -> str:
    first = next(iter(str(error).splitlines()), "")
    return f"{row_name} is not measured: {type(error).__name__}: {first}"
