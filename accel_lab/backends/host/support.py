"""Which operations the host has for which dtypes: all but CUDA's binaries."""

from collections.abc import Mapping

from accel_lab.backends.support import COMMON

SUPPORT: Mapping[str, frozenset[str]] = {
    **COMMON,
    "module.Load": frozenset(),
    "module.Binary": frozenset(),
}
