"""Ray, which nobody else imports: the nodes of its cluster, an actor on each that owns contexts."""

import os
import threading
from contextlib import suppress
from typing import Any

from accel_lab.compute.cluster.entries import Down, Up
from accel_lab.compute.cluster.greeting import greeting
from accel_lab.compute.cluster.node import Contexts
from accel_lab.compute.cluster.places import Node
from accel_lab.compute.cluster.relay import NodeLost
from accel_lab.display.install import pip_install
from accel_lab.errors import BackendUnavailable

START_LIMIT_S = 60.0
CLOSE_LIMIT_S = 4.0
_RESOURCES = {"cuda": "GPU", "host": "CPU"}
"""What of a node says how many devices it has room for."""

_lock = threading.Lock()
_connected = 0
"""How many have joined by a connection that is ours."""


class RayCluster:
    """The Ray cluster that this process is connected to, or is connected to by this.

    Attributes:
        own: the node that this process is on.
        is_apart: False, for all nodes have the same files.

    Raises:
        BackendUnavailable: Ray is not installed, or no cluster runs.
    """

    is_apart = False

    def __init__(self) -> None:
        try:
            import ray
        except ImportError as error:
            text = f'System(cluster="ray") needs Ray; {pip_install("ray")}'
            raise BackendUnavailable(text) from error
        self._ray: Any = ray
        self._is_ours = _connect(ray)
        self.own: str = ray.get_runtime_context().get_node_id()
        self.backend = "host"

    def has_cards(self) -> bool:
        """Whether any node has a GPU; blocks for a moment."""
        return any("GPU" in one["Resources"] for one in self._ray.nodes() if one["Alive"])

    def nodes(self) -> list[Node]:
        """Return the nodes that are up, this process's first; blocks for a moment."""
        resource = _RESOURCES[self.backend]
        found = [
            Node(
                one["NodeID"],
                f"{one['NodeManagerHostname']}-{one['NodeID'][:8]}",
                int(one["Resources"].get(resource, 0)),
            )
            for one in self._ray.nodes()
            if one["Alive"]
        ]
        return sorted(found, key=lambda node: (node.id != self.own, node.name))

    def machine(self, node: Node) -> "RayMachine":
        """Return what owns contexts on a node; it has not begun."""
        return RayMachine(self._ray, node, self.backend)

    def leave(self) -> None:
        """End the connection, if it is ours and nobody else's any more; a second call is fine."""
        is_ours, self._is_ours = self._is_ours, False
        if is_ours:
            _disconnect(self._ray)


def _connect(ray: Any) -> bool:
    """Have this process connected to a cluster; return whether that was done here."""
    global _connected  # noqa: PLW0603 - Ray has one connection a process
    with _lock:
        if not ray.is_initialized():
            try:
                ray.init(address="auto", log_to_driver=False, logging_level="error")
            except ConnectionError as error:
                text = "no Ray cluster was found: start one by `ray start --head`, or call ray.init"
                raise BackendUnavailable(text) from error
        elif not _connected:
            return False  # the user has done it
        _connected += 1
        return True


def _disconnect(ray: Any) -> None:
    global _connected  # noqa: PLW0603 - as above
    with _lock:
        _connected -= 1
        if not _connected:
            ray.shutdown()


class RayMachine:
    """A node and its actor.

    With `cuda` the actor has all GPUs of the node, so that no other job gets one of them; with
    `host` it takes no resources, as what runs there shares the processors.
    """

    is_mute = is_entered = False

    def __init__(self, ray: Any, node: Node, backend: str) -> None:
        self.name = node.name
        self._ray = ray
        self._node = node
        self._backend = backend
        self._actor: Any = None

    def begin(self) -> None:
        """Start the actor, and see that it runs what runs here."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        kind = self._ray.remote(Contexts).options(
            num_cpus=0,
            num_gpus=self._node.room if self._backend == "cuda" else 0,
            max_concurrency=4,
            max_restarts=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(self._node.id, soft=False),
        )
        try:
            self._actor = kind.remote(self._backend, os.environ.get("OMP_NUM_THREADS", ""))
            found = self._ray.get(self._actor.greet.remote(), timeout=START_LIMIT_S)
        except self._ray.exceptions.GetTimeoutError as error:
            text = f"Ray has started no actor on {self.name} within {START_LIMIT_S:g} s"
            raise BackendUnavailable(text) from error
        except (Exception, SystemExit) as error:
            raise _lost(error) from error
        if found != greeting():
            ours = greeting()
            raise BackendUnavailable(
                f"{self.name} has accel_lab {found.accel_lab} on Python {found.python}, and this "
                f"process {ours.accel_lab} on Python {ours.python}: install the same on both"
            )

    def down(self, entries: list[Down]) -> None:
        """Have it do these; an argument with much data goes by the object store."""
        self._call(self._actor.down.remote, entries)

    def up(self, timeout_s: float) -> list[Up] | None:
        """Return what it says; an answer with much data comes by the object store."""
        found: list[Up] | None = self._call(self._actor.up.remote, timeout_s)
        return found

    def close(self) -> None:
        """Have it end its contexts, and end it."""
        actor, self._actor = self._actor, None
        if actor is None:
            return
        with suppress(Exception, SystemExit):  # it is gone, or hangs
            self._ray.get(actor.close.remote(), timeout=CLOSE_LIMIT_S)
        with suppress(Exception, SystemExit):
            self._ray.kill(actor)

    def _call(self, method: Any, argument: Any) -> Any:
        try:
            return self._ray.get(method(argument))
        except (Exception, SystemExit) as error:  # Ray ends with that who waits as it shuts down
            raise _lost(error) from error


def _lost(error: BaseException) -> NodeLost:
    """Say in a line what Ray says in many."""
    text = " ".join(str(error).split("\n", 1)[0].split())
    return NodeLost(f"{type(error).__name__}: {text}" if text else type(error).__name__)
