"""What happened to a system as tables: events, launches, kernels, faults, buffers and metrics."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from accel_lab.actor.events import Event
from accel_lab.compute.events.samples import SystemEnded
from accel_lab.compute.lineage.senders import Senders
from accel_lab.compute.supervision.device_records import Done
from accel_lab.views.past.recording import FAULTS, Recording
from accel_lab.views.scene.fault_mark import is_asked
from accel_lab.views.scene.scene import NEWS_TYPES, Scene
from accel_lab.views.tallies.device_metrics import Measured, devices_in, of_device, of_health

Row = tuple[Any, ...]

COLUMNS: dict[str, dict[str, str]] = {
    "events": {"at_s": "double", "event": "varchar", "device": "varchar", "detail": "varchar"},
    "launches": {
        "seq": "bigint",
        "kernel": "varchar",
        "device": "varchar",
        "stream": "varchar",
        "kind": "varchar",
        "cell": "bigint",
        "start_s": "double",
        "duration_ns": "bigint",
        "queued_ns": "bigint",
        "lost": "boolean",
        "world_group": "bigint",
        "rank": "bigint",
    },
    "kernels": {
        "seq": "bigint",
        "kernel": "varchar",
        "device": "varchar",
        "stream": "bigint",
        "kind": "varchar",
        "cell": "bigint",
        "start_s": "double",
        "duration_ns": "bigint",
        "nbytes": "bigint",
        "grid": "varchar",
        "block": "varchar",
    },
    "faults": {
        "at_s": "double",
        "fault": "varchar",
        "device": "varchar",
        "generation": "bigint",
        "cause": "varchar",
    },
    "buffers": {
        "id": "bigint",
        "device": "varchar",
        "generation": "bigint",
        "owner": "varchar",
        "dtype": "varchar",
        "shape": "varchar",
        "nbytes": "bigint",
        "kept_by": "varchar",
    },
    "metrics": {
        "at_s": "double",
        "metric": "varchar",
        "source": "varchar",
        "value": "double",
        "unit": "varchar",
    },
}
"""Of each table the columns, with their types in SQL."""


@dataclass
class Known:
    """What the tables are made of.

    Attributes:
        events: everything that was published, or recorded, but for samples.
        done: what the cards' own records say, where they were asked for.
    """

    scene: Scene
    events: list[Event] = field(default_factory=list)
    done: Sequence[Done] = ()


def of_recording(recording: Recording) -> Known:
    """Return what a recording holds."""
    known = Known(Scene())
    for fact in recording:
        known.scene.add(fact)
        if isinstance(fact, (*NEWS_TYPES, SystemEnded)):
            known.events.append(fact)
    return known


def rows_of(known: Known) -> dict[str, list[Row]]:
    """Return the rows of each table."""
    return {
        "events": [_event(one) for one in known.events],
        "launches": list(_launches(known.scene)),
        "kernels": [_kernel(one) for one in known.done],
        "faults": [_fault(one) for one in known.events if is_fault(one)],
        "buffers": list(_buffers(known.scene)),
        "metrics": list(_metrics(known)),
    }


def is_fault(fact: Event) -> bool:
    """Whether a fact is a failure that nobody asked for."""
    return isinstance(fact, FAULTS) and not is_asked(fact)


def _event(fact: Event) -> Row:
    return fact.at, type(fact).__name__, getattr(fact, "device", None), told(fact)


def told(fact: Event) -> str:
    """Return what a fact says, as `name=value` in the order of its fields."""
    fields = msgspec.structs.asdict(fact)
    left = {"at", "device"}
    return ", ".join(f"{name}={value}" for name, value in fields.items() if name not in left)


def _fault(fact: Event) -> Row:
    device = getattr(fact, "device", None) or getattr(fact, "path", None)
    return fact.at, type(fact).__name__, device, getattr(fact, "generation", None), cause_of(fact)


def cause_of(fact: Event) -> str:
    """Return why something failed; empty where that is not told."""
    cause = getattr(fact, "cause", None) or getattr(fact, "error", None) or ""
    return f"{type(cause).__name__}: {cause}" if isinstance(cause, BaseException) else str(cause)


def _launches(scene: Scene) -> Iterator[Row]:
    nobody = Senders()
    for _, device, one in scene.slices:
        if one.kind == "untraced" or one.end is None:
            continue
        group, rank = (None, None) if one.place is None else one.place[:2]
        yield (
            one.seq,
            one.name,
            device,
            one.stream,
            one.kind,
            scene.senders.get(device, nobody).cell_of(one.seq),
            one.start,
            _ns(one.end - one.start),
            None if one.queued is None else _ns(one.start - one.queued),
            one.lost,
            group,
            rank,
        )


def _kernel(one: Done) -> Row:
    work = one.work
    return (
        work.seq or None,
        work.name,
        one.device,
        work.stream,
        work.kind,
        one.cell,
        work.start,
        work.duration_ns,
        work.nbytes,
        "x".join(map(str, work.grid)) or None,
        "x".join(map(str, work.block)) or None,
    )


def _buffers(scene: Scene) -> Iterator[Row]:
    for device, sample in scene.memory.items():
        for block in sample.blocks:
            for id_ in block.ids:
                if id_ >= 0:
                    yield (
                        id_,
                        device,
                        sample.generation,
                        block.owner,
                        block.dtype,
                        "x".join(map(str, block.shape)),
                        block.nbytes,
                        ", ".join(block.kept_by),
                    )


def _metrics(known: Known) -> Iterator[Row]:
    scene = known.scene
    losses: dict[str, int] = {}
    for fact in known.events:
        if type(fact).__name__ == "ContextLost":
            device = getattr(fact, "device", "")
            losses[device] = losses.get(device, 0) + 1
    now = [one for node in devices_in(scene) for one in of_device(node, losses, scene.untraced)]
    yield from _measured(scene.at, now)
    for samples in scene.health.values():
        for sample in samples:
            yield from _measured(sample.at, of_health([sample]))


def _measured(at: float, values: Iterable[Measured]) -> Iterator[Row]:
    for metric, source, value in values:
        yield at, metric.name, source, float(value), metric.unit


def _ns(seconds: float) -> int:
    return max(0, round(seconds * 1e9))
