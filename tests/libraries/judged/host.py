"""Factorizations on the host, by LAPACK; streams there are late on request."""

import threading
from typing import Any

import numpy as np
from scipy.linalg import lapack

from accel_lab.backends.host.device import HostBackend, HostStream
from accel_lab.compute.execution.stream import NativeStream

there = threading.Event()
there.set()


class LateStream(HostStream):
    """A stream that does its work at once and is done when it is let."""

    def done(self) -> bool:
        """Return whether it is."""
        return there.is_set()

    def reached(self, event: Any) -> bool:
        """Return whether it is."""
        del event
        return there.is_set()

    def synchronize(self, event: Any) -> None:
        """Wait until it is."""
        del event
        there.wait()


def late_stream(self: HostBackend, priority: int = 0) -> NativeStream:
    """Return a stream for libraries and copies."""
    return LateStream()


HostBackend.native_stream = late_stream  # type: ignore[method-assign]


class HostJudged:
    """Calls LAPACK at once."""

    def cholesky(self, a: Any, out: Any) -> Any:
        """Write the lower triangle (potrf), or garbage."""
        potrf = lapack.spotrf if a.dtype == np.float32 else lapack.dpotrf
        lower, info = potrf(a, lower=1, clean=1)
        out[...] = lower
        return np.array([info], np.int32)

    def late(self, seconds: float) -> None:
        """Have a timer let them go on."""
        there.clear()
        timer = threading.Timer(seconds, there.set)
        timer.daemon = True
        timer.start()
