"""Places inside a context where it stops, says so, and does what it is told.

`hold` is a function for `run`; `arm` puts a gate before the handlers of messages, so that the
next of them stops where it would begin. Whoever stops there connects to the campaign's `Door`,
gives its name, and waits for an order: a fault, or to go on. The first half runs in contexts and
imports little.
"""

import contextlib
import ctypes
import os
import signal
import socket
import sys
import threading
import time
from typing import Any

from accel_lab.compute.user_code.interrupts import SIGNAL
from accel_lab.compute.wire.side_channel import send_packet

GO = "go"
LOST = "segment lost"
"""Stop again when those segments of the arena have gone whose numbers follow."""
LONG_S = 60.0
"""More than a context may let frames lie."""
CORRUPT = "corrupt "
GARBAGE = (
    b"\xc1 is no msgpack",
    b"\x81\x01\x02",
    b"\x91\x95\x01\x00\xc0\x92\xcd\x30\x39\x01\xc0",
    b"\x92\x95\x01",
    b"\x93\x01\x02\x03",
)


class Stalled:
    """A stream that does not get to its end until `flow`; all else is the stream's own."""

    flowing = threading.Event()

    def __init__(self, native: Any) -> None:
        self._native = native

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)

    def done(self) -> bool:
        return self.flowing.is_set() and bool(self._native.done())

    def reached(self, event: Any) -> bool:
        return self.flowing.is_set() and bool(self._native.reached(event))

    def synchronize(self, event: Any) -> None:
        self.flowing.wait()
        self._native.synchronize(event)


def hold(address: str, name: str, *, stall: bool = False) -> str:
    """Stop here on the dispatcher's thread until told what to do; an interrupt has to wait.

    Parameters:
        stall: have nothing complete until the next one goes on that does not say so.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {SIGNAL})
    try:
        _obey(address, name)
        if stall:
            Stalled.flowing.clear()
            for stream in _service()._context.streams.values():
                if not isinstance(stream.native, Stalled):
                    stream.native = Stalled(stream.native)
        else:
            Stalled.flowing.set()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {SIGNAL})
    return name


def arm(address: str, name: str, kinds: list[str]) -> int:
    """Have the next message of these types stop where its handler would begin."""
    context = _service()._context
    chosen = [kind for kind in context.routes if kind.__name__ in kinds]

    def gated(message: Any, launch: Any) -> None:
        for kind, route in before.items():
            context.routes[kind] = route
        _obey(address, name)
        context.routes[type(message)].handler(message, launch)

    before = {kind: context.routes[kind] for kind in chosen}
    for kind, route in before.items():
        context.routes[kind] = route._replace(handler=gated)
    return len(chosen)


def halve(x: Any) -> None:
    """Halve in place."""
    x *= 0.5


def holdings() -> tuple[int, int, tuple[tuple[str, int], ...]]:
    """Return how many buffers the context has, their bytes, and whose the largest are."""
    table = _service()._context.table
    largest = tuple((one.label, one.nbytes) for one in table.largest_owners())
    return len(table), table.used_bytes, largest


def segments_are_there(ids: list[int]) -> bool:
    """Whether these are mapped; waits a moment for it, for one of them may be dropped meanwhile."""
    arena: Any = _service()._context.arena
    until = time.monotonic() + 0.5
    while not (arena._known.issuperset(ids) and arena._failed.keys().isdisjoint(ids)):
        if time.monotonic() > until:
            return False
        time.sleep(0.001)
    return True


def _obey(address: str, name: str) -> None:
    order = _ask(address, name)
    if order.startswith(LOST):
        _await_loss({int(number) for number in order.split()[2:]})
        order = _ask(address, name)
    _perform(order)


def _await_loss(ids: set[int]) -> None:
    """Wait until none of these segments can be used; the arena may get another at any time."""
    arena: Any = _service()._context.arena
    while ids & arena._known - arena._failed.keys():
        time.sleep(0.001)


def _ask(address: str, name: str) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.connect("\0" + address)
        door.sendall(name.encode())
        try:
            return door.recv(4096).decode() or GO
        except ConnectionResetError:
            return GO


def _service() -> Any:
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        owner = frame.f_locals.get("self")
        if type(owner).__name__ == "Dispatcher":
            return owner
    raise LookupError("this is no context")


def _perform(order: str) -> None:
    if order == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif order == "segfault":
        ctypes.string_at(0)
    elif order == "exit":
        os._exit(3)
    elif order == "wedge":
        _stand_still()
    elif order == "out of memory":
        _service()._context.allocate((1 << 50,), "uint8")
    elif order.startswith(CORRUPT):
        reporter = _service()._reporter
        garble(reporter._sending, reporter._transport, int(order.removeprefix(CORRUPT)))
        threading.Event().wait(20)  # the notebook ends us
    elif order != GO:
        _service()._context.backend.fault(order)


def _stand_still() -> None:
    """Read nothing from now on; the clock is put on once the control thread has noticed."""
    service = _service()
    (control,) = [one for one in threading.enumerate() if one.name == "control"]

    def turn() -> None:
        while True:
            if service._deferral.ready:  # else it would be at something
                service._resume()
            if control._unread_s > 0.0:  # type: ignore[attr-defined]
                control._unread_s += LONG_S  # type: ignore[attr-defined]
                send_packet(control._channel, control._heartbeat())  # type: ignore[attr-defined]
            time.sleep(0.005)

    service._turn = turn


def garble(lock: Any, transport: Any, variant: int) -> None:
    """Send what no peer would: a damaged frame, or a length that cannot be."""
    with lock:
        writer = getattr(transport, "_writer", None)
        if variant < len(GARBAGE) or writer is None:
            transport.send(GARBAGE[variant % len(GARBAGE)])
            return
        tail = writer._words[0]
        writer._frames[tail % (4 << 20) // 8] = 1 << 40
        writer._tail = writer._words[0] = tail + 64
        transport._wire.send(b"\0", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)


class Held:
    """A context that has stopped at the gate `name`."""

    def __init__(self, name: str, connection: socket.socket) -> None:
        self.name = name
        self._connection = connection

    def tell(self, order: str = GO) -> None:
        """Have it go on, or do what is ordered first; harmless when it is gone."""
        with contextlib.suppress(OSError):
            self._connection.sendall(order.encode())
        self._connection.close()


class Door:
    """Where contexts knock that have stopped at a gate."""

    def __init__(self) -> None:
        self.address = f"accel_lab-campaign-{os.getpid()}-{id(self)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind("\0" + self.address)
        self._socket.listen(64)
        self._waiting: dict[str, Held] = {}

    def wait(self, name: str, timeout_s: float = 30.0) -> Held:
        """Return the context that stops at this gate."""
        deadline = time.monotonic() + timeout_s
        while name not in self._waiting:
            left = deadline - time.monotonic()
            assert left > 0, f"nobody came to the gate {name!r}"
            self._socket.settimeout(left)
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                continue
            connection.settimeout(5.0)
            who = connection.recv(256).decode()
            self._waiting[who] = Held(who, connection)
        return self._waiting.pop(name)

    def close(self) -> None:
        """Let everybody go."""
        for held in self._waiting.values():
            held.tell()
        self._waiting.clear()
        self._socket.close()
