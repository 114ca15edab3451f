"""The process in which other tools examine a loss: `python -m accel_lab.explain_process`.

It runs again, on a system of its own, the messages that were in flight when a device of a recorded
journal lost its context, and ends.
"""

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from accel_lab.compute.device import Device
from accel_lab.journal.explanation.explain import explain
from accel_lab.journal.journal import Journal
from accel_lab.system import System

READY_S = 60.0


def unpool() -> None:
    """Have each buffer be an allocation of its own; runs in the context."""
    from accel_lab.backends.cuda.device.unpooled import begin

    begin()


def main(path: str, backend: str, device: str, index: int) -> None:
    """Run what ended the device's last lost context, on the card of this index."""
    with System(backend, [index], max_restarts=0, recover="stale", journal=None) as lab:
        if backend == "cuda":
            lab.devices[0].run(unpool).result(READY_S)

        def here(_: Device) -> AbstractContextManager[Any]:
            return nullcontext(lab)

        found = explain(Journal.from_jsonl(path), lab, device, allow_code=True, spare=here)
        sys.stdout.write(f"{found}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
