"""The handles of one device: made for answers, and checked where a message names them."""

import weakref
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from accel_lab.actor.reply import FAILED, Pump, Reply
from accel_lab.compute.message.buffer import FREED, AccelRef, Handles, Owner, Ref, RunRef
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import (
    NO_RESULT,
    Operation,
    PartialSpec,
    Spec,
    inferred,
    is_whole,
    no_operand,
    require_kinds,
    require_tuples,
)
from accel_lab.compute.message.results_reply import ResultsReply
from accel_lab.compute.message.support import Served, check
from accel_lab.compute.output import cell_origin
from accel_lab.compute.requests.connection import Connection
from accel_lab.compute.requests.message_plan import MessagePlan, require_options
from accel_lab.compute.requests.send_queue import SendQueue
from accel_lab.compute.residency.foreign_operand import foreign_operand
from accel_lab.display.buffer_number import short
from accel_lab.errors import StaleRef

Make = Callable[[Pump, int], Reply[Any]]
"""Builds another kind of handle, for a result of this id."""
Answering = tuple[Reply[Any], int]
"""That of an answer, and the result's id on the wire."""
Checked = tuple[Any, Any, bool, bool]
"""What a message makes; what the context is told of that; whether that is known; whether every
operand is well."""

_FREED = "Put or compute it again. free() gives the buffer back for good."
_DROPPED = "Put or compute it again. suspend() without drop=True drops nothing."
_NOT_REBUILT = (
    "Put or compute it again. ref.durability says in advance whether a buffer can be rebuilt. If "
    "not, gpu.checkpoint(ref) keeps a copy for the next fault."
)
_NOT_RECOVERED = (
    'Put or compute it again. System(recover="replay"), the default, would rebuild buffers by '
    "itself."
)


class DeviceHandles:
    """Makes and checks the handles of one device.

    Attributes:
        device: returns it; None before it is served, and when nobody holds it any more. Whoever
            sends holds it; what runs on its behalf must not keep it open.
        pump: what a handle waits with.
        has_closing: whether its contexts may have something that has to be closed.
    """

    has_closing = False

    def __init__(
        self,
        connection: Connection,
        pump: Pump,
        queue: SendQueue,
        support: Mapping[str, frozenset[str]],
    ) -> None:
        self.device: Callable[[], Any] = _no_device
        self.pump = pump
        self._connection = connection
        self._freed = queue.freed
        self._support = support
        self._limit = support.require_possible if isinstance(support, Served) else None
        self._ids = queue.ids

    def serve(self, device: Any) -> None:
        """Name the device whose handles these are."""
        self.device = weakref.ref(device)

    # Making them.

    def new_id(self) -> int:
        """Take the next buffer's id."""
        return next(self._ids)

    def of_answer(
        self,
        message: Any,
        plan: MessagePlan,
        spec: Spec | None,
        make: Make | None,
        announced: int,
        *,
        known: bool,
    ) -> Answering:
        """Return the handle of a message's answer and the result's id on the wire.

        Parameters:
            make: builds another kind of handle.
            announced: the id that the context was told before; 0 if none.
        """
        here = cell_origin.current()
        if plan.results is not None:
            return self._of_results(message, plan, spec, here)
        if plan.has_out and message.out is not None:
            out = message.out
            shape, dtype = (out.shape, out.dtype) if out.known else (None, None)
            generation = self._connection.generation
            alias = AccelRef(self.pump, here, self.device(), out.owner, generation, shape, dtype)
            return alias, 0 if out.known else -out.id
        if plan.handle is not None:
            id_, generation = announced or next(self._ids), self._connection.generation
            owner, device = Owner(id_, self._freed), self.device()
            return Handle(self.pump, here, device, owner, generation, plan.handle), id_
        if make is None and spec is None and (known or not plan.answers_buffer):
            return Reply(self.pump, here), 0
        id_ = announced or next(self._ids)
        if make is not None:
            made = make(self.pump, id_)
            return made, id_ if isinstance(made, AccelRef) else 0
        owner, generation = Owner(id_, self._freed), self._connection.generation
        shape, dtype = (None, None) if spec is None else spec
        ref = AccelRef(self.pump, here, self.device(), owner, generation, shape, dtype)
        return ref, -id_ if spec is None else id_

    def _of_results(
        self, message: Any, plan: MessagePlan, specs: Any, here: object
    ) -> tuple[ResultsReply, int]:
        """Return what answers a message with several results, and the first id on the wire.

        `specs` is None where the notebook cannot infer. Each result has an id, made or not.
        """
        results, device = plan.results, self.device()
        assert results is not None
        generation, pump = self._connection.generation, self.pump
        count, library = len(results.asked_by), plan.library
        outs = message.out if plan.has_out else None
        handles: list[Ref[Any] | None] = [None] * count
        if outs is None:
            first, is_known = self._new_ids(count), True
            for at in results.made(message):
                owner, spec = Owner(first + at, self._freed), specs[at] if specs else None
                if (of := results.of[at]) is not None:
                    handles[at] = made = Handle(pump, here, device, owner, generation, of)
                    made.library = library
                    continue
                shape, dtype = spec if type(spec) is Spec else (None, None)
                ref = AccelRef(pump, here, device, owner, generation, shape, dtype)
                ref.library = library
                handles[at], is_known = ref, is_known and ref.known
            reply = ResultsReply(pump, here, results, tuple(handles), first)
            return reply, first if is_known else -first
        for at, out in enumerate(outs):
            if out is not None:
                shape, dtype = (out.shape, out.dtype) if out.known else (None, None)
                ref = AccelRef(pump, here, device, out.owner, generation, shape, dtype)
                ref.library = library
                handles[at] = ref
        return ResultsReply(pump, here, results, tuple(handles), 0, outs), 0

    def _new_ids(self, count: int) -> int:
        """Take so many ids in a row; return the first."""
        while True:  # another thread may take one between two of these
            ids = list(islice(self._ids, count))
            if ids[-1] - ids[0] == count - 1:
                return ids[0]

    def of_call(self, id_: int) -> RunRef:
        """Build the handle of an answer that may turn out to be a buffer."""
        owner, generation = Owner(id_, self._freed), self._connection.generation
        here = cell_origin.current()
        return RunRef(self.pump, here, self.device(), owner, generation, None, None)

    def of_buffer(self, id_: int, shape: tuple[int, ...], dtype: str) -> AccelRef:
        """Build the handle of a buffer whose shape is known."""
        owner, generation = Owner(id_, self._freed), self._connection.generation
        here = cell_origin.current()
        return AccelRef(self.pump, here, self.device(), owner, generation, shape, dtype)

    def adopt(self, reply: Reply[Any], id_: int, shape: tuple[int, ...], dtype: str) -> AccelRef:
        """Make the handle of a buffer that came inside an answer."""
        here = self._connection.generation
        generation = reply.generation if isinstance(reply, AccelRef) else here
        owner = Owner(id_, self._freed)
        ref = AccelRef(self.pump, reply.origin, self.device(), owner, generation, shape, dtype)
        ref.resolve()
        return ref

    # Checking them.

    def check(  # noqa: C901, PLR0912 - the hot path
        self, message: Operation[Any], plan: MessagePlan
    ) -> Checked:
        """Work out what a message makes, and refuse operands and options that do not fit.

        An operand that is stale or failed is no such: it is looked at when the message is sent.

        Raises:
            InvalidArgument: an operand or an option does not fit.
        """
        if plan.options:
            require_options(message, plan.options)
        if plan.results is not None:
            require_tuples(message)
        device, connection = self.device(), self._connection
        generation, known, sound = connection.generation, True, not connection.dropped
        try:
            operands = plan.operands(message)
            for ref in operands:
                if ref.device is not device:
                    raise foreign_operand(ref, message, device, connection.name)
                if ref.generation != generation or ref._state == FAILED:  # noqa: SLF001 - hot
                    sound = False
                if not ref.known:
                    known = False
        except (AttributeError, TypeError):
            raise no_operand(message) from None
        if plan.handles or not known:
            known = require_kinds(message)  # of a handle no shape is known, either
        if not known:
            return None, None, False, sound
        spec = inferred(message)
        if not is_whole(spec):  # the rest only the device can tell
            known = False
            if type(spec) is PartialSpec:
                spec = None
        if plan.listed:
            is_first = operands and not plan.handles
            dtype = operands[0].dtype if is_first else message.dtype_key
            if dtype not in plan.supported:
                check(self._support, message)
                plan.supported.add(dtype)
            if self._limit is not None:
                self._limit(message, spec)
        return spec, (spec or NO_RESULT) if known else None, known, sound

    def is_plain(self, message: Operation[Any], plan: MessagePlan) -> bool:
        """Whether all is known and well: the shapes, the operands, the backend's support."""
        device, generation = self.device(), self._connection.generation
        operands: tuple[Any, ...] = plan.operands(message)
        for ref in operands:
            if (
                not isinstance(ref, AccelRef)
                or ref.device is not device
                or ref.generation != generation
                or ref.failed
                or not ref.known
            ):
                return False
        if plan.listed and message.dtype_key not in plan.supported:
            return False
        inferred(message)
        return True

    def first_failed(self, operands: tuple[Ref[Any], ...]) -> Ref[Any] | None:
        """Return an operand that was never made.

        Raises:
            StaleRef: one is no more.
        """
        for ref in operands:
            if ref.failed:
                return ref
            if not self.holds(ref):
                raise self._stale(ref)
        return None

    def holds(self, ref: Ref[Any]) -> bool:
        """Whether a buffer is, or is about to be, in the current generation; never blocks."""
        connection = self._connection
        if ref.generation == connection.generation:
            return ref.id not in connection.dropped
        recovery = connection.recovery
        return recovery is not None and ref.generation != FREED and ref.id not in recovery.lost

    def why_lost(self, ref: Ref[Any]) -> str:
        """Return why a buffer was not rebuilt after the last loss; empty where none knows."""
        recovery = self._connection.recovery
        return "" if recovery is None else recovery.lost.get(ref.id, "")

    def drop(self, why: Mapping[int, str]) -> None:
        """Give buffers up that could not be kept while the device is suspended."""
        self._connection.dropped.update(why)
        Handles.lost += len(why)  # what is sent again and again is looked at again

    def _stale(self, ref: Ref[Any]) -> StaleRef:
        """Say why a buffer is not on its device any more, and what to do."""
        connection = self._connection
        name, generation = connection.name, connection.generation
        if ref.generation == FREED:
            text = f"buffer {short(ref.id)} was freed; compute or put() it again"
            return StaleRef(text, remedy=_FREED, buffer=ref.id)
        if ref.generation == generation:
            why = connection.dropped.get(ref.id, "")
            text = f"buffer {short(ref.id)} was dropped when {name} was suspended: {why}"
            return StaleRef(f"{text}; compute or put() it again", remedy=_DROPPED, buffer=ref.id)
        error = StaleRef("", buffer=ref.id)
        self._say_why(error, f"generation {ref.generation}")
        return error

    def complete(self, error: StaleRef) -> None:
        """Say of a buffer that a context has missed why it is gone, if a loss has cost it."""
        if error.buffer <= self._connection.ids_before:
            self._say_why(error, "an earlier generation")

    def _say_why(self, error: StaleRef, born: str) -> None:
        connection = self._connection
        recovery, generation = connection.recovery, connection.generation
        if recovery is not None and (why := recovery.lost.get(error.buffer, "")):
            text = f"could not be rebuilt for generation {generation}: {why}"
            error.remedy = _NOT_REBUILT
        elif recovery is None or not error.args[0]:
            name = connection.name
            text = f"is of {born}; {name} is at {generation}, so its contents are gone"
            if recovery is None:
                error.remedy = _NOT_RECOVERED
        else:
            return  # a context has said what is known
        error.args = (f"buffer {short(error.buffer)} {text}; compute or put() it again",)


def _no_device() -> None:
    pass
