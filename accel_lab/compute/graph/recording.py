"""A block of messages as it is recorded: looked at as always, and written down instead of sent.

Each result gets a buffer of zeros at once, so a handle that the block returns is like any other. A
view is made at once, too. What the notebook has dropped when the block ends is the graph's own and
has no handle.
"""

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from accel_lab.actor.reply import Reply
from accel_lab.compute.graph.messages import Reserve
from accel_lab.compute.graph.parameter import Parameter, without_parameters
from accel_lab.compute.graph.plan import Branch, Call, Kind, Place, Plan, Slot, Step
from accel_lab.compute.graph.refusals import is_sent_at_once, require_recordable
from accel_lab.compute.message.buffer import FREED, AccelRef, Ref
from accel_lab.compute.message.operation import OWN_TIMEOUT, Operation, Spec, arrays_of, spec_text
from accel_lab.compute.message.results_reply import ResultsReply
from accel_lab.compute.output import cell_origin
from accel_lab.compute.requests.outbox import Outbox
from accel_lab.errors import DependencyFailed, InvalidArgument

Answering: TypeAlias = tuple[Any, tuple[int, ...]]
"""The handle of an answer, and the slots of what is made."""


class Counter(Protocol):
    """What numbers the words of random draws, as a generator."""

    def take(self, count: int) -> int:
        """Take the next so many words; return how many came before."""

    def give_back(self, offset: int) -> None:
        """Go back to where so many words have been taken."""


class Counted(NamedTuple):
    """A generator that draws in a block.

    Attributes:
        number: which number of a launch says where it begins.
        begin: how many words it had taken before.
    """

    counter: Counter
    number: int
    begin: int


class Node(NamedTuple):
    """A recorded step, for people.

    Attributes:
        title: what it is called.
        made: what it makes, in words.
        reads, writes: the slots.
        depth: in how many branches it stands.
    """

    title: str
    made: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    depth: int


class Written(NamedTuple):
    """What has come of a block.

    Attributes:
        plan: the program.
        reads, writes: what a launch is given, as it was recorded.
        results: what the block has made and the notebook has a handle of.
    """

    plan: Plan
    reads: tuple[Ref[Any], ...]
    writes: tuple[AccelRef, ...]
    results: tuple[AccelRef, ...]


class Recording:
    """What one thread sends to one device while its block lasts.

    Parameters:
        numbers: the values of those that launches may change.

    Attributes:
        nodes: the steps, in order.
        counted: the generators that draw.
        used: the numbers that a message has.
    """

    def __init__(self, outbox: Outbox, numbers: list[Any]) -> None:
        self.nodes: list[Node] = []
        self.counted: list[Counted] = []
        self.used: set[int] = set()
        self.numbers = numbers
        self._outbox = outbox
        self._thread = threading.get_ident()
        self._steps: list[Step] = []
        self._whole = self._steps
        self._depth = self._loops = 0
        self._slots: dict[int, int] = {}  # by the buffer's id
        self._specs: dict[int, Slot] = {}
        self._given: dict[int, Ref[Any]] = {}  # by slot
        self._made: dict[int, list[weakref.ref[AccelRef]]] = {}  # by slot, with all other handles
        self._kept: dict[int, AccelRef] = {}  # results that views are of
        self._views: dict[int, int] = {}  # by slot what it is a view of
        self._written: set[int] = set()
        self._count = 0
        self._passes = False
        self._encoder = msgspec.msgpack.Encoder(enc_hook=self._to_slot)

    @property
    def is_here(self) -> bool:
        """Whether this thread is in the block, and what it sends is recorded."""
        return threading.get_ident() == self._thread and not self._passes

    def take(self, message: Operation[Any]) -> Reply[Any] | None:
        """Record a message and return the handle of its answer; None for one to be sent as always.

        Raises:
            InvalidArgument: it cannot be in a graph; nothing of it is recorded.
            DependencyFailed: an operand was never made.
            StaleRef: an operand is no more.
        """
        kind = type(message)
        if is_sent_at_once(kind):
            return None
        message, places = without_parameters(message)
        handles, plan = self._outbox.handles, self._outbox.plan(kind)
        operands: tuple[Any, ...] = plan.operands(message)
        for ref in operands:
            if isinstance(ref, AccelRef) and not ref.known:
                ref.result()  # only the device knows its shape
        require_recordable(message)
        spec, _, known, _ = handles.check(message, plan)
        require_recordable(message, is_whole=known)
        failed = handles.first_failed(operands)
        if failed is not None:
            raise DependencyFailed(f"{kind.__name__}: operand {failed.label} was never made")
        reads = tuple(dict.fromkeys(map(self._slot, operands)))
        written = self._changed(message)
        answer: Reply[Any]
        answer, made = self._answer(message, plan, spec)
        first = made[0] if made else -1
        data = msgspec.Raw(self._encoder.encode(message))
        whole = spec if isinstance(spec, Spec) and made else None
        self._steps.append(Call(data, first, whole, places))
        self.used.update(place.number for place in places)
        self._written.update(map(self._root, written))
        shown = "" if spec is None or not made else ", ".join(map(spec_text, _each(spec)))
        self.nodes.append(Node(message.title, shown, reads, (*written, *made), self._depth))
        return answer

    def counts(self, field: str, counter: Counter, offset: int, at: int = -1) -> None:
        """Have a field of the message that was recorded last follow a generator's words.

        Parameters:
            offset: how many words the generator had taken before it.

        Raises:
            InvalidArgument: it stands in a `while`, where it would draw the same each time.
        """
        if self._loops:
            self._steps.pop()
            node = self.nodes.pop()
            raise InvalidArgument(
                f"{node.title} cannot be in a while of a graph: it would draw the same words in "
                "each pass; draw before the loop"
            )
        found = next((one for one in self.counted if one.counter is counter), None)
        if found is None:
            found = Counted(counter, len(self.numbers), offset)
            self.counted.append(found)
            self.numbers.append(offset)
        last = self._steps[-1]
        assert isinstance(last, Call)
        place = Place(found.number, field, at, offset - found.begin)
        self._steps[-1] = Call(last.message, last.result, last.spec, (*last.places, place))

    @contextmanager
    def branch(self, kind: Kind, condition: AccelRef) -> Iterator[Branch]:
        """Record a branch, whose bodies `body` fills.

        Raises:
            InvalidArgument: the condition is no buffer of one element.
        """
        branch = Branch(kind, self._condition(kind, condition), [])
        title = f"{kind} #{branch.condition}"
        node = Node(title, "", (branch.condition,), (), self._depth)
        outer, first = self._steps, len(self.nodes)
        self.nodes.append(node)
        try:
            yield branch
        except BaseException:
            self._steps = outer
            del self.nodes[first:]
            raise
        outer.append(branch)

    @contextmanager
    def body(self, branch: Branch) -> Iterator[None]:
        """Record what follows as the branch's next body."""
        outer, steps, first = self._steps, list[Step](), len(self.nodes)
        loops = branch.kind == "while"
        self._steps, self._depth, self._loops = steps, self._depth + 1, self._loops + loops
        try:
            yield
        except BaseException:
            del self.nodes[first:]
            raise
        finally:
            self._steps, self._depth, self._loops = outer, self._depth - 1, self._loops - loops
        branch.bodies.append(steps)

    @property
    def last(self) -> Step | None:
        """The last step of where the block is."""
        return self._steps[-1] if self._steps else None

    def finish(self, named: tuple[AccelRef, ...]) -> Written:
        """Return the program; what the notebook has let go of is the program's own.

        Parameters:
            named: buffers that launches may change, used or not.
        """
        for ref in named:
            self._slot(ref)
        self._outbox.let_go()
        handles = {slot: self._handle(slot) for slot in self._made}
        alive: dict[int, AccelRef] = {s: ref for s, ref in handles.items() if ref is not None}
        reads = {slot: ref for slot, ref in self._given.items() if slot not in self._written}
        writes = {slot: ref for slot, ref in self._given.items() if slot in self._written}
        writes |= alive
        own = [self._specs[slot] for slot in self._made if slot not in alive]
        plan = Plan(
            self._count,
            [self._specs[slot] for slot in reads],
            [self._specs[slot] for slot in writes],
            own,
            self.numbers,
            self._whole,
        )
        given: Any = tuple(writes.values())
        return Written(plan, tuple(reads.values()), given, tuple(alive.values()))

    def encoded(self, plan: Plan) -> bytes:
        """Return the bytes of a program."""
        return self._encoder.encode(plan)

    # Slots.

    def _new_slots(self, count: int) -> int:
        first, self._count = self._count, self._count + count
        return first

    def _slot(self, ref: Ref[Any]) -> int:
        """Return the slot of an operand; one that the block has not made is given to launches."""
        slot = self._slots.get(ref.id)
        if slot is None:
            slot = self._slots[ref.id] = self._new_slots(1)
            self._given[slot] = ref
            is_array = isinstance(ref, AccelRef)
            self._specs[slot] = Slot(slot, ref.shape, str(ref.dtype)) if is_array else Slot(slot)  # type: ignore[attr-defined]
        return slot

    def _root(self, slot: int) -> int:
        """Return what has the memory of a slot."""
        while slot in self._views:
            slot = self._views[slot]
        return slot

    def _handle(self, slot: int) -> AccelRef | None:
        """Return a handle of a result that somebody has, or None."""
        if slot in self._kept:
            return self._kept[slot]
        there = (one() for one in self._made[slot])
        return next((ref for ref in there if ref is not None and ref.generation != FREED), None)

    def _changed(self, message: Operation[Any]) -> tuple[int, ...]:
        """Return the slots that a message may write; waits for a kernel that is compiled."""
        only_read = message.only_reads()
        arrays = arrays_of(type(message))(message)
        written = [ref for ref in arrays if not any(ref is one for one in only_read)]
        return tuple(self._slot(ref) for ref in written)

    def _condition(self, kind: str, condition: AccelRef) -> int:
        if not isinstance(condition, AccelRef):
            text = f"{kind}: the condition is a buffer of one element, not {condition!r}"
            raise InvalidArgument(text)
        integral = condition.dtype == "bool" or "int" in condition.dtype
        if condition.size != 1 or not integral:
            raise InvalidArgument(
                f"{kind}: the condition is a bool or an integer of one element, not "
                f"{condition.dtype}{list(condition.shape)}"
            )
        if condition.device.requests.outbox is not self._outbox:
            text = f"{kind}: the condition is of {condition.device.name}, and the graph is not"
            raise InvalidArgument(text)
        return self._slot(condition)

    def _to_slot(self, value: Any) -> Any:
        if isinstance(value, Ref):
            return self._slots[value.id]
        if isinstance(value, Parameter):
            return self._to_slot(value.value) if isinstance(value, complex) else value.value
        if isinstance(value, complex):
            return [value.real, value.imag]
        if isinstance(value, str):
            return str(value)
        raise InvalidArgument(f"a message cannot carry a {type(value).__name__}")

    # Answers.

    def _answer(self, message: Any, plan: Any, spec: Any) -> Answering:
        """Return the handle of a message's answer, and the slots that it makes."""
        pump, here = self._outbox.handles.pump, cell_origin.current()
        out = message.out if plan.has_out else None
        if plan.results is not None:
            return self._answers(message, plan, spec, out)
        if out is not None:
            return self._alias(out), ()
        if spec is None:
            reply = Reply[Any](pump, here)
            reply.resolve()
            return reply, ()
        slot = self._new_slots(1)
        ref = self._viewed(message)
        if ref is not None:
            of = self._slot(getattr(message, type(message).aliased))
            self._views[slot] = of
            root = self._root(of)
            if root in self._made:
                made = self._handle(root)
                assert made is not None
                self._kept[root] = made
            self._slots[ref.id] = slot
            return ref, (slot,)
        return self._reserved(slot, spec), (slot,)

    def _answers(self, message: Any, plan: Any, specs: Any, outs: Any) -> Answering:
        """Return what answers a message with several results, and the slots that it makes."""
        results, handles = plan.results, self._outbox.handles
        if outs is not None:
            refs = [None if out is None else self._alias(out) for out in outs]
            slots: tuple[int, ...] = ()
        else:
            first = self._new_slots(len(results.asked_by))
            refs = [None] * len(results.asked_by)
            for at in results.made(message):
                refs[at] = self._reserved(first + at, specs[at])
            slots = (first, *(first + at for at in results.made(message) if at))
        here = cell_origin.current()
        return ResultsReply(handles.pump, here, results, tuple(refs), 0), slots

    def _viewed(self, message: Any) -> AccelRef | None:
        """Return the view that a message makes at once; None where it makes a buffer."""
        kind = type(message)
        if not kind.viewing or getattr(message, kind.viewing):
            return self._sent(message) if kind.aliased else None
        ref = self._sent(msgspec.structs.replace(message, **{kind.viewing: True}))
        try:
            return ref.result()
        except InvalidArgument:  # only the device knows its strides
            return None

    def _reserved(self, slot: int, spec: Spec) -> AccelRef:
        ref = self._sent(Reserve(spec.shape, str(spec.dtype)))
        self._slots[ref.id] = slot
        self._made[slot] = [weakref.ref(ref)]
        self._specs[slot] = Slot(slot, spec.shape, str(spec.dtype))
        self._written.add(slot)
        return ref

    def _alias(self, out: AccelRef) -> AccelRef:
        """Return another handle of a buffer that a message overwrites."""
        pump, here = self._outbox.handles.pump, cell_origin.current()
        alias = AccelRef(pump, here, out.device, out.owner, out.generation, out.shape, out.dtype)
        alias.resolve()
        slot = self._slots[out.id]
        if slot in self._made:
            self._made[slot].append(weakref.ref(alias))
        return alias

    def _sent(self, message: Operation[AccelRef]) -> AccelRef:
        """Send a message as outside the block."""
        self._passes = True
        try:
            sent: Any = self._outbox.send(message, OWN_TIMEOUT)
        finally:
            self._passes = False
        return sent  # type: ignore[no-any-return]


def _each(spec: Any) -> list[Any]:
    return [spec] if isinstance(spec, Spec) else [one for one in spec if one is not None]
