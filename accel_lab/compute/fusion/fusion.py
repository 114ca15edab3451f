"""Messages that follow each other and are computed together, since the context sees them ahead.

A chain of functions of each element reads and writes memory once for each of them, and most of what
it makes nobody asks for. Of such messages in one frame one piece of work is made. What the notebook
has freed by the frame's end, and nothing else names, has no memory at all.

Nothing waits for more messages to come, and whatever is unusual has every message go alone.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.launch import LibraryActor, label_of
from accel_lab.compute.execution.stream import Storage
from accel_lab.compute.fusion.program import STEP, Enqueue, Program, Step
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.builtin import Free

MOST_STEPS = 32
MOST_ARRAYS = 12
PATIENT_S = 60.0
"""Below this time limit a message is watched alone."""
KNOWN = 4096


class Run(NamedTuple):
    """Messages that are computed together.

    Attributes:
        entries: as they came.
        enqueue: does it.
        buffers: the arrays that they read.
        numbers: the numbers among the operands.
        kept: which of the entries' results get memory.
    """

    entries: list[Any]
    actor: LibraryActor
    enqueue: Enqueue
    shape: tuple[int, ...]
    buffers: list[Any]
    numbers: list[Any]
    kept: tuple[int, ...]


class Frame:
    """The entries that came together, and what becomes of the results among them."""

    def __init__(self, context: Context, entries: list[Any]) -> None:
        self.entries = entries
        self.alone_until = 0
        self._context = context
        self._freed: set[int] | None = None
        self._last_use: dict[int, int] = {}

    def is_private(self, id_: int, end: int) -> bool:
        """Whether a result is freed by the frame's end, and no entry from `end` on names it."""
        freed = self._freed
        if freed is None:
            freed = self._freed = self._look()
        return id_ in freed and self._last_use.get(id_, -1) < end

    def _look(self) -> set[int]:
        freed: set[int] = set()
        last = self.entries[-1].message
        if type(last) is not Free:
            return freed
        freed.update(last.ids)
        routes, last_use = self._context.routes, self._last_use
        for at, entry in enumerate(self.entries):
            route = routes.get(type(entry.message))
            if route is not None:
                for operand in route.operands(entry.message):
                    last_use[operand.id] = at
        return freed


class Chain:
    """Messages that can be computed together, as far as they were looked at.

    Attributes:
        steps: what each computes, as in a `Step`.
        made: the steps, by the ids of their results.
        read: those whose results later ones read.
        buffers, numbers: the other operands.
    """

    __slots__ = ("_slots", "buffers", "made", "numbers", "read", "steps")

    def __init__(self) -> None:
        self.steps: list[tuple[str, tuple[int, ...], str]] = []
        self.made: dict[int, int] = {}
        self.read: set[int] = set()
        self.buffers: list[Any] = []
        self.numbers: list[Any] = []
        self._slots: dict[int, int] = {}

    def add(self, op: str, operands: Sequence[Any], dtype: str, result: int) -> bool:
        """Add a message, unless it has nothing to do with the others, or an operand is missing."""
        made, slots, buffers, numbers = self.made, self._slots, self.buffers, self.numbers
        before = len(buffers), len(numbers)
        is_chained = not made
        places: list[int] = []
        for operand in operands:
            if not isinstance(operand, AccelRef):
                numbers.append(operand)
                places.append(-len(numbers))
            elif (step := made.get(operand.id)) is not None:
                is_chained = True
                places.append(STEP + step)
            elif (slot := slots.get(operand.id)) is not None:
                places.append(slot)
            elif operand.storage is None:
                is_chained = False
                break
            else:
                places.append(len(buffers))
                slots[operand.id] = len(buffers)
                buffers.append(operand)
        if not is_chained or len(buffers) > MOST_ARRAYS:
            del buffers[before[0] :], numbers[before[1] :]
            return False
        self.read.update([place - STEP for place in places if place >= STEP])
        made[result] = len(self.steps)
        self.steps.append((op, tuple(places), dtype))
        return True


class Fusion:
    """Finds such messages and enqueues them; used by the dispatcher thread.

    Attributes:
        kinds: the types of messages that may be computed with others.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.kinds = frozenset(kind for one in context.actors.values() for kind in one.fusable)
        self._programs: dict[tuple[Any, ...], Program] = {}

    def run_at(self, frame: Frame, at: int) -> Run | None:
        """Return the messages from an entry on that can be computed together, if there are any."""
        entries, entry = frame.entries, frame.entries[at]
        actor = self._context.routes[type(entry.message)].actor
        fusable, fuser, mention = actor.fusable, actor.lib.fused, self._context.table.mention
        shape, chain = entry.spec.shape, Chain()
        if 0 in shape:
            return None
        for entry in entries[at : at + MOST_STEPS]:
            if not self._may_follow(entry, fusable, shape):
                break
            spec, result = entry.spec, entry.result
            parts = fusable[type(entry.message)](entry.message, spec)
            if parts is None or not chain.add(parts[0], parts[1], spec.dtype, result):
                break
            mention(result).learn(shape, spec.dtype)  # as what follows looks at it
        count = len(chain.steps)
        if count < fuser.least:
            return None
        end = at + count
        kept = tuple(
            [
                step
                for id_, step in chain.made.items()
                if step not in chain.read or not frame.is_private(id_, end)
            ]
        )
        program, enqueue = self._program(chain, kept), None
        if program is not None:
            enqueue = fuser(program, shape, [buffer.array for buffer in chain.buffers])
        if enqueue is None:
            frame.alone_until = end
            return None
        return Run(entries[at:end], actor, enqueue, shape, chain.buffers, chain.numbers, kept)

    def _program(self, chain: Chain, kept: tuple[int, ...]) -> Program | None:
        """Return the program of a chain, the same whenever it comes again; None if too many did."""
        dtypes = tuple([buffer.dtype for buffer in chain.buffers])
        key = tuple(chain.steps), kept, dtypes, tuple(map(type, chain.numbers))
        program = self._programs.get(key)
        if program is None and len(self._programs) < KNOWN:
            numbers = tuple(type(number).__name__ for number in chain.numbers)
            steps = tuple(Step(*step) for step in chain.steps)
            program = self._programs[key] = Program(dtypes, numbers, steps, kept)
        return program

    def may_begin(self, frame: Frame, at: int) -> bool:
        """Whether an entry may be computed with the next; quick, and wrong at times."""
        entries, kinds, end = frame.entries, self.kinds, at + 2
        if end > len(entries) or at < frame.alone_until:
            return False
        spec = entries[at].spec
        return (
            type(entries[at + 1].message) in kinds
            and spec is not None
            and self._may_follow(entries[at], kinds, spec.shape)
            and self._may_follow(entries[at + 1], kinds, spec.shape)
        )

    @staticmethod
    def _may_follow(entry: Any, fusable: Any, shape: tuple[int, ...]) -> bool:
        spec, timeout_s = entry.spec, entry.timeout_s
        return (
            type(entry.message) in fusable
            and spec is not None
            and spec.shape == shape
            and entry.result > 0
            and timeout_s is not None
            and timeout_s >= PATIENT_S
            and not entry.several
            and entry.place is None
        )

    def enqueue(self, run: Run) -> None:
        """Enqueue a run and enter its results; raises what the driver raises, and enters nothing.

        Raises:
            OutOfMemory: the pool cannot hold them.
        """
        context, stream, entries, shape = self._context, run.actor.stream, run.entries, run.shape
        now = entries[-1].seq
        for buffer in run.buffers:
            buffer.storage.used = now
        made = [context.allocate(shape, entries[step].spec.dtype, now) for step in run.kept]
        stream.operations += len(entries)
        for buffer in run.buffers:
            buffer.storage.read_on(stream)
        run.enqueue(run.numbers, [array for array, _ in made])
        fill = context.table.fill
        for step, (array, nbytes) in zip(run.kept, made, strict=True):
            entry = entries[step]
            stream.seq, stream.kind = entry.seq, type(entry.message)
            storage = Storage(stream, nbytes, label_of(entry.message, entry.seq))
            storage.used = entry.seq
            fill(entry.result, array, shape, entry.spec.dtype, storage)
        run.actor.runs += 1
        run.actor.fused_messages += len(entries)
