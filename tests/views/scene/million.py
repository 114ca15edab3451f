"""A million events through the tape into the lab's widget; prints the resident MiB on the way.

Run as a program of its own, so that nothing else of the tests is counted.
"""

import gc
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from accel_lab.actor.events import Event
from accel_lab.compute.events.lifecycle import (
    BuffersRebuilt,
    ContextLost,
    ContextStarted,
    GenerationChanged,
    RequestFailed,
)
from accel_lab.compute.events.samples import Block, MemorySampled, Slice, WorkTraced
from accel_lab.views.lab import LabView
from accel_lab.views.scene.fact_lines import decode, encode
from accel_lab.views.widget import live
from accel_lab.views.widget.live import widget_class
from accel_lab.views.widget.publisher import Publisher
from tests.views.made_up import lab

EVENTS = 1_000_000
BATCH = 500
FACTS = 5
"""In a batch; the others are slices."""
PUBLISHED_EVERY = 4
TOLD_EVERY = 100_000


class Still(Publisher):
    """A publisher whose thread never runs: every view is sent by hand."""

    def _run(self) -> None:
        pass


def facts(generation: int) -> list[Event]:
    """Return what a lost context is told by."""
    return [
        GenerationChanged(device="gpu0", before=generation, after=generation + 1),
        ContextLost(
            device="gpu0", generation=generation, cause=f"it was {generation}", in_flight=3
        ),
        ContextStarted(device="gpu0", generation=generation + 1, pid=generation, seconds=0.2),
        BuffersRebuilt(
            device="gpu0",
            generation=generation + 1,
            buffers=generation,
            lost=0,
            messages=7,
            requests=(3, 4),
            seconds=0.1,
        ),
        RequestFailed(device="gpu0", message=f"Gemm #{generation}", error="ValueError", cell=None),
    ]


def samples(number: int, count: int) -> list[WorkTraced | MemorySampled]:
    """Return slices that no other sample has, and other memory."""
    done = tuple(
        Slice(
            number + i, f"Kernel{i % 7}", "blas", "kernel", (number + i) / 1e4, (number + i) / 1e4
        )
        for i in range(count)
    )
    blocks = tuple(Block((number + i,), i << 20, 1 << 20, "Gemm", "f4", (4,)) for i in range(50))
    return [
        WorkTraced(device="gpu0", generation=1, done=done, running=done[:1], dropped=1),
        MemorySampled(
            device="gpu0",
            generation=number,
            used_bytes=50 << 20,
            total_bytes=1 << 30,
            blocks=blocks,
        ),
    ]


def told(fact: Any) -> Any:
    """Return a fact as it comes from a tape."""
    return decode(encode(fact).rstrip(b"\n"))


def resident_mib() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def main() -> None:
    """Send them all."""
    live.PUBLISHER = Still()  # type: ignore[attr-defined]
    system = lab(devices=1)
    widget: Any = widget_class(LabView)(system)
    sent: list[int] = [0]

    def send(data: Any, buffers: Any) -> None:
        sent[0] += len(json.dumps(data)) + sum(map(len, buffers))

    widget.comm = SimpleNamespace(
        kernel=object(), comm_id="c", send=send, close=lambda **_: None, on_msg=lambda _: None
    )
    resident = {}
    for number in range(0, EVENTS, BATCH):
        for fact in facts(number // BATCH + 1):
            system.events.publish(told(fact))
        system.seen += map(told, samples(number, BATCH - FACTS))
        if number // BATCH % PUBLISHED_EVERY == 0:
            widget.publish(float(number))
        if number % TOLD_EVERY == 0:
            resident[number] = resident_mib()
    widget.publish(float(EVENTS))
    resident[EVENTS] = resident_mib()
    state = json.loads(widget.state)
    seen = state["timeline"]["traced"]
    found = {"resident_mib": resident, "slices": seen, "sent_bytes": sent[0]}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
