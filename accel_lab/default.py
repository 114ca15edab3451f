"""The default system, for those who open none: `from accel_lab import gpu` is its device.

There is one in a process. It is opened by its first use and not by `import accel_lab`.
"""

import atexit
import contextlib
import os
import threading

from accel_lab.compute.arena.ledger import FIRST_BYTES
from accel_lab.compute.cells import workspace_registry
from accel_lab.compute.process import zygote_cache
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.system import System

_lock = threading.RLock()
_system: System | None = None
_opening = False


def default_system() -> System:
    """Return the system whose device is `accel_lab.gpu`; any thread.

    The first call opens it, with the machine's first device, and does not wait: the context starts
    while the program goes on, and the memory for transfers is prepared on a thread. When the
    interpreter ends it is closed, when it has done what it was sent (`System.finish_s`). Once it
    was closed, and in a fork, the next call opens another; handles and devices of the old one stay
    closed.

    Raises:
        BackendUnavailable: no backend can run here.
        InvalidArgument: this process is a context, whose device is its notebook's; or a finalizer
            asks in the middle of the opening.
    """
    if workspace_registry.serving():
        raise InvalidArgument(
            "this code runs in a device's context, where buffers are already arrays: use gpu only "
            "in the notebook"
        )
    global _system, _opening  # noqa: PLW0603 - one a process
    with _lock:
        if _opening:
            raise InvalidArgument(
                "a finalizer (__del__) cannot use the default system while its thread opens it: "
                "keep the device in the object that needs it"
            )
        if _system is None:
            atexit.register(_close)
        if _system is None or _system.devices[0].state == "stopped":
            _opening = True
            try:
                _system = System(devices=1, name="default")
            finally:
                _opening = False
            _system.again = "from accel_lab import gpu opens another"
            threading.Thread(
                target=_warm, args=(_system,), name="accel_lab default warming", daemon=True
            ).start()
        return _system


def _warm(system: System) -> None:
    """Have a segment made that any fetch of up to half its size shares, and would wait for."""
    with contextlib.suppress(AccelError):  # it was closed meanwhile
        system.empty(FIRST_BYTES)  # which is too large for the first, small one


def _close() -> None:
    if _system is not None:
        _system.end()
        zygote_cache.end()  # no other system comes


def _renew_lock() -> None:
    """Have a fork wait for no thread that it does not have."""
    global _lock  # noqa: PLW0603 - as above
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)
