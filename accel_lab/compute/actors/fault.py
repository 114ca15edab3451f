"""Cause real faults on purpose, inside the context."""

import ctypes
import os
import signal
from typing import ClassVar, Literal, get_args

from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.message.operation import Operation
from accel_lab.errors import InvalidArgument

Fault = Literal["kill", "segfault", "exit", "poison", "trap", "hang", "library", "out of memory"]
FAULTS: tuple[str, ...] = get_args(Fault)


class Inject(Operation[None], frozen=True, array_like=True, eq=False, tag=7):
    """Cause a fault where it would occur by itself."""

    library: ClassVar[str] = "fault"
    opaque: ClassVar[str] = "a fault on purpose is not repeated"
    kind: str

    def infer(self) -> None:
        """Refuse a word that names no fault."""
        if self.kind not in FAULTS:
            text = f"{self.kind!r} is no fault; there are {', '.join(FAULTS)}"
            raise InvalidArgument(text)


class FaultActor(LibraryActor):
    """Causes faults: the process's own here, the device's in the backend."""

    library = "fault"

    @handles(Inject)
    def inject(self, m: Inject, _: Launch) -> None:
        """Cause it; most kinds do not return."""
        if m.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif m.kind == "segfault":
            ctypes.string_at(0)
        elif m.kind == "exit":
            os._exit(3)
        elif m.kind == "out of memory":
            self.context.allocate((1 << 50,), "uint8")
        else:
            self.context.backend.fault(m.kind)
