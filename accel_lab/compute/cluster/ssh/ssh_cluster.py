"""A cluster of one machine, which ssh reaches: all devices are there, and stay there."""

import threading
from collections.abc import Iterable

from accel_lab.compute.cluster.places import Node, Place
from accel_lab.compute.cluster.ssh.ssh_machine import SshMachine
from accel_lab.compute.cluster.ssh.target import Target
from accel_lab.errors import BackendUnavailable


class SshCluster:
    """The far machine of one system; connects at once.

    Attributes:
        own: no node, for none is this process's.
        is_apart: True, for what is there has files of its own.

    Raises:
        BackendUnavailable: it is not reached, or has not what is needed.
        InvalidArgument: it has no such backend or devices.
    """

    own = ""
    is_apart = True

    def __init__(
        self, target: Target, backend: str, devices: int | list[int] | None, grace_s: float
    ) -> None:
        self._target = target
        self._grace_s = grace_s
        self._lock = threading.Lock()
        self._number = 0
        self._machine = SshMachine(target, backend, devices, grace_s)
        self._machine.begin()
        self.backend, self.indices = self._machine.backend, self._machine.indices

    def nodes(self) -> list[Node]:
        """Return the machine; as another node when it was lost."""
        with self._lock:
            if self._machine.is_over:
                self._number += 1
                self._machine = SshMachine(self._target, self.backend, self.indices, self._grace_s)
            return [
                Node(f"{self._target.place} {self._number}", self._target.place, len(self.indices))
            ]

    def machine(self, node: Node) -> SshMachine:
        """Return what owns contexts there."""
        del node
        return self._machine

    def leave(self) -> None:
        """End the far process, if a relay has not; a second call is fine."""
        self._machine.close()


class FixedPlaces:
    """The places of devices that have one each, on one machine; any thread.

    Attributes:
        indices: the devices that there are.
    """

    def __init__(self, nodes: Iterable[Node], indices: list[int]) -> None:
        self.indices = indices
        self._node: Node | None = None
        self.update(nodes)

    def of(self, index: int) -> Place | None:
        """Return where a device is; None while the machine is gone."""
        node = self._node
        return None if node is None else Place(node, index)

    def place(self, index: int) -> Place:
        """Return where a device is to be.

        Raises:
            BackendUnavailable: the machine is gone.
        """
        place = self.of(index)
        if place is None:
            raise BackendUnavailable("the machine of this device is gone")
        return place

    def gone(self, id_: str) -> None:
        """Forget the machine."""
        node = self._node
        if node is not None and node.id == id_:
            self._node = None

    def update(self, nodes: Iterable[Node]) -> None:
        """Take over which machine there is."""
        self._node = next(iter(nodes), None)
