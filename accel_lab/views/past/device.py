"""One device, as its journal has described it so far."""

import math
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import NamedTuple

from accel_lab.actor.events import Event
from accel_lab.compute.arrays.dtypes import itemsize
from accel_lab.compute.events.lifecycle import (
    BuffersRebuilt,
    ContextLost,
    ContextStarted,
    GenerationChanged,
    RequestFailed,
)
from accel_lab.compute.events.samples import Block, MemorySampled
from accel_lab.compute.events.tree import Node, State
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import ContextReplaced
from accel_lab.journal.entries.entry import TAKEN_BACK, Entry, kind_of

ASKED_FOR = TAKEN_BACK | {ContextReplaced.__name__}
"""How a request fails that somebody wanted ended: that is no fault."""
_MEMORY = {"Managed": "managed", "Growing": "growing", "Shared": "shared"}
"""The memory of what a message makes, if it is not the pool's."""


class Buffer(NamedTuple):
    """A buffer that is there.

    Attributes:
        spec: None where the sender did not know it.
        owner: the message that made it, as "Gemm #12".
        root: the buffer whose memory it shares, itself where it has its own.
    """

    spec: Spec | None
    owner: str
    root: int


class JournalDevice:
    """A device after some entries of its journal.

    Parameters:
        model: what it is, as far as the journal tells.
        began: when its first context was asked for, in wall seconds; 0 where that is not known.
    """

    def __init__(
        self, name: str, model: str = "", *, generation: int = 1, began: float = 0
    ) -> None:
        self.name = name
        self._model = model
        self._generation = generation
        self._began = began
        self._state: State = "starting"
        self._restarts = 0
        self._pid = 0
        self._cause = ""
        self._told = True  # whether the last change of generation was
        self._taken = 0  # how many requests the last loss took along
        self._libraries: dict[str, None] = {}
        self._buffers: dict[int, Buffer] = {}
        self._lost: dict[int, Buffer] = {}  # those of the generation before
        self._unshaped: dict[int, int] = {}  # requests whose result will tell a buffer's shape
        self.since = 0.0
        """Entries before this moment are gone, wall seconds; 0 where none is."""
        self._asks_generation = False

    def copy(self) -> "JournalDevice":
        """Return one that goes on by itself."""
        twin = JournalDevice(self.name)
        vars(twin).update({name: copy(value) for name, value in vars(self).items()})
        return twin

    def take(self, entry: Entry) -> Iterable[Event]:
        """Take the next entry, and return what it tells that no later look at the device can."""
        if self._asks_generation:
            self._generation, self._asks_generation = entry.generation, False
        if self._state == "not recorded" and entry.kind in _ANSWERS:
            self._state = "running"
        taken = _TAKE.get(entry.kind)
        return taken(self, entry) if taken is not None else ()

    def lose_track(self, at: float) -> None:
        """Know no more what it does and holds: entries up to now are gone."""
        self.since = at
        self._state, self._pid, self._asks_generation = "not recorded", 0, True
        self._buffers, self._lost, self._unshaped = {}, {}, {}

    def memory(self, at: float) -> MemorySampled:
        """Return its blocks, one after the other in the order in which they were made."""
        sharing: dict[int, list[int]] = {}
        for id_, buffer in self._buffers.items():
            sharing.setdefault(buffer.root, []).append(id_)
        blocks: list[Block] = []
        address = unlisted = 0
        for ids in sharing.values():
            spec, owner, _ = self._buffers[ids[0]]
            if spec is None:
                unlisted += 1
                continue
            size = math.prod(spec.shape) * itemsize(spec.dtype)
            memory = _MEMORY.get(owner.partition(" #")[0], "pool")
            rest = owner, spec.dtype, tuple(spec.shape), (), memory
            blocks.append(Block(tuple(ids), address, size, *rest))
            address += size
        return MemorySampled(
            at=at,
            device=self.name,
            generation=self._generation,
            used_bytes=address,
            total_bytes=None,
            blocks=tuple(blocks),
            unlisted=unlisted,
        )

    def node(self, system: str, in_flight: int) -> Node:
        """Return it with its context, and the libraries that it was sent something for."""
        path = f"{system}/{self.name}"
        generation = None if self._asks_generation else self._generation
        libraries = tuple(
            Node(name=name, path=f"{path}/context/{name}", kind="library", state=self._state)
            for name in sorted(self._libraries)
        )
        context = Node(
            name="context",
            path=f"{path}/context",
            kind="context",
            state=self._state,
            generation=generation,
            in_flight=in_flight,
            restarts=self._restarts,
            detail=f"process {self._pid}" if self._pid else "",
            pid=self._pid or None,
            children=libraries,
        )
        loss = f"last loss: {self._cause}" if self._cause else ""
        return Node(
            name=self.name,
            path=path,
            kind="device",
            state=self._state,
            generation=generation,
            in_flight=in_flight,
            restarts=self._restarts,
            detail=" · ".join(filter(None, (self._model, loss))),
            children=(context,),
        )

    def _sent(self, entry: Entry) -> Iterable[Event]:
        if entry.library:
            self._libraries[entry.library] = None
        kind = kind_of(entry.message[0])
        written = entry.fields.get(kind.written)
        for made, spec in entry.makes.items():
            if made == written:
                continue
            shared = self._buffers.get(entry.fields.get(kind.aliased, 0))
            root = made if shared is None else shared.root
            self._buffers[made] = Buffer(spec, f"{entry.title} #{entry.seq}", root)
            if spec is None:
                self._unshaped.setdefault(entry.seq, made)
        return ()

    def _freed(self, entry: Entry) -> Iterable[Event]:
        for id_ in entry.fields["ids"]:
            self._buffers.pop(id_, None)
            self._lost.pop(id_, None)
        return ()

    def _shaped(self, entry: Entry) -> Iterable[Event]:
        """Learn the shape of a result whose sender did not know it."""
        id_ = self._unshaped.pop(entry.seq, 0)
        id_ = entry.fields.get("id") or id_
        if id_ in self._buffers:
            spec = Spec(tuple(entry.fields["shape"]), entry.fields["dtype"])
            self._buffers[id_] = self._buffers[id_]._replace(spec=spec)
        return ()

    def _held(self, entry: Entry) -> Iterable[Event]:
        """Have the buffers inside an answer in place of it, which is none itself."""
        answer = self._buffers.pop(self._unshaped.get(entry.seq, 0), None)
        owner = f"Run #{entry.seq}" if answer is None else answer.owner
        for id_ in entry.fields["ids"]:
            self._buffers[id_] = Buffer(None, owner, id_)
        return ()

    def _start(self, entry: Entry) -> Iterator[Event]:
        if not self._told:
            yield self._turned(entry.at, entry.generation)
        self._generation, self._state, self._pid = entry.generation, "running", entry.fields["pid"]
        yield ContextStarted(
            at=entry.at,
            device=self.name,
            generation=self._generation,
            pid=self._pid,
            seconds=max(0.0, entry.at - self._began) if self._began else 0.0,
        )

    def _end(self, entry: Entry) -> Iterator[Event]:
        """Stop, as it also does when its system closes: only an explanation makes that a loss."""
        yield self.memory(entry.at)
        self._generation = entry.generation + 1
        self._state, self._pid, self._began = "stopped", 0, entry.at
        self._taken, self._told = len(entry.fields["in_flight"]), False
        self._lost, self._buffers = self._buffers, {}
        self._libraries, self._unshaped = {}, {}

    def _explained(self, entry: Entry) -> Iterator[Event]:
        self._cause = entry.fields["cause"]
        self._restarts += 1
        yield ContextLost(
            at=entry.at,
            device=self.name,
            generation=entry.generation,
            cause=self._cause,
            in_flight=self._taken,
            code=entry.fields["code"],
            name=entry.fields["name"],
            asked=entry.fields.get("asked", False),
        )
        if not self._told:
            self._state = "restarting"
            yield self._turned(entry.at, self._generation)

    def _turned(self, at: float, generation: int) -> Event:
        self._told = True
        return GenerationChanged(at=at, device=self.name, before=generation - 1, after=generation)

    def _failed(self, entry: Entry) -> Iterator[Event]:
        owner = entry.name if entry.name != entry.kind else f"#{entry.seq}"
        seq = f" #{entry.seq}"
        made = next((id_ for id_, one in self._buffers.items() if one.owner.endswith(seq)), None)
        if made is not None:
            del self._buffers[made]
        if entry.fields["kind"] not in ASKED_FOR:
            yield RequestFailed(
                at=entry.at,
                device=self.name,
                message=owner,
                error=f"{entry.fields['kind']}: {entry.fields['text']}",
                cell=entry.cell,
            )

    def _rebuilt(self, entry: Entry) -> Iterator[Event]:
        back = [id_ for id_ in entry.fields["buffers"] if id_ in self._lost]
        yield BuffersRebuilt(
            at=entry.at,
            device=self.name,
            generation=self._generation,
            buffers=len(entry.fields["buffers"]),
            lost=len(self._lost) - len(back),
            messages=entry.fields["messages"],
            requests=tuple(entry.fields["requests"]),
            seconds=entry.fields["seconds"],
        )
        self._buffers = {id_: self._lost[id_] for id_ in back} | self._buffers


_ANSWERS = {"result", "arrays", "rebuilt"}
"""Entries that only a context that runs can cause."""

_TAKE: dict[str, Callable[[JournalDevice, Entry], Iterable[Event]]] = {
    "message": JournalDevice._sent,  # noqa: SLF001  (its own methods by the kind of entry)
    "free": JournalDevice._freed,  # noqa: SLF001
    "result": JournalDevice._shaped,  # noqa: SLF001
    "arrays": JournalDevice._held,  # noqa: SLF001
    "context began": JournalDevice._start,  # noqa: SLF001
    "context ended": JournalDevice._end,  # noqa: SLF001
    "explained": JournalDevice._explained,  # noqa: SLF001
    "failed": JournalDevice._failed,  # noqa: SLF001
    "rebuilt": JournalDevice._rebuilt,  # noqa: SLF001
}
