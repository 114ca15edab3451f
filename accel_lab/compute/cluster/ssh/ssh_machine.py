"""The machine that ssh reaches, as a relay knows it: connected, connected again, lost."""

import secrets
import threading
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from accel_lab.compute.cluster.entries import Down, Up
from accel_lab.compute.cluster.relay import NodeLost
from accel_lab.compute.cluster.ssh.batches import decode, encode
from accel_lab.compute.cluster.ssh.far_process import FarProcess
from accel_lab.compute.cluster.ssh.greeting import GONE, Hello, Welcome
from accel_lab.compute.cluster.ssh.stream import Stream, StreamEnded
from accel_lab.compute.cluster.ssh.target import Target
from accel_lab.errors import BackendUnavailable, InvalidArgument

START_LIMIT_S = 60.0
AGAIN_LIMIT_S = 20.0
CLOSE_LIMIT_S = 4.0
_PAUSES_S = (0.05, 2.0)


class SshMachine:
    """What owns the contexts there; `relay.Machine`.

    Parameters:
        backend, devices: as `System` was given them.
        grace_s: for how long a connection that was cut is made anew.

    Attributes:
        backend, indices: what there is, once it has begun.
    """

    def __init__(
        self, target: Target, backend: str, devices: int | list[int] | None, grace_s: float
    ) -> None:
        self.name = target.place
        self.backend = backend
        self.indices: list[int] = []
        self._target = target
        self._hello = Hello(
            secrets.token_hex(16), backend=backend, devices=devices, grace_s=grace_s
        )
        self._grace_s = grace_s
        self._stream = Stream(f"accel_lab {target.place}")
        self._far: FarProcess | None = None
        self._connecting: FarProcess | None = None
        self._is_begun = self._is_leaving = False
        self._thread = threading.Thread(
            target=self._keep, name=f"accel_lab keeps {target.place}", daemon=True
        )

    @property
    def is_cut(self) -> bool:
        """Whether there is no connection now."""
        return self._stream.cut_at is not None

    @property
    def is_mute(self) -> bool:
        """Whether no context can be heard now: it is cut, or a large answer is in the way."""
        return self.is_cut or self._stream.is_receiving

    @property
    def is_entered(self) -> bool:
        """Whether this thread is one of its own, which carries what others wait for."""
        return threading.current_thread() is self._thread or self._stream.is_entered

    @property
    def is_over(self) -> bool:
        """Whether nothing can be had of it any more."""
        return bool(self._stream.ended)

    def begin(self) -> None:
        """Connect for the first time; nothing happens where that is done.

        Raises:
            BackendUnavailable: the machine is not reached, or has not what is needed.
            InvalidArgument: it has no such backend or devices.
        """
        if self._is_begun:
            return
        try:
            far, welcome = self._connect(self._hello, START_LIMIT_S)
        except BackendUnavailable as error:
            self._stream.end(str(error))  # whoever tries again makes another
            raise
        if welcome.refused:
            far.close()
            far.release()
            text = f"{self.name}: {welcome.refused}"
            raise (
                InvalidArgument(text)
                if welcome.kind == "InvalidArgument"
                else BackendUnavailable(text)
            )
        self.backend, self.indices = welcome.backend, welcome.indices
        self._is_begun, self._far = True, far
        self._stream.attach(far, welcome.received)
        self._thread.start()

    def down(self, entries: list[Down]) -> None:
        """Have them sent; they wait here while there is no connection."""
        try:
            self._stream.send(encode(entries))
        except StreamEnded as error:
            raise NodeLost(str(error)) from error

    def up(self, timeout_s: float) -> list[Up] | None:
        """Return what has come."""
        try:
            data = self._stream.receive(timeout_s)
            found: Sequence[Any] = [] if data is None else decode(data)
        except StreamEnded as error:
            raise NodeLost(str(error)) from error
        except (msgspec.DecodeError, ValueError) as error:
            raise NodeLost(f"what it said cannot be read: {error}") from error
        return list(found)

    def close(self) -> None:
        """End the far process with its contexts; blocks until that is known, 4 s at most."""
        stream = self._stream
        if self._is_begun and not stream.ended:
            until = time.monotonic() + CLOSE_LIMIT_S
            stream.wait(lambda: not self.is_cut or bool(stream.ended), CLOSE_LIMIT_S / 2)
            self._is_leaving = True
            stream.say_bye()
            stream.wait(lambda: self.is_cut or bool(stream.ended), until - time.monotonic())
        self._is_leaving = True
        stream.end("its system was closed")
        connecting = self._connecting
        if connecting is not None:
            connecting.close()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(CLOSE_LIMIT_S)
        if self._far is not None:
            self._far.close()

    def _connect(self, hello: Hello, limit_s: float) -> tuple[FarProcess, Welcome]:
        far = self._connecting = FarProcess(
            self._target, "" if self._far is None else self._far.program
        )
        if self._is_leaving:  # and has not seen this one
            far.close()
        try:
            return far, far.greet(hello, time.monotonic() + limit_s)
        except BaseException:
            far.close()
            far.release()
            raise
        finally:
            self._connecting = None

    def _keep(self) -> None:
        """Make the connection anew whenever it is cut."""
        while not self.is_over and not self._is_leaving:
            self._stream.wait(lambda: self.is_cut or self.is_over)
            self._reconnect()

    def _reconnect(self) -> None:
        """Try until there is a connection, nobody wants one, or that has taken too long."""
        stream, pause_s, why = self._stream, _PAUSES_S[0], "it was cut"
        until = (stream.cut_at or time.monotonic()) + self._grace_s
        while self._misses():
            left_s = until - time.monotonic()
            if left_s <= 0:
                stream.end(f"no connection for {self._grace_s:g} s: {why}")
                return
            try:
                self._resume(min(left_s, AGAIN_LIMIT_S))
            except BackendUnavailable as error:
                why = str(error)
                stream.wait(lambda: self.is_over, min(pause_s, left_s))
                pause_s = min(2 * pause_s, _PAUSES_S[1])

    def _misses(self) -> bool:
        """Whether it is to have a connection, and has none."""
        return self.is_cut and not self.is_over and not self._is_leaving

    def _resume(self, limit_s: float) -> None:
        stream = self._stream
        hello = msgspec.structs.replace(self._hello, resumes=True, received=stream.detach())
        far, welcome = self._connect(hello, limit_s)
        if welcome.refused:
            far.close()
            far.release()
            if welcome.kind == GONE:
                stream.end(welcome.refused)
                return
            raise BackendUnavailable(welcome.refused)
        self._far = far
        stream.attach(far, welcome.received)
