"""End a process together with the one that started it, however that one ends."""

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1


def protect(parent: int) -> None:
    """End with the thread of the parent that started this process; ignore its Ctrl-C."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def outlive_thread() -> None:
    """End no more with that thread; whoever calls this watches the parent by other means."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)
