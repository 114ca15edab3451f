"""Find the message that ended a context, by rerunning what was in flight.

The messages without an answer, and those that made their operands, are sent to a spare context,
each when the one before it has been answered. The one that ends that context, too, is the culprit.
"""

import re
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import msgspec

from accel_lab.compute.actors.digest import Digest
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.builtin import Download, Offer, Ping
from accel_lab.compute.message.operation import Operation
from accel_lab.compute.residency.notebook_names import held_in, names
from accel_lab.errors import ContextLost, JournalError
from accel_lab.journal.entries.entry import Entry
from accel_lab.journal.explanation.explanation import Explanation, Involved
from accel_lab.journal.replay.part import read, refuse_code
from accel_lab.journal.replay.prelude import place_of, prelude
from accel_lab.journal.replay.repeat import NotSent, Recorded, Repeater, outcome
from accel_lab.journal.replay.replay import Lab

LIMIT_S = 60.0
LEFT_OUT = frozenset(kind.__name__ for kind in (Download, Offer, Digest, Ping))

Spare = Callable[[Device], AbstractContextManager[Lab]]


def explain(
    journal: Recorded,
    system: Lab,
    device: Device | str | None = None,
    *,
    timeout_s: float = LIMIT_S,
    allow_code: bool = False,
    spare: Spare | None = None,
    known: Explanation | None = None,
) -> Explanation:
    """Say which message ended a device's last lost context; blocks until it is known.

    Functions in flight are run again, those that are not pure, too.

    Parameters:
        journal: where the loss is recorded.
        system: whose device it was.
        device: which; that of the last loss when not given.
        timeout_s: how long a message may run before it counts as hanging, when its own limit is
            not shorter.
        allow_code: run functions and kernels of a session that was not this process's.
        spare: opens a system with one device to try on; a second context on the same device when
            not given.
        known: of a loss of this process, returned when that is the last one still.

    Raises:
        JournalError: no context was lost, or there is code and no leave to run it.
    """
    began = time.monotonic()
    entries, _ = read(journal)
    name = device.name if isinstance(device, Device) else device
    loss = _last_loss(entries, name, getattr(journal, "gap", ""))
    is_own = loss.session in journal.own_sessions
    lost = loss.device, loss.generation
    if known is not None and is_own and lost == (known.device, known.generation):
        return known
    suspects, needed = _slice(entries, loss)
    untried = _gone(entries, loss)
    if not allow_code:
        refuse_code([*needed, *suspects], journal)
    failed = next((d for d in system.devices if d.name == loss.device), system.devices[0])
    trial = _Trial(None, None, (), 0, [])
    if suspects:
        with (spare or _second(system))(failed) as lab:
            repeater = Repeater(journal, {loss.device: lab.devices[0]}, everything=True)
            trial = _try(repeater, needed, suspects, timeout_s)
        untried += sum(entry in suspects for entry, _ in trial.not_run)
    explained = _explained(entries, loss)
    culprit = trial.culprit
    return Explanation(
        loss.device,
        loss.generation,
        explained.get("cause", ""),
        explained.get("code", 0),
        explained.get("name", ""),
        len(loss.fields["in_flight"]),
        culprit,
        _named(trial.operands, failed) if is_own else trial.operands,
        "" if culprit is None else _kernel(culprit),
        trial.error,
        trial.messages,
        tuple(trial.not_run),
        time.monotonic() - began,
        untried=untried,
        gone=_gone(entries, loss),
        fields=explained.get("fields", {}),
    )


class _Trial(NamedTuple):
    """What running messages one at a time has shown."""

    culprit: Entry | None
    error: ContextLost | None
    operands: tuple[Involved, ...]
    messages: int
    not_run: list[tuple[Entry, str]]


def _try(
    repeater: Repeater, needed: Iterable[Entry], suspects: Iterable[Entry], timeout_s: float
) -> _Trial:
    """Send messages one at a time, until one ends the context."""
    messages = 0
    not_run: list[tuple[Entry, str]] = []
    last: tuple[Entry, Operation[Any]] | None = None
    for entry in sorted((*needed, *suspects), key=lambda entry: entry.number):
        if entry.kind == "checkpoint":
            repeater.restore(entry)
            continue
        if entry.kind == "arrays":
            repeater.arrays(entry)
            continue
        if entry.name in LEFT_OUT:
            continue
        limit = timeout_s if entry.timeout_s is None else min(entry.timeout_s, timeout_s)
        sent = repeater.send(entry, limit)
        if isinstance(sent, NotSent):
            not_run.append((entry, sent.why))
            continue
        messages += 1
        last = entry, sent.message
        error = outcome(sent.reply)
        if isinstance(error, ContextLost):
            return _Trial(entry, error, _involved(entry, sent.message), messages, not_run)
    if last is not None:  # what it did may show only now
        error = outcome(repeater.device(last[0]).ping())
        if isinstance(error, ContextLost):
            return _Trial(last[0], error, _involved(*last), messages, not_run)
    return _Trial(None, None, (), messages, not_run)


def _last_loss(entries: list[Entry], device: str | None, gap: str) -> Entry:
    losses = [
        entry
        for entry in entries
        if entry.kind == "context ended"
        and device in (None, entry.device)
        and not entry.fields["closed"]
    ]
    if not losses:
        of_which = "" if device is None else f" of {device}"
        but = f"; of the entries, {gap}" if gap else ""
        error = JournalError(f"the journal has no loss of a context{of_which}{but}")
        error.remedy = "Ask after a loss, while the journal still has it."
        raise error
    sent = {(place_of(entry), entry.seq) for entry in entries if entry.kind == "message"}
    for loss in reversed(losses):
        flying = loss.fields["in_flight"]
        # What a recovery ran again, and lost, has numbers that no message in the journal has.
        if not flying or any((place_of(loss), seq) in sent for seq in flying):
            return loss
    return losses[-1]


def _slice(entries: list[Entry], loss: Entry) -> tuple[list[Entry], list[Entry]]:
    """Return the messages in flight at a loss, and what made their operands."""
    place, lost = place_of(loss), set(loss.fields["in_flight"])
    sent = [e for e in entries if place_of(e) == place and e.number < loss.number]
    suspects = [e for e in sent if e.kind == "message" and e.seq in lost]
    before = [e for e in sent if not (e.kind == "message" and e.seq in lost)]
    return suspects, prelude(before, suspects)


def _gone(entries: list[Entry], loss: Entry) -> int:
    """Count the messages in flight that have left the journal, which forgets the oldest first."""
    place = place_of(loss)
    kept = (e.seq for e in entries if e.kind == "message" and place_of(e) == place)
    first = min(kept, default=None)
    return sum(first is None or seq < first for seq in loss.fields["in_flight"])


def _explained(entries: Iterable[Entry], loss: Entry) -> dict[str, Any]:
    """Return what the journal says of the reason."""
    for entry in entries:
        if (
            entry.kind == "explained"
            and place_of(entry) == place_of(loss)
            and entry.generation == loss.generation
        ):
            return entry.fields
    return {}


def _involved(entry: Entry, message: Operation[Any]) -> tuple[Involved, ...]:
    """Return the operands of a message, with the numbers that they had."""
    found: list[Involved] = []
    for name in message.__struct_fields__:
        value, ids = getattr(message, name), entry.fields.get(name)
        if isinstance(value, Ref):
            found.append(_operand(name, ids, value))
        elif isinstance(value, tuple):
            found += [
                _operand(f"{name}[{i}]", ids[i], ref)
                for i, ref in enumerate(value)
                if isinstance(ref, Ref) and ids is not None
            ]
    return tuple(found)


def _operand(name: str, id_: Any, ref: Ref[Any]) -> Involved:
    return Involved(name, id_, *_shape_of(ref))


def _shape_of(ref: Ref[Any]) -> tuple[tuple[int, ...] | None, str]:
    """Return the shape and dtype, or what a handle is of; None and nothing where not known."""
    if isinstance(ref, AccelRef):
        return (ref.shape, ref.dtype) if ref.known else (None, "")
    return None, getattr(ref, "kind", "")


def _named(operands: tuple[Involved, ...], device: Device) -> tuple[Involved, ...]:
    """Add the names that lead to the handles of operands; a device gives no number twice."""
    known: dict[int, tuple[str, ...]] = {}
    for by_id in held_in(names(), (device,)).values():
        known |= by_id
    return tuple(msgspec.structs.replace(one, held_by=known.get(one.id, ())) for one in operands)


def _kernel(culprit: Entry) -> str:
    """Return the name of the kernel that a message launches; empty if it launches none."""
    return culprit.title if culprit.title != culprit.name else ""


def _second(system: Lab) -> Spare:
    """Return what opens a second system of the same kind on the device's own GPU."""

    def open_(device: Device) -> AbstractContextManager[Lab]:
        number = re.search(r"\d+$", device.name)
        index = int(number[0]) if number else 0
        kind: Any = type(system)
        again: AbstractContextManager[Lab] = kind(
            system.backend, [index], recover="stale", journal=None
        )
        return again

    return open_
