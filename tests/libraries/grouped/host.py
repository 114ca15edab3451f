"""Sums over several devices on the host."""

from typing import Any

import numpy as np

from accel_lab.compute.groups import group

group.GRACE_S = 0.5  # of an abort that a test has not heeded


class HostGrouped:
    """Copies at once."""

    def to_host(self, x: Any) -> Any:
        """Return a copy."""
        return np.array(x)

    def write(self, out: Any, value: Any) -> None:
        """Copy it there."""
        out[...] = value
