"""The cluster that a system joins: which of its nodes have devices, and how those are reached."""

import weakref
from typing import Literal, TypeAlias, get_args

from accel_lab.actor.event_loop import EventLoop
from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.cluster.cluster_spawner import ClusterSpawner
from accel_lab.compute.cluster.places import Places
from accel_lab.compute.cluster.ray_cluster import RayCluster
from accel_lab.compute.message.validation import require_count, require_word
from accel_lab.compute.process.bound_process import MakePipe
from accel_lab.compute.process.spawner import Spawner
from accel_lab.errors import InvalidArgument
from accel_lab.uncopied import Uncopied

Kind: TypeAlias = Literal["ray"]
BACKENDS = ("cuda", "host")


class Joined(Uncopied):
    """One system's part in a cluster.

    Parameters:
        backend: as `System` is given it; `auto` is `cuda` where any node has a GPU.
        devices: how many there are to be: None for every GPU, or one on each node with `host`.

    Raises:
        BackendUnavailable: there is no such cluster.
        InvalidArgument: it has no room for so many devices.
    """

    def __init__(self, backend: str, devices: int | list[int] | None) -> None:
        if isinstance(devices, list | tuple | range):
            raise InvalidArgument(
                f"devices={devices!r}: in a cluster say how many there are to be, or None"
            )
        wanted = None if devices is None else require_count(devices, "devices")
        self._cluster = RayCluster()
        self._leave = weakref.finalize(self, self._cluster.leave)
        if backend == "auto":
            backend = "cuda" if self._cluster.has_cards() else "host"
        require_word(backend, "backend", BACKENDS)
        self.backend = self._cluster.backend = backend
        each = 1 if backend == "host" else None
        self._places = Places(self._cluster.nodes(), wanted, each)
        self.indices = self._places.indices

    def spawner(
        self, local: Spawner, arena: Arena, event_loop: EventLoop, pipe: MakePipe
    ) -> ClusterSpawner:
        """Return what starts contexts where their devices are."""
        return ClusterSpawner(local, self._cluster, self._places, arena, event_loop, pipe)

    def leave(self) -> None:
        """End the connection to the cluster, if it was made for this."""
        self._leave()


def join(
    cluster: Kind | None,
    backend: str,
    devices: int | list[int] | None,
    suspend_after_s: float | None,
) -> Joined | None:
    """Return a part in the cluster, None where there is to be none.

    Raises:
        BackendUnavailable: there is no such cluster.
        InvalidArgument: no such kind, or no room; or devices there are to be suspended.
    """
    if cluster is None:
        return None
    require_word(cluster, "cluster", get_args(Kind))
    if suspend_after_s is not None:
        raise InvalidArgument(
            "suspend_after_s: a device on another machine has no way to keep what it holds here"
        )
    return Joined(backend, devices)
