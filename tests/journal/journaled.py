"""A system whose devices are journaled, put together by hand."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accel_lab import System
from accel_lab.journal.journal import Journal
from accel_lab.journal.stores.open_store import open_store
from accel_lab.journal.stores.store import Store
from accel_lab.journal.writing.facts import Facts
from accel_lab.journal.writing.writer import Writer


@contextlib.contextmanager
def journaled(
    spec: str | Path | Store = "memory", devices: int = 1, **options: Any
) -> Iterator[tuple[System, Journal]]:
    """Open a host system and its journal."""
    with System("host", devices) as lab:
        models = {device.name: "" for device in lab.devices}
        writer = Writer(
            open_store(spec),
            lab._contents,
            lab.events,
            lambda: Facts("lab", "host", models, {}),
            **options,
        )
        lab._record_thread.flush()
        for device in lab.devices:
            recorder = device._requests.recorder
            assert recorder is not None
            recorder.followers.append(writer.follow(device.name))
        lab._record_thread.after.insert(0, writer)
        try:
            yield lab, Journal(writer.store, writer, lab._record_thread.flush)
        finally:
            lab._record_thread.flush()
            writer.close()
