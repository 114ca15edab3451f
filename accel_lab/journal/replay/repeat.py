"""Send recorded messages again, one at a time, to live devices.

What a device was sent is repeated with buffers of its own, which are freed where the record frees
them. A message that cannot be sent again spoils what it would have made or written, and so every
message that names one of those.
"""

import contextlib
import io
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import cloudpickle
import msgspec
import numpy as np

from accel_lab.actor.reply import Reply
from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.compute.lineage.markers import Checkpoint
from accel_lab.compute.lineage.recorded_message import Step, step_of
from accel_lab.compute.message.buffer import Ref
from accel_lab.compute.message.operation import Operation
from accel_lab.compute.message.results_reply import ResultsReply
from accel_lab.display.buffer_number import short
from accel_lab.errors import AccelError, JournalError, StaleRef
from accel_lab.journal.entries.entry import Entry, kind_of
from accel_lab.journal.replay.buffers import Buffers
from accel_lab.journal.replay.messages import message_of, refusal
from accel_lab.libraries.array import library as array

DEPENDS = "it depends on buffer"


class Recorded(Protocol):
    """A journal, as far as running it again needs one."""

    @property
    def own_sessions(self) -> Collection[str]:
        """The sessions of this process, whose code needs no leave to run."""

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries in order."""

    def content(self, key: str) -> bytes | None:
        """Return the bytes of a key, None when they are not kept."""


class Sent(NamedTuple):
    """A message that is on its way again.

    Attributes:
        message: as it was sent, with live buffers.
        made: the buffers that hold the results, by their numbers in the record; 0 is the only one.
    """

    step: Step
    message: Operation[Any]
    reply: Reply[Any]
    made: dict[int, Ref[Any]]


class NotSent(NamedTuple):
    """A message that was not sent again, and why.

    Attributes:
        error: the device's refusal; None when it was not asked.
    """

    step: Step
    why: str
    error: AccelError | None = None


class Repeater:
    """Sends the messages of a journal again, each to its device.

    Parameters:
        journal: where the bytes of uploads are.
        devices: the live devices by the recorded names.
        everything: send also functions that are not pure, and faults on purpose.
    """

    def __init__(
        self, journal: Recorded, devices: Mapping[str, Device], *, everything: bool = False
    ) -> None:
        self._everything = everything
        self._journal = journal
        self._devices = devices
        self._buffers: dict[tuple[str, str], Buffers] = {}
        self._with_arrays: dict[tuple[str, str, int], tuple[Reply[Any], tuple[int, ...]]] = {}

    def buffers(self, entry: Entry) -> Buffers:
        """Return the buffers of an entry's device."""
        return self._buffers.setdefault((entry.session, entry.device), Buffers())

    def device(self, entry: Entry) -> Device:
        """Return the live device that stands for an entry's."""
        return self._devices[entry.device]

    def send(self, entry: Entry, timeout_s: float | None) -> Sent | NotSent:
        """Send one message; blocks like any sending, and for room in the arena.

        Raises:
            JournalError: it is no message that was sent.
        """
        step, buffers = step_of(entry.raw, b""), self.buffers(entry)
        why, data = self._why_not(entry, step, buffers)
        if why:
            return self.leave_out(entry, why)
        message = message_of(entry.message, buffers.refs)
        try:
            reply = self.device(entry).repeat(message, timeout_s, None if data is None else [data])
        except StaleRef as error:
            buffers.spoil(step, "its device lost its context meanwhile")
            return NotSent(step, str(error), error)
        except AccelError as error:
            buffers.spoil(step, "its message was refused")
            return NotSent(step, str(error), error)
        buffers.touched(step)
        made = made_by(step, message, reply)
        if step.made:
            for id_, ref in made.items():
                buffers.enter(id_ or step.made, ref, step.shares)
        if entry.seq in entry.aftermath.arrays:
            self._with_arrays[entry.session, entry.device, entry.seq] = reply, step.operands
        return Sent(step, message, reply, made)

    def leave_out(self, entry: Entry, why: str) -> NotSent:
        """Note that a message is not sent again: what it makes and writes is not what it was."""
        step = step_of(entry.raw, b"")
        self.buffers(entry).spoil(step, why)
        return NotSent(step, why)

    def _why_not(self, entry: Entry, step: Step, buffers: Buffers) -> tuple[str, bytes | None]:
        """Return why a message cannot be sent, and the bytes that it takes from the arena."""
        if why := refusal(kind_of(entry.message[0]), faults=self._everything):
            return why, None
        is_part = entry.place is not None
        if entry.why and not (self._everything and not step.in_arena and not is_part):
            return entry.why, None
        missing = buffers.missing(step)
        if missing is not None:
            # What a long chain depends on is what its first link depends on.
            first = not missing.why.startswith(DEPENDS)
            return f"{DEPENDS} {short(missing.id)}: {missing.why}" if first else missing.why, None
        if not step.in_arena:
            return "", None
        data = self._journal.content(entry.content)
        return ("its bytes are not in the journal any more", None) if data is None else ("", data)

    # What stands between messages.

    def free(self, entry: Entry) -> None:
        """Let go what the record lets go; blocks until it is made, as it was by then.

        Otherwise its memory would last longer than it did when it was recorded.
        """
        buffers = self.buffers(entry)
        for id_ in entry.fields["ids"]:
            ref = buffers.refs.get(id_)
            if ref is not None and not ref.done:
                with contextlib.suppress(AccelError):
                    ref.result()
        buffers.free(entry.fields["ids"])

    def forget(self, entry: Entry, mentioned: Iterable[int]) -> None:
        """Let go what a lost context held, but for what is named later."""
        buffers = self.buffers(entry)
        buffers.free(buffers.refs.keys() - set(mentioned))

    def arrays(self, entry: Entry) -> None:
        """Enter the buffers inside the answer of a function; blocks for the answer."""
        reply, operands = self._with_arrays.pop(
            (entry.session, entry.device, entry.seq), (None, ())
        )
        if reply is None:
            return
        try:
            value = reply.result()
        except AccelError:
            return
        # Both lists are in the order in which the context pickled them, and so counted them.
        ids = sorted(entry.fields["ids"])
        found = sorted(_refs_in(value), key=lambda ref: ref.id)
        for id_, ref in zip(ids, found, strict=False):
            self.buffers(entry).enter(id_, ref, operands)

    def restore(self, entry: Entry, point: Checkpoint | None = None) -> None:
        """Make a buffer of the kept contents of a checkpoint, if it is not there."""
        if point is None:
            point = msgspec.convert(entry.raw, Checkpoint)
        buffers = self.buffers(entry)
        if point.dtype not in NAMES or not buffers.lacks(point.id, point.seq):
            return  # what is no array is made again by its messages
        data = self._journal.content(point.key)
        if data is None:
            return
        device = self.device(entry)
        ref = restored(device, data, point.shape, point.dtype, point.axes)
        buffers.mend(point.id, ref)


class _Finder(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles into nothing, to see the buffers inside a value."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.found: dict[int, Ref[Any]] = {}

    def persistent_id(self, obj: Any) -> int | None:
        """Note a buffer; None for everything else."""
        if not isinstance(obj, Ref):
            return None
        self.found[obj.id] = obj
        return obj.id


def _refs_in(value: Any) -> Iterable[Ref[Any]]:
    finder = _Finder()
    finder.dump(value)
    return finder.found.values()


def made_by(step: Step, message: Operation[Any], reply: Reply[Any]) -> dict[int, Ref[Any]]:
    """Return the buffers that hold the results of a message, as `Sent` does."""
    if isinstance(reply, ResultsReply):
        ids, refs = step.makes or step.writes, tuple(reply.refs)
        if len(ids) != len(refs):
            text = f"the journal has {len(ids)} results of a {type(message).__name__}"
            raise JournalError(f"{text}, and it makes {len(refs)}")
        return dict(zip(ids, refs, strict=True))
    if step.made:  # a function may answer with no buffer
        return {0: reply} if isinstance(reply, Ref) else {}
    out = getattr(message, "out", None)
    return {} if out is None else {0: out}


def restored(
    device: Device, data: bytes, shape: tuple[int, ...], dtype: str, axes: tuple[int, ...]
) -> Ref[Any]:
    """Return a buffer of bytes that a checkpoint has kept, with its axes in memory as they were."""
    value = np.frombuffer(data, numpy_dtype(dtype)).reshape(shape)
    ref = device.put(value.transpose(axes) if axes else value)
    if not axes:
        return ref
    return array.transpose(ref, [axes.index(axis) for axis in range(value.ndim)])


def outcome(reply: Reply[Any]) -> AccelError | None:
    """Wait for a reply and return its failure."""
    try:
        reply.result()
    except AccelError:
        return reply.error
    return None
