"""Norms on cuda: of contiguous rows by one kernel, all others by CuPy's."""

import math
from typing import Any

from accel_lab.backends.cuda.dnn.norms import HEAD, NormForm, threads_of
from accel_lab.backends.cuda.own_kernels.element import FLOATS
from accel_lab.backends.cuda.own_kernels.launches import Launch, Launches
from accel_lab.backends.cuda.own_kernels.packed import Packed
from accel_lab.libraries.dnn.evaluation.kit import Kit
from accel_lab.libraries.dnn.evaluation.normalizing import Norms
from accel_lab.libraries.dnn.normalization import LayerNorm, RmsNorm


class CudaNorms(Norms):
    """Enqueues on the device's active stream; used by the dispatcher thread.

    A kernel is compiled at its first use, and kept on disk for every later process.
    """

    def __init__(self, launches: Launches, kit: Kit) -> None:
        super().__init__(kit)
        self._launches = launches
        self._normalizing: dict[NormForm, Launch] = {}
        self._argument = Packed(HEAD)

    def layer_norm(self, m: LayerNorm, x: Any, scale: Any, bias: Any, out: Any) -> None:
        """Write the normalized rows."""
        if not self._normalized(m, x, scale, bias, out, centered=True):
            super().layer_norm(m, x, scale, bias, out)

    def rms_norm(self, m: RmsNorm, x: Any, scale: Any, out: Any) -> None:
        """Write the rows over their root mean squares."""
        if not self._normalized(m, x, scale, None, out, centered=False):
            super().rms_norm(m, x, scale, out)

    def _normalized(
        self, m: LayerNorm | RmsNorm, x: Any, scale: Any, bias: Any, out: Any, *, centered: bool
    ) -> bool:
        """Enqueue a norm, and return whether there is a kernel for it."""
        launches, arrays = self._launches, (x, scale, bias, out)
        if m.x.dtype not in FLOATS or not x.size:
            return False
        if not all(one is None or launches.is_contiguous(one) for one in arrays):
            return False
        addresses = [launches.address(one) for one in arrays]
        if 0 < abs(addresses[0] - addresses[3]) < x.nbytes:  # it would read what it has written
            return False
        form = NormForm(m.x.dtype, centered)
        if form not in self._normalizing:
            self._normalizing[form] = launches.kernel(form.source(), "normalize")
        width = math.prod(x.shape[x.ndim - m.axes :])
        self._argument.fill(*addresses, width, float(m.epsilon))
        self._normalizing[form]((x.size // width, 1), threads_of(width), self._argument)
        return True
