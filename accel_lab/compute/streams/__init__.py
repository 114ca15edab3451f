"""How a context places its work on streams, and how it learns that a stream is done.

`System(streams=…, completion=…)` takes one of each. Runs in both.
"""

from accel_lab.compute.streams.allocators import Allocator, PerActor, Pooled, Single
from accel_lab.compute.streams.strategies import HostFn, Polled, Strategy, Sync

__all__ = ["Allocator", "HostFn", "PerActor", "Polled", "Pooled", "Single", "Strategy", "Sync"]
