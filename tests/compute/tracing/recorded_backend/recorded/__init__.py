"""The host backend, whose contexts are recorded by CUPTI as those of `cuda` are."""

from accel_lab.backends.cuda.activity import CuptiActivity
from accel_lab.backends.host import (
    SUPPORT,
    available,
    device_name,
    open_backend,
    peer_links,
    preload,
    process_keeper,
    versions,
)

__all__ = [
    "SUPPORT",
    "available",
    "device_count",
    "device_name",
    "open_activity",
    "open_backend",
    "peer_links",
    "preload",
    "process_keeper",
    "versions",
]


def device_count() -> int:
    """Return how many devices there are."""
    return 2


def open_activity(*, calls: bool) -> CuptiActivity:
    """Record."""
    return CuptiActivity(calls=calls)
