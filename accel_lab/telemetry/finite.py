"""Stops at the first NaN or Inf that a message computes.

After each message its results are looked at on the device, and the sender waits for that: so the
error is raised by the very call. It is for finding a number that went wrong, not for speed.
"""

import linecache
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from accel_lab.actor.reply import Reply
from accel_lab.compute.arrays.dtypes import is_complex, is_float
from accel_lab.compute.device import Device
from accel_lab.compute.machine.stack_frames import of_user
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import OWN_TIMEOUT, Operation, operand_fields
from accel_lab.compute.message.results_reply import ResultsReply
from accel_lab.display.buffer_number import short
from accel_lab.errors import AccelError, NonFiniteResult
from accel_lab.libraries.array.elementwise import Unary, UnaryOp
from accel_lab.libraries.array.reduction import Reduce, ReduceOp
from accel_lab.telemetry.result_watch import ResultWatch

PASSED_OVER = frozenset({"upload", "download", "transfer", "digest"})
"""What copies alone: numbers that were put there are found where something is computed of them."""


class FiniteWatch(ResultWatch):
    """Looks for numbers that are not finite in what each message of some devices makes.

    Parameters:
        devices: those of one system.
    """

    _instead = "call watch_finite() again"

    def __init__(self, devices: Iterable[Device]) -> None:
        super().__init__([_Watched(device) for device in devices])

    def __repr__(self) -> str:
        names = ", ".join(one.device.name for one in self._looks)
        return f"<FiniteWatch of {names}>"


class _Watched:
    """One device."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.outbox = device.requests.outbox

    def look(self, message: Operation[Any], seq: int, reply: Reply[Any]) -> None:
        """Look at what a message has made or changed; blocks until it is known.

        Raises:
            NonFiniteResult: some of it is no finite number.
        """
        if message.library in PASSED_OVER:
            return
        for name, ref in made(message, reply):
            try:
                if not _counts(ref) or self._holds(ref, "all", "isfinite"):
                    continue
                nans = int(self._holds(ref, "sum", "isnan"))
                infs = int(self._holds(ref, "sum", "isinf"))
            except AccelError:  # the message failed, and whoever waits for its answer is told
                return
            found = name, ref, nans, infs
            source = self._first_operand(message)
            raise _not_finite(message, seq, reply, self.device.name, found, source)

    def _first_operand(self, message: Operation[Any]) -> tuple[str, AccelRef | None]:
        """Return the first operand that is not finite either; what was overwritten is unknown."""
        changed = message.changes()
        for name, ref in _operands(message):
            if any(ref is one for one in changed) or not _counts(ref):
                continue
            with suppress(AccelError):  # it was lost meanwhile: nothing is known of it
                if not self._holds(ref, "all", "isfinite"):
                    return name, ref
        return "", None

    def _holds(self, ref: AccelRef, op: ReduceOp, of: UnaryOp) -> Any:
        """Return a reduction of what a function says of each element; not recorded."""
        send = self.outbox.send
        each = send(Unary(of, ref), OWN_TIMEOUT, recorded=False)
        assert isinstance(each, AccelRef)
        found = send(Reduce(op, each), OWN_TIMEOUT, recorded=False)
        assert isinstance(found, AccelRef)
        return found.get()


def made(message: Operation[Any], reply: Reply[Any]) -> Iterator[tuple[str, AccelRef]]:
    """Yield what a message makes, and then what it changes, each by its name."""
    seen: list[int] = []
    if isinstance(reply, ResultsReply):
        for name, ref in zip(reply.handles._fields, reply.handles, strict=True):
            if isinstance(ref, AccelRef):
                seen.append(ref.id)
                yield name, ref
    elif isinstance(reply, AccelRef):
        seen.append(reply.id)
        yield "", reply
    for name, ref in _operands(message):
        if ref.id not in seen and any(ref is one for one in message.changes()):
            yield name, ref


def _operands(message: Operation[Any]) -> Iterator[tuple[str, AccelRef]]:
    """Yield the buffers that a message names, each by its field."""
    required, optional, many = operand_fields(type(message))
    for field in message.__struct_fields__:
        if field in (*required, *optional, *many):
            value = getattr(message, field)
            if isinstance(value, AccelRef):
                yield field, value
            elif isinstance(value, tuple):
                for at, ref in enumerate(value):
                    if isinstance(ref, AccelRef):
                        yield f"{field}[{at}]", ref


def _counts(ref: AccelRef) -> bool:
    return is_float(ref.dtype) or is_complex(ref.dtype)


def _not_finite(
    message: Operation[Any],
    seq: int,
    reply: Reply[Any],
    device: str,
    found: tuple[str, AccelRef, int, int],
    source: tuple[str, AccelRef | None],
) -> NonFiniteResult:
    """Say what is not finite, where it came from, and which line has sent the message."""
    name, ref, nans, infs = found
    operand, other = source
    title = f"{message.title} #{seq}"
    cell = getattr(reply.origin, "cell", None) or 0
    place, line = _sender()
    counts = " and ".join(f"{n} {what}" for n, what in ((nans, "NaN"), (infs, "Inf")) if n)
    which = f" in {name}" if name else ""
    text = f"{title} on {device} made {counts}{which} ({ref.dtype}{list(ref.shape)}). "
    if other is not None:
        text += f"Its operand {operand}, {short(other.id)}, is not finite either. "
    else:
        text += "Its operands are finite. "
    text += f"Sent by {f'cell {cell}, ' if cell else ''}{place}"
    if line:
        text += f": {line}"
    return NonFiniteResult(
        text, message=title, operand=operand, nans=nans, infs=infs, cell=cell, place=place
    )


def _sender() -> tuple[str, str]:
    """Return the file and line of the user's that sends now, and the line's text."""
    frame = sys._getframe()  # noqa: SLF001 - the way to a caller's frame
    while frame.f_back is not None and not of_user(frame):
        frame = frame.f_back
    file, number = frame.f_code.co_filename, frame.f_lineno
    return f"{file}, line {number}", linecache.getline(file, number).strip()
