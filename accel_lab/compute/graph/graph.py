"""A recorded block of messages, and what the notebook can do with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import numpy as np

from accel_lab.actor.reply import Reply
from accel_lab.compute.graph.drawing import as_dot, as_page
from accel_lab.compute.graph.messages import (
    LaunchGraph,
    RecordedGraph,
    RecordGraph,
    Reserve,
    TimeGraph,
)
from accel_lab.compute.graph.parameter import KINDS, Parameter, parameter
from accel_lab.compute.graph.plan import Branch
from accel_lab.compute.graph.recording import Counted, Node, Recording
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import OWN_TIMEOUT
from accel_lab.compute.requests.message_cache import MessageCache
from accel_lab.errors import InvalidArgument
from accel_lab.uncopied import Address


class Graph(Address):
    """Messages that are sent as one: `with gpu.graph(x=x) as g: …`, then `g.launch(x=other)`.

    In the block messages of this thread to this device are looked at and recorded, not sent; each
    returns its handle as always. Those of the results hold zeros until the first launch, and each
    launch overwrites them. Named operands can be changed with each launch, for buffers of the same
    shape and dtype, and numbers. `g["name"]` is what stands for one in the block.

    Attributes:
        device: where it runs.
        results: the buffers that the block has made and you have kept handles of, in order.
    """

    _instead = "it belongs to one device: record the block where you need it"

    def __init__(self, device: Any, operands: dict[str, Any]) -> None:
        self.device = device
        self._named: dict[str, Any] = {}
        self._numbers: dict[str, int] = {}
        self._used: set[int] = set()
        values: list[Any] = []
        ids: dict[int, str] = {}
        for name, value in operands.items():
            if name == "timeout_s":
                raise InvalidArgument("graph: timeout_s is the launch's own; name it otherwise")
            if isinstance(value, AccelRef):
                if value.device is not device:
                    raise InvalidArgument(
                        f"graph: {name} is on {value.device.name}, and the graph on {device.name}"
                    )
                if value.id in ids:
                    raise InvalidArgument(f"graph: {name} and {ids[value.id]} are one buffer")
                ids[value.id] = name
                self._named[name] = value
            elif type(value) in KINDS:
                self._numbers[name] = len(values)
                self._named[name] = parameter(value, len(values))
                values.append(value)
            else:
                raise InvalidArgument(
                    f"graph: {name} is a buffer or a number that launches may change, not a "
                    f"{type(value).__name__}"
                )
        self._values = values
        self._recording: Recording | None = None
        self._ref: Handle[RecordedGraph] | None = None
        self._closed = False
        self._body = b""
        self._nodes: list[Node] = []
        self._counted: list[Counted] = []
        self._reads: tuple[Ref[Any], ...] = ()
        self._writes: tuple[AccelRef, ...] = ()
        self._places: dict[str, tuple[bool, int]] = {}
        self._totals: list[int] = []
        self._repeats = MessageCache()
        self._seconds: list[float] | None = None
        self.results: tuple[AccelRef, ...] = ()

    # Recording.

    def __enter__(self) -> Self:
        """Record what this thread sends to the device from here on.

        Raises:
            InvalidArgument: it is recorded already, or this device records another block.
        """
        if self._ref is not None or self._closed:
            raise InvalidArgument("graph: it is recorded already; clone() it, or record another")
        outbox = self.device.requests.outbox
        if outbox.recording is not None:
            text = f"graph: {self.device.name} is recording a block already; launch one inside it"
            raise InvalidArgument(text)
        self._recording = outbox.recording = Recording(outbox, [*self._values])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        """End the block and have the device take the graph; nothing, where the block has failed."""
        recording, self._recording = self._recording, None
        assert recording is not None
        self.device.requests.outbox.recording = None
        self._totals = [one.counter.take(0) - one.begin for one in recording.counted]
        for one in recording.counted:
            one.counter.give_back(one.begin)
        if kind is not None:
            return
        named = tuple(one for one in self._named.values() if isinstance(one, AccelRef))
        written = recording.finish(named)
        self._nodes, self._counted = recording.nodes, recording.counted
        self._values, self._used = recording.numbers, recording.used
        self._body = recording.encoded(written.plan)
        self._adopt(written.reads, written.writes, written.results)

    def _adopt(
        self,
        reads: tuple[Ref[Any], ...],
        writes: tuple[AccelRef, ...],
        results: tuple[AccelRef, ...],
    ) -> None:
        self._reads, self._writes, self.results = reads, writes, results
        for name, ref in self._named.items():
            for is_written, group in ((False, reads), (True, writes)):
                at = next(
                    (i for i, one in enumerate(group) if one.id == getattr(ref, "id", -1)), -1
                )
                if at >= 0:
                    self._places[name] = is_written, at
        self._ref = self.device.ask(RecordGraph(self._body))

    def __getitem__(self, name: str) -> Any:
        """Return what stands for a named operand in the block.

        Raises:
            InvalidArgument: no operand has this name.
        """
        if name not in self._named:
            raise self._unknown(name)
        return self._named[name]

    @contextmanager
    def when(self, condition: AccelRef) -> Iterator[None]:
        """Record what follows to be run only where the condition on the device is not zero.

        `otherwise()` directly behind it says what is run else.
        """
        with self._in_block().branch("if", condition) as branch, self._in_block().body(branch):
            yield

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Record what is run where the condition of the `when` before this is zero.

        Raises:
            InvalidArgument: there is none directly before.
        """
        recording = self._in_block()
        last = recording.last
        if not isinstance(last, Branch) or last.kind != "if" or len(last.bodies) != 1:
            raise InvalidArgument("graph: otherwise() stands directly behind the block of a when()")
        with recording.body(last):
            yield

    @contextmanager
    def loop(self, condition: AccelRef) -> Iterator[None]:
        """Record what follows to be run as long as the condition on the device is not zero.

        It is looked at before each pass, so the block has to write to it.
        """
        with self._in_block().branch("while", condition) as branch, self._in_block().body(branch):
            yield

    @contextmanager
    def switch(self, index: AccelRef) -> "Iterator[Switch]":
        """Record blocks of which the index on the device says which is run: none, where it is off.

        `with g.switch(i) as s:`, and in it `with s.case(): …` for 0, for 1, and so on.

        Raises:
            InvalidArgument: there is no case.
        """
        with self._in_block().branch("switch", index) as branch:
            yield Switch(self._in_block(), branch)
            if not branch.bodies:
                raise InvalidArgument("graph: a switch has at least one case()")

    def _in_block(self) -> Recording:
        if self._recording is None:
            raise InvalidArgument("graph: this stands inside the block that is recorded")
        return self._recording

    # Launching.

    def launch(self, *, timeout_s: float | None = OWN_TIMEOUT, **changed: Any) -> Reply[None]:
        """Run it once, with some operands changed for this time; does not block.

        Raises:
            InvalidArgument: no operand has this name, or what is given does not fit in its place.
            StaleRef: a buffer of it is no more, or it was closed.
        """
        reply: Reply[None] = self._send(LaunchGraph, changed, timeout_s, self._repeats)
        return reply

    def time(self, **changed: Any) -> list[float]:
        """Run it once, message by message, and return how many seconds each has taken; blocks.

        The drawing has them from then on.

        Raises:
            InvalidArgument: as `launch`.
        """
        seconds: list[float] = self._send(TimeGraph, changed, OWN_TIMEOUT, None).result()
        self._seconds = seconds
        return seconds

    def _send(
        self,
        kind: Any,
        changed: dict[str, Any],
        timeout_s: float | None,
        repeats: MessageCache | None,
    ) -> Any:
        if self._ref is None:
            what = "was closed" if self._closed else "is not recorded yet"
            raise InvalidArgument(
                f"graph: it {what}; record another with {self.device.name}.graph()"
            )
        reads, writes, numbers = self._reads, self._writes, self._values
        if changed:
            reads, writes, numbers = self._with(changed)
        if not self._counted:
            return self._ask(kind, reads, writes, tuple(numbers), timeout_s, repeats)
        numbers = list(numbers)
        taken = [
            one.counter.take(total) for one, total in zip(self._counted, self._totals, strict=True)
        ]
        for one, offset in zip(self._counted, taken, strict=True):
            numbers[one.number] = offset
        recording = self.device.requests.outbox.recording
        try:
            reply = self._ask(kind, reads, writes, tuple(numbers), timeout_s, None)
            if recording is not None and recording.is_here:
                for one, offset in zip(self._counted, taken, strict=True):
                    recording.counts("numbers", one.counter, offset, one.number)
        except BaseException:
            for one, offset in zip(self._counted, taken, strict=True):
                one.counter.give_back(offset)
            raise
        return reply

    def _ask(
        self,
        kind: Any,
        reads: tuple[Ref[Any], ...],
        writes: tuple[AccelRef, ...],
        numbers: tuple[Any, ...],
        timeout_s: float | None,
        repeats: MessageCache | None,
    ) -> Any:
        count = len(reads)

        def make(ref: Any, *given: Any) -> Any:
            return kind(ref, given[:count], given[count : count + len(writes)], numbers)

        if repeats is None or numbers:
            return self.device.ask(make(self._ref, *reads, *writes), timeout_s=timeout_s)
        return self.device.ask_of(kind, (self._ref, *reads, *writes), make, timeout_s, repeats)

    def _with(self, changed: dict[str, Any]) -> tuple[Any, Any, Any]:
        """Return the operands with some of them changed.

        Raises:
            InvalidArgument: one does not fit.
        """
        groups: list[list[Any]] = [[*self._reads], [*self._writes]]
        numbers = [*self._values]
        for name, value in changed.items():
            if name in self._numbers:
                numbers[self._numbers[name]] = self._number(name, value)
                continue
            before = self._named.get(name)
            if before is None:
                raise self._unknown(name)
            found = f"a {type(value).__name__}"
            if isinstance(value, AccelRef):
                found = f"{value.dtype}{list(value.shape)} on {value.device.name}"
            expected = f"{before.dtype}{list(before.shape)} on {self.device.name}"
            if found != expected:
                raise InvalidArgument(f"graph: {name} is {expected}, and what was given {found}")
            if name in self._places:
                is_written, at = self._places[name]
                groups[is_written][at] = value
        return tuple(groups[0]), tuple(groups[1]), numbers

    def _number(self, name: str, value: Any) -> Any:
        at = self._numbers[name]
        recorded = self._values[at]
        if isinstance(value, Parameter) and type(value.value) is type(recorded):
            found: Any = value  # of the block in which this is launched
        else:
            plain = value.item() if isinstance(value, np.generic) else value
            fits = {int: (int,), float: (int, float), complex: (int, float, complex)}
            if type(plain) not in fits[type(recorded)]:
                text = f"graph: {name} is a {type(recorded).__name__}, and what was given {value!r}"
                raise InvalidArgument(text)
            found = type(recorded)(plain)
        if at not in self._used and (isinstance(found, Parameter) or found != recorded):
            text = f"graph: no message of the block has {name}, so launches cannot change it"
            raise InvalidArgument(f"{text}; give it g[{name!r}] as it is")
        return found

    def _unknown(self, name: str) -> InvalidArgument:
        known = ", ".join(self._named) or "no operand"
        return InvalidArgument(f"graph: {name!r} names nothing; it was recorded with {known}")

    # The rest of its life.

    def clone(self) -> "Graph":
        """Return another graph of the same block, with results of its own."""
        if self._ref is None:
            raise InvalidArgument("graph: there is nothing to clone: it is not recorded")
        twin = Graph(self.device, {})
        twin._named, twin._numbers = self._named, self._numbers
        twin._values, twin._body, twin._nodes = self._values, self._body, self._nodes
        twin._used = self._used
        twin._counted, twin._totals = self._counted, self._totals
        own = {one.id: self.device.ask(Reserve(one.shape, str(one.dtype))) for one in self.results}
        writes = tuple(own.get(one.id, one) for one in self._writes)
        twin._adopt(self._reads, writes, tuple(own.values()))
        return twin

    def close(self) -> None:
        """Give back what it holds on the device; its results live on as long as your handles."""
        ref, self._ref, self._closed = self._ref, None, True
        if ref is not None:
            ref.free()
        self._reads, self._writes, self.results = (), (), ()

    @property
    def handle(self) -> Handle[RecordedGraph]:
        """The handle of the graph on the device: `result()` waits until it is there."""
        if self._ref is None:
            raise InvalidArgument("graph: it is not recorded")
        return self._ref

    def dot(self) -> str:
        """Return the graph in Graphviz's language: an edge for each buffer that is handed on."""
        return as_dot(self._nodes, self._seconds)

    def __repr__(self) -> str:
        if self._recording is not None:
            state = "recording"
        elif self._ref is None:
            state = "closed" if self._closed else "not recorded"
        else:
            state = f"{len(self._nodes)} messages, {len(self.results)} results"
        return f"<Graph on {self.device.name}, {state}>"

    def _repr_html_(self) -> str:
        return as_page(repr(self)[1:-1], self._nodes, self._seconds)


class Switch:
    """The cases of a branch."""

    def __init__(self, recording: Recording, branch: Branch) -> None:
        self._recording = recording
        self._branch = branch

    @contextmanager
    def case(self) -> Iterator[None]:
        """Record what is run for the next number, from 0 on."""
        with self._recording.body(self._branch):
            yield
