"""The digest of a live buffer, asked for now and taken later."""

from accel_lab.compute.buffer import AccelRef
from accel_lab.compute.contents import key_of
from accel_lab.compute.device import Device
from accel_lab.errors import AccelError


class Digesting:
    """The answer to come."""

    def __init__(self, device: Device, ref: AccelRef, *, values: bool) -> None:
        self._values = values
        self._reply = None
        try:
            self._reply = device.get(ref)
        except AccelError:
            return

    @property
    def done(self) -> bool:
        """Whether it has come."""
        return self._reply is None or self._reply.done

    def result(self) -> tuple[str, bytes | None] | None:
        """Return the digest, and the bytes if asked for; None when the buffer was never made."""
        try:
            data = None if self._reply is None else self._reply.result().tobytes()
        except AccelError:
            return None
        return None if data is None else (key_of(data), data if self._values else None)
