"""Which operations the host has for which dtypes: all but CUDA's binaries and engines."""

from collections.abc import Mapping

from accel_lab.backends.support import COMMON

_ON_A_CARD = ("Load", "RuntimeCache", "Inspect", "OutputShapes", "Execute")

SUPPORT: Mapping[str, frozenset[str]] = {
    **COMMON,
    "cutlass.Export": frozenset(),
    "cutlass.Install": frozenset(),
    "module.Load": frozenset(),
    "module.Binary": frozenset(),
    **{f"tensorrt.{name}": frozenset() for name in _ON_A_CARD},
}
