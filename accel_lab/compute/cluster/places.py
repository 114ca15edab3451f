"""Which node of the cluster each device of a system is on, and where there is room for another."""

import threading
from collections.abc import Iterable
from typing import NamedTuple

from accel_lab.errors import BackendUnavailable, InvalidArgument


class Node(NamedTuple):
    """A machine of the cluster.

    Attributes:
        id: the cluster's name for it.
        name: for people.
        room: how many devices it has room for.
    """

    id: str
    name: str
    room: int


class Place(NamedTuple):
    """Where a device is: on which node, and which of the devices there it is."""

    node: Node
    slot: int


class Places:
    """The places of the devices of one system, by their index; any thread.

    A device stays on its node for as long as that is there.

    Parameters:
        nodes: those there are, that of the notebook first.
        wanted: how many devices there are to be; None for `each` node's number of them.
        each: how many a node has when nobody says how many; None for all that it has room for.

    Raises:
        InvalidArgument: there is no room for so many, or for any.
    """

    def __init__(self, nodes: Iterable[Node], wanted: int | None, each: int | None) -> None:
        self._lock = threading.Lock()
        self._nodes = {node.id: node for node in nodes}
        self._at: dict[int, Place] = {}
        room = sum(node.room for node in self._nodes.values())
        number = room if wanted is None else wanted
        if not 0 < number <= room:
            raise InvalidArgument(
                f"devices={wanted} asks for {number} devices, and the cluster has room for {room}: "
                f"{self._listed() or 'no node is there'}"
            )
        turn, most = 0, number if wanted is not None or each is None else each
        while len(self._at) < number and turn < most:
            for node in self._nodes.values():
                if turn < node.room and len(self._at) < number:
                    self._at[len(self._at)] = Place(node, turn)
            turn += 1

    @property
    def indices(self) -> list[int]:
        """The devices that there are."""
        return list(self._at)

    def of(self, index: int) -> Place | None:
        """Return where a device is; None while its node is gone."""
        with self._lock:
            return self._at.get(index)

    def place(self, index: int) -> Place:
        """Return where a device is to be: where it was, or else on the node with most room.

        Raises:
            BackendUnavailable: no node has room for it.
        """
        with self._lock:
            if index in self._at:
                return self._at[index]
            taken = {(place.node.id, place.slot) for place in self._at.values()}
            free = {
                node: [one for one in range(node.room) if (node.id, one) not in taken]
                for node in self._nodes.values()
            }
            node = max(free, key=lambda one: len(free[one]), default=None)
            if node is None or not free[node]:
                raise BackendUnavailable(
                    f"its node is gone, and no other one has room: {self._listed() or 'none is up'}"
                )
            place = self._at[index] = Place(node, free[node][0])
            return place

    def gone(self, id_: str) -> None:
        """Forget a node: its devices have no place until they get another."""
        with self._lock:
            self._nodes.pop(id_, None)
            self._at = {index: at for index, at in self._at.items() if at.node.id != id_}

    def update(self, nodes: Iterable[Node]) -> None:
        """Take over which nodes there are."""
        found = {node.id: node for node in nodes}
        with self._lock:
            self._nodes = found
            self._at = {index: at for index, at in self._at.items() if at.node.id in found}

    def _listed(self) -> str:
        return ", ".join(f"{node.name} for {node.room}" for node in self._nodes.values())
