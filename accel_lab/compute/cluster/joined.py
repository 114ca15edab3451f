"""The cluster that a system joins: which of its nodes have devices, and how those are reached."""

import weakref
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from accel_lab.actor.event_loop import EventLoop
from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.cluster.cluster_spawner import ClusterSpawner, Where
from accel_lab.compute.cluster.places import Places
from accel_lab.compute.cluster.ray_cluster import RayCluster
from accel_lab.compute.cluster.ssh.ssh_cluster import FixedPlaces, SshCluster
from accel_lab.compute.cluster.ssh.target import SCHEME, target
from accel_lab.compute.message.validation import require_count, require_seconds, require_word
from accel_lab.compute.process.bound_process import MakePipe
from accel_lab.compute.process.spawner import Spawner
from accel_lab.errors import InvalidArgument
from accel_lab.uncopied import Uncopied

Kind: TypeAlias = Literal["ray"]
BACKENDS = ("cuda", "host")


GRACE_S = 60.0


class Joined(Uncopied):
    """One system's part in a cluster, of which it has devices.

    Attributes:
        backend: of all of them.
        indices: the devices that there are.
    """

    def __init__(
        self, cluster: RayCluster | SshCluster, places: Places | FixedPlaces, backend: str
    ) -> None:
        self.backend, self.indices = backend, places.indices
        self._cluster = cluster
        self._places: Where = places
        self._leave = weakref.finalize(self, cluster.leave)

    def spawner(
        self, local: Spawner, arena: Arena, event_loop: EventLoop, pipe: MakePipe
    ) -> ClusterSpawner:
        """Return what starts contexts where their devices are."""
        return ClusterSpawner(local, self._cluster, self._places, arena, event_loop, pipe)

    def leave(self) -> None:
        """End the connection to the cluster, if it was made for this."""
        self._leave()


class Reach(NamedTuple):
    """How a machine is reached by ssh; `System` says what each means."""

    python: str | None = None
    grace_s: float | None = None
    ssh: str | Sequence[str] = "ssh"


def join(
    cluster: Any,
    backend: Any,
    devices: int | list[int] | None,
    suspend_after_s: float | None,
    reach: Reach,
) -> Joined | None:
    """Return a part in the cluster, None where there is to be none.

    Raises:
        BackendUnavailable: there is no such cluster or machine, or it has not what is needed.
        InvalidArgument: no such kind, or no room; or devices there are to be suspended.
    """
    if isinstance(backend, str) and backend.startswith(SCHEME):
        if cluster is not None:
            raise InvalidArgument(f"cluster={cluster!r}: {backend} says where the devices are")
        cluster, backend = backend, "auto"
    is_far = isinstance(cluster, str) and cluster.startswith(SCHEME)
    if reach != Reach() and not is_far:
        raise InvalidArgument("python, grace_s and ssh are for System('ssh://user@host') alone")
    if cluster is None:
        return None
    if not is_far:
        require_word(cluster, "cluster", (*get_args(Kind), f"{SCHEME}user@host"))
    if suspend_after_s is not None:
        raise InvalidArgument(
            "suspend_after_s: a device on another machine has no way to keep what it holds here"
        )
    return _by_ssh(cluster, backend, devices, reach) if is_far else _by_ray(backend, devices)


def _by_ssh(url: str, backend: str, devices: int | list[int] | None, reach: Reach) -> Joined:
    grace_s = GRACE_S if reach.grace_s is None else reach.grace_s
    if grace_s:
        grace_s = require_seconds(grace_s, "grace_s")
    found = target(url, reach.python, reach.ssh)
    asked = devices if devices is None or isinstance(devices, int) else list(devices)
    cluster = SshCluster(found, backend, asked, grace_s)
    places = FixedPlaces(cluster.nodes(), cluster.indices)
    return Joined(cluster, places, cluster.backend)


def _by_ray(backend: str, devices: int | list[int] | None) -> Joined:
    if isinstance(devices, list | tuple | range):
        raise InvalidArgument(
            f"devices={devices!r}: in a cluster say how many there are to be, or None"
        )
    wanted = None if devices is None else require_count(devices, "devices")
    cluster = RayCluster()
    try:
        if backend == "auto":
            backend = "cuda" if cluster.has_cards() else "host"
        require_word(backend, "backend", BACKENDS)
        cluster.backend = backend
        places = Places(cluster.nodes(), wanted, 1 if backend == "host" else None)
    except BaseException:
        cluster.leave()
        raise
    return Joined(cluster, places, backend)
