"""Sending one message to several devices: all of its parts, or none.

Everything is checked before anything is sent, and then once more with the locks of all devices
held: what may have changed, an operand that has failed, a generation, room. Encoded is also all of
it before the first part leaves. One lock of the system has each message entered at all its devices
before the next, so that two threads' messages have one order everywhere: parts wait for each other,
and in two orders they would wait for ever.

No two locks of devices are ever waited for at once: a finalizer may send to one device while its
thread holds another's lock. So a lock that is taken has the others let go.
"""

import itertools
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from accel_lab.actor.event_loop import EventLoop
from accel_lab.compute.groups.part import Part
from accel_lab.compute.groups.place import Place
from accel_lab.compute.machine.deferred_interrupts import UNINTERRUPTED
from accel_lab.compute.message.operation import OWN_TIMEOUT, Operation
from accel_lab.compute.message.validation import require_timeout
from accel_lab.compute.wire.failure import depends_on
from accel_lab.compute.world.group_reply import Follower, GroupReply
from accel_lab.compute.world.member import Draft, Member
from accel_lab.display.buffer_number import short
from accel_lab.errors import InvalidArgument, QueueFull

ROOM_WITHIN_S = 60.0


class GroupSender:
    """Sends messages to several devices of one system; any thread may call."""

    def __init__(self, event_loop: EventLoop) -> None:
        self._event_loop = event_loop
        self._members: dict[str, Member] = {}
        self._ids = itertools.count(1)
        self._in_order = threading.Lock()
        self._sender = 0

    def add(self, member: Member) -> None:
        """Let parts be sent to a device."""
        self._members[member.name] = member

    def remove(self, name: str) -> None:
        """Let no parts be sent to a device any more."""
        self._members.pop(name, None)

    def send(
        self,
        parts: Any,
        timeout_s: float | None,
        *,
        nowait: bool,
        follower: Follower | None = None,
    ) -> GroupReply:
        """Send the parts of a message, as `System.group` says; `follower` is told how it goes."""
        drafts = list(self._checked(parts))
        if timeout_s is OWN_TIMEOUT:
            limits = [limit for one in drafts if (limit := one.plan.timeout_s) is not None]
            limit_s = min(limits, default=None)
        else:
            limit_s = require_timeout(timeout_s)
        reply = GroupReply(drafts, limit_s, self._event_loop, follower)
        until = time.monotonic() + ROOM_WITHIN_S
        sent: list[Part] = []
        while not sent:
            for draft in drafts:
                draft.member.requests.outbox.make_room(nowait=nowait)
            if time.monotonic() > until:
                raise QueueFull("the devices had no room for all parts at the same time")
            try:
                UNINTERRUPTED.begin()
                try:
                    sent = self._send(drafts, reply)
                finally:
                    UNINTERRUPTED.end()
            except BaseException:
                if reply.results:  # an interrupt, and nobody has the handles
                    reply.cancel()
                raise
        for draft, part in zip(drafts, sent, strict=True):
            draft.member.sent(part)
        return reply

    def _checked(self, parts: Any) -> Iterator[Draft]:
        """Check each part by itself, and that they fit together."""
        seen: set[str] = set()
        pairs: Iterable[Any] = parts.items() if isinstance(parts, Mapping) else parts
        try:
            listed = [(device, message) for device, message in pairs]
        except (TypeError, ValueError):
            listed = []
        if not listed:
            raise InvalidArgument("group() takes a message for each device: {gpu0: …, gpu1: …}")
        for device, message in listed:
            requests = getattr(device, "requests", None)
            member = self._members.get(getattr(device, "name", ""))
            if member is None or member.requests is not requests:
                raise InvalidArgument(f"{device!r} is no device of this system")
            if member.name in seen:
                raise InvalidArgument(f"{member.name} gets two parts; each device gets one")
            seen.add(member.name)
            if not isinstance(message, Operation):
                what = type(message).__name__
                raise InvalidArgument(f"{member.name} gets a message, not a {what}")
            yield member.check(message)

    def _send(self, drafts: list[Draft], reply: GroupReply) -> list[Part]:
        """Enter all parts at their devices; return none where one has no room."""
        with self._turn(), _all_of([draft.member.requests.outbox.lock for draft in drafts]):
            if not all(draft.member.requests.outbox.has_room() for draft in drafts):
                return []
            failed = [draft.member.never_made(draft) for draft in drafts]
            id_, size = next(self._ids), len(drafts)
            made = [
                draft.member.part(draft, Place(id_, rank, size), reply, reply.pump_of(rank))
                for rank, draft in enumerate(drafts)
            ]
            parts = [part for part, _ in made]
            reply.take(id_, parts)
            for rank, ref in enumerate(failed):
                if ref is not None and ref.error is not None:
                    reply.refuse(
                        rank, depends_on(ref.error, f"operand {short(ref.id)} was never made")
                    )
                    return parts
            for draft, (part, data) in zip(drafts, made, strict=True):
                draft.member.send(part, data)
            return parts

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Have no other message to several devices sent meanwhile."""
        me = threading.get_ident()
        if self._sender == me:
            raise InvalidArgument(
                "a finalizer (__del__) cannot send a message to several devices while its thread "
                "sends another one; send it elsewhere"
            )
        with self._in_order:
            self._sender = me
            try:
                yield
            finally:
                self._sender = 0


@contextmanager
def _all_of(locks: list[threading.RLock]) -> Iterator[None]:
    """Hold all of these locks, and wait for none while another is held."""
    wanted = list(locks)
    held: list[threading.RLock] = []
    while len(held) < len(locks):
        wanted[0].acquire()
        held = [wanted[0]]
        for lock in wanted[1:]:
            if not lock.acquire(blocking=False):
                for one in held:
                    one.release()
                held = []
                wanted.sort(key=lambda one, first=lock: one is not first)  # type: ignore[misc]
                break
            held.append(lock)
    try:
        yield
    finally:
        for lock in held:
            lock.release()
