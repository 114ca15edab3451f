"""A recorded program in its context: messages whose operands are the program's own buffers.

Before it is run it is bound: its buffers are given the arrays of a launch, and afterwards they let
go of them. So nothing is kept that the notebook has freed, and one program serves any operands.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, get_origin

import msgspec

from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.launch import LibraryActor
from accel_lab.compute.execution.stream import Storage, Stream
from accel_lab.compute.graph.messages import OfGraph
from accel_lab.compute.graph.plan import Branch, Call, Place, Plan
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import Operation, Spec, travelling
from accel_lab.compute.message.results import ids_of
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.plan_cache import keep_all

_NOTHING: Callable[[], object] = lambda: None  # noqa: E731 - nobody looks at the steps


class Message:
    """A message of a program.

    Attributes:
        message: with the program's buffers for operands, and the numbers of this launch.
        actor: whose handler enqueues it.
        result: the slot of its result; -1 for none.
        places: where numbers of a launch stand in it.
    """

    __slots__ = ("actor", "handler", "message", "places", "result", "spec")

    def __init__(self, message: Any, actor: LibraryActor, handler: str, call: Call) -> None:
        self.message = message
        self.actor = actor
        self.handler: Callable[[Any, Any], None] = getattr(actor, handler)
        self.result: int = call.result
        self.spec: Spec | None = call.spec
        self.places: tuple[Place, ...] = call.places


class Fork(NamedTuple):
    """A branch of a program.

    Attributes:
        kind: as of a `Branch`.
        condition: the buffer that decides.
        bodies: what is run.
    """

    kind: str
    condition: Buffer
    bodies: tuple[tuple["Message | Fork", ...], ...]


class Runner(Protocol):
    """How the steps of a program are enqueued; a backend's.

    Attributes:
        held: what has to live as long as what is enqueued may come again.
        runs_user_code: whether kernels of the user's are run, too.
    """

    held: list[Any]
    runs_user_code: bool

    def launch(self, program: "Program", one: Message) -> Any:
        """Return the launch of a message."""

    def fork(self, fork: Fork, run: Callable[[Sequence[Any]], None]) -> None:
        """Run a branch, given what runs a body."""


class Unordered(Storage):
    """The memory of an operand, whose order is the whole graph's: the parts need not see to it."""

    __slots__ = ()

    def read_on(self, stream: Stream) -> None:
        """Do nothing."""

    def write_on(self, stream: Stream) -> None:
        """Do nothing."""


class Program:
    """What was recorded, with actors and memory of its own; for the dispatcher thread.

    Parameters:
        stream: that of all graphs, on which one launch follows the other.

    Attributes:
        steps: what is run.
        messages: the steps that are messages, those in branches, too.
        own_bytes: the memory of the results that have no handle.
    """

    def __init__(self, context: Context, plan: Plan, stream: Stream) -> None:
        self.context = context
        self.stream = stream
        self.own_bytes = 0
        self._plan = plan
        self._buffers = [Buffer(number) for number in range(plan.slots)]
        self._given = [*plan.reads, *plan.writes]
        self._placed = {slot.number for slot in (*self._given, *plan.own)}  # have memory
        self._actors: dict[str, LibraryActor] = {}
        self._numbers: tuple[Any, ...] = tuple(plan.numbers)
        self._own: list[Any] = []
        self._shared: set[int] = set()  # operands whose memory another one has, too
        self._views: dict[int, int] = {}  # by slot what it is a view of
        self._decode = _decoder(self._buffers)
        for slot in (*self._given, *plan.own):
            buffer = self._buffers[slot.number]
            buffer.learn(slot.shape, slot.dtype or "handle")
        self.messages: list[Message] = []
        self.steps = self._steps(plan.steps)
        places = {slot.number: at for at, slot in enumerate(self._given)}
        self._named = [{places.get(one, one) for one in self._names(step)} for step in self.steps]

    def _steps(self, steps: Iterable[Call | Branch]) -> tuple[Message | Fork, ...]:
        return tuple([self._step(one) for one in steps])

    def _step(self, step: Call | Branch) -> Message | Fork:
        if isinstance(step, Branch):
            condition = self._buffers[step.condition]
            return Fork(step.kind, condition, tuple(map(self._steps, step.bodies)))
        message = self._decode(step.message)
        route = self.context.routes.get(type(message))
        if route is None:
            name = type(message).__name__
            raise InvalidArgument(f"RecordGraph: no library actor of this context handles {name}")
        made = Message(message, self._actor(message.library), route.handler.__name__, step)
        self.messages.append(made)
        if step.spec is not None:
            self._buffers[step.result].learn(*step.spec)
        if message.aliased and step.result not in self._placed:
            self._views[step.result] = self._root(getattr(message, message.aliased).id)
        return made

    def _actor(self, library: str) -> LibraryActor:
        actor = self._actors.get(library)
        if actor is None:
            if library == "graph":  # a graph in a graph: it has its own
                return self.context.actors[library]
            actor = self._actors[library] = self.context.another(library, self.stream)
            keep_all(actor.lib)
        return actor

    def _root(self, slot: int) -> int:
        return self._views.get(slot, slot)

    def _names(self, step: Message | Fork) -> Iterator[int]:
        """Yield what a step depends on: slots, and numbers from -1 downwards."""
        if isinstance(step, Fork):
            yield self._root(step.condition.id)
            for body in step.bodies:
                for one in body:
                    yield from self._names(one)
            return
        yield from (self._root(operand.id) for operand in step.message.operands())
        yield from (-1 - place.number for place in step.places)
        if step.result >= 0:
            yield from (self._root(id_ - 1) for id_ in ids_of(step.message, step.result + 1))

    # Its operands.

    def bind(
        self,
        reads: Sequence[Ref[Any]],
        writes: Sequence[AccelRef],
        numbers: Sequence[Any],
        stream: Stream,
    ) -> None:
        """Give the program the operands of a launch.

        Raises:
            InvalidArgument: they are not those of this program.
            OutOfMemory: there is no room for what is its own.
        """
        self._require_fit(reads, writes, numbers)
        if self._plan.own and not self._own:
            self._allocate()
        if tuple(numbers) != self._numbers:
            self._renumber(tuple(numbers))
        memory: dict[Any, tuple[int, Storage]] = {}
        self._shared = set()
        for at, (slot, ref) in enumerate(zip(self._given, (*reads, *writes), strict=True)):
            operand: Any = ref
            buffer = self._buffers[slot.number]
            first, storage = memory.setdefault(operand.storage, (at, Unordered(stream, 0, "")))
            if first != at:
                self._shared |= {first, at}
            buffer.array, buffer.storage = operand.array, storage
        for slot, array in zip(self._plan.own, self._own, strict=True):
            buffer = self._buffers[slot.number]
            buffer.array, buffer.storage = array, Unordered(stream, 0, "")
        for actor in self._actors.values():
            actor.forget_addresses()

    def release(self) -> None:
        """Let go of the operands."""
        for buffer in self._buffers:
            buffer.array = buffer.storage = None

    def addresses(self) -> tuple[Any, ...]:
        """Return where the operands of a launch lie, and the numbers: the same is the same work."""
        address = self.context.backend.address
        found = []
        for slot in self._given:
            array = self._buffers[slot.number].array
            at = address(array)
            found.append(id(array) if at is None else (at, array.strides))
        return (*found, *self._numbers)

    def operands(self) -> list[Any]:
        """Return the arrays and things that it is bound to."""
        return [self._buffers[slot.number].array for slot in self._given]

    def written_arrays(self) -> list[Any]:
        """Return those of them that it writes."""
        return [self._buffers[slot.number].array for slot in self._plan.writes]

    def is_written(self, at: int) -> bool:
        """Whether it writes to an operand, given its place."""
        return at >= len(self._plan.reads)

    def is_alone(self, at: int) -> bool:
        """Whether no other operand has the memory of this one."""
        return at not in self._shared

    def replace(self, at: int, array: Any) -> None:
        """Bind the program to another array in an operand's place."""
        self._buffers[self._given[at].number].array = array

    def views(self) -> set[int]:
        """Return the numbers of the steps that make a view, which others may need to be run."""
        return {
            number
            for number, step in enumerate(self.steps)
            if isinstance(step, Message) and step.result in self._views
        }

    def is_view(self, slot: int) -> bool:
        """Whether what stands there has another one's memory."""
        return slot in self._views

    def steps_that_name(self, changed: Collection[int]) -> list[int]:
        """Return the numbers of the steps that depend on what stands at these of `addresses`."""
        count = len(self._given)
        wanted = {at if at < count else count - 1 - at for at in changed}
        return [number for number, named in enumerate(self._named) if named & wanted]

    def _require_fit(
        self, reads: Sequence[Any], writes: Sequence[Any], numbers: Sequence[Any]
    ) -> None:
        counts = len(reads), len(writes), len(numbers)
        plan = self._plan
        expected = len(plan.reads), len(plan.writes), len(plan.numbers)
        if counts != expected:
            raise InvalidArgument(
                f"the graph takes {expected} operands to read, to write, and numbers, not {counts}"
            )
        for slot, ref in zip(self._given, (*reads, *writes), strict=True):
            if slot.dtype and (ref.shape != slot.shape or ref.dtype != slot.dtype):
                raise InvalidArgument(
                    f"an operand of the graph is {slot.dtype}{list(slot.shape)}, and what was "
                    f"given {ref.dtype}{list(ref.shape)}"
                )

    def _allocate(self) -> None:
        made = [self.context.allocate(slot.shape, slot.dtype) for slot in self._plan.own]
        self._own = [array for array, _ in made]
        self.own_bytes = sum(nbytes for _, nbytes in made)

    def _renumber(self, numbers: tuple[Any, ...]) -> None:
        """Put the numbers of a launch into the messages.

        Raises:
            InvalidArgument: a message with one of them would make something else.
        """
        old = self._numbers
        changed = [
            (one, self._renumbered(one, numbers))
            for one in self.messages
            if any(numbers[place.number] != old[place.number] for place in one.places)
        ]
        for one, message in changed:
            one.message = message
        self._numbers = numbers

    def _renumbered(self, one: Message, numbers: tuple[Any, ...]) -> Any:
        fields: dict[str, Any] = {}
        for place in one.places:
            number = numbers[place.number]
            if place.plus:
                number += place.plus
            if place.at >= 0:
                whole = fields.get(place.field, getattr(one.message, place.field))
                number = (*whole[: place.at], number, *whole[place.at + 1 :])
            fields[place.field] = number
        message = msgspec.structs.replace(one.message, **fields)
        if one.spec is not None and message.infer() != one.spec:
            name = type(message).__name__
            raise InvalidArgument(
                f"{name} would make {message.infer()}, and was recorded with {one.spec}"
            )
        return message

    def forget_addresses(self) -> None:
        """Have the program's actors take every buffer anew."""
        for actor in self._actors.values():
            actor.forget_addresses()

    # Running it.

    def run(self, runner: Runner, after: Callable[[], object] = _NOTHING) -> None:
        """Enqueue its steps as they are bound.

        Parameters:
            after: called behind each step that is not in a branch.
        """
        for step in self.steps:
            self._run(step, runner)
            after()

    def run_steps(self, steps: Sequence[Message | Fork], runner: Runner) -> None:
        """Enqueue some of its steps."""
        for step in steps:
            self._run(step, runner)

    def _run(self, step: Message | Fork, runner: Runner) -> None:
        if type(step) is Message:
            message = step.message
            is_users = message.runs_user_code and not isinstance(message, OfGraph)
            if is_users and not runner.runs_user_code:
                return
            launch = runner.launch(self, step)
            step.handler(message, launch)
            launch.require_enqueued()
        elif isinstance(step, Fork):
            runner.fork(step, lambda body: self.run_steps(body, runner))

    def buffer(self, slot: int) -> Buffer:
        """Return the buffer of a slot."""
        return self._buffers[slot]

    def close(self) -> None:
        """Give back the actors' handles and the program's memory."""
        self._own, self.own_bytes = [], 0
        for actor in self._actors.values():
            actor.close()
        self._actors.clear()


def _decoder(buffers: Sequence[Buffer]) -> Callable[[Any], Any]:
    """Return what decodes a message, in which slots stand for buffers."""

    def buffer_of(kind: Any, value: Any) -> Any:
        if kind is AccelRef or get_origin(kind) in (Handle, Ref):
            if type(value) is int and 0 <= value < len(buffers):
                return buffers[value]
            raise InvalidArgument(f"RecordGraph: body names slot {value!r}, which it does not have")
        raise TypeError(f"nothing recorded is a {kind.__name__}")

    kinds = {kind.__struct_config__.tag: kind for kind in travelling()}

    def decode(data: Any) -> Operation[Any]:
        try:
            tag = msgspec.msgpack.decode(data)[0]
            message: Operation[Any] = msgspec.msgpack.decode(
                data, type=kinds[tag], dec_hook=buffer_of
            )
        except (msgspec.DecodeError, LookupError, TypeError) as error:
            text = f"RecordGraph: body has a message that cannot be read: {error}"
            raise InvalidArgument(text) from None
        return message

    return decode
