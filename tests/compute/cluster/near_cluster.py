"""A cluster whose nodes are all in this process: no Ray, but the same contexts and relays."""

import os
import pickle
import signal
import threading
from contextlib import suppress
from typing import Any

import pytest

from accel_lab.compute.cluster.entries import Down, Up
from accel_lab.compute.cluster.node import Contexts
from accel_lab.compute.cluster.places import Node
from accel_lab.compute.cluster.relay import NodeLost
from accel_lab.errors import BackendUnavailable


def _sent(what: Any) -> Any:
    """Return it as it arrives on another machine: a copy, with arrays that may not be written."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(what, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytes(one) for one in buffers])  # noqa: S301 - just written


class NearMachine:
    """One node."""

    is_mute = is_entered = False

    def __init__(self, node: Node, cluster: "NearCluster") -> None:
        self.name = node.name
        self.contexts: Contexts | None = None
        self.batches: list[int] = []
        """How many entries each batch had that went down."""
        self._node = node
        self._cluster = cluster
        self._dead = threading.Event()

    def begin(self) -> None:
        if refusal := self._cluster.refusals.get(self._node.id):
            raise BackendUnavailable(refusal)
        self.contexts = Contexts(self._cluster.loads or self._cluster.backend, "")

    def down(self, entries: list[Down]) -> None:
        self._require()
        self.batches.append(len(entries))
        assert self.contexts is not None
        self.contexts.down(_sent(entries))
        self._require()

    def up(self, timeout_s: float) -> list[Up] | None:
        while True:
            self._require()
            assert self.contexts is not None
            found = self.contexts.up(min(timeout_s, 0.02))
            if found is None or found:
                self._require()
                return None if found is None else _sent(found)

    def close(self) -> None:
        if self.contexts is not None:
            self.contexts.close()

    def die(self) -> None:
        """Be gone at once, with every context."""
        self._dead.set()
        self._cluster.up.pop(self._node.id)
        assert self.contexts is not None
        for process in list(self.contexts._spawner.processes.values()):
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        self.contexts.close()

    def _require(self) -> None:
        if self._dead.is_set():
            raise NodeLost("it was switched off")


class NearCluster:
    """Some nodes; the one that is named `own` is this process's."""

    own = "own"
    is_apart = False

    def __init__(self, **rooms: int) -> None:
        self.backend = "host"
        self.up = {name: Node(name, f"node-{name}", room) for name, room in rooms.items()}
        self.loads = ""
        """What nodes are to load in place of the backend."""
        self.refusals: dict[str, str] = {}
        self.machines: dict[str, NearMachine] = {}
        self.has_left = False

    def has_cards(self) -> bool:
        return False

    def nodes(self) -> list[Node]:
        return list(self.up.values())

    def machine(self, node: Node) -> NearMachine:
        self.machines[node.id] = made = NearMachine(node, self)
        return made

    def leave(self) -> None:
        self.has_left = True


def use(cluster: NearCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have systems join this one."""
    monkeypatch.setattr("accel_lab.compute.cluster.joined.RayCluster", lambda: cluster)
