"""Attention on the host: NumPy, some megabytes at a time, by products of BLAS."""

from typing import Any

from accel_lab.backends.host.dnn.library import HostKit
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.libraries.attention.evaluation.paged import Paged
from accel_lab.libraries.attention.evaluation.terms import Size

_SIZE = Size(rows=128, keys=512, scores=2**19)


class HostCacheKit(HostKit):
    """NumPy's arrays, which are where they are computed with."""

    def storage(self, dtype: str) -> Any:
        """Return NumPy's dtype."""
        return numpy_dtype(dtype)

    def fetched(self, x: Any) -> Any:
        """Return the array itself."""
        return x


class HostAttention(Paged):
    """Calls NumPy at once: on the host, what is enqueued is done."""

    def __init__(self) -> None:
        super().__init__(HostCacheKit(), _SIZE)
