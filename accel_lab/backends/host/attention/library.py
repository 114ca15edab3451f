"""Attention on the host: NumPy, some megabytes at a time, by products of BLAS."""

from accel_lab.backends.host.dnn.library import HostKit
from accel_lab.libraries.attention.evaluation.dense import Dense
from accel_lab.libraries.attention.evaluation.terms import Size

_SIZE = Size(rows=128, keys=512, scores=2**19)


class HostAttention(Dense):
    """Calls NumPy at once: on the host, what is enqueued is done."""

    def __init__(self) -> None:
        super().__init__(HostKit(), _SIZE)
