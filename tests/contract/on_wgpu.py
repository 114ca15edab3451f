"""Which tests of the contract run on wgpu, too.

A processor's adapter takes 0.1 s for each kernel that is new to it, so by default those run that
say most. With ACCEL_LAB_WGPU=all all run, of which some ask for what wgpu refuses by name.
"""

import os

CHOSEN: dict[str, frozenset[str]] = {}
"""By file; without a name it is the whole file."""


def runs_on_wgpu(file: str, test: str) -> bool:
    """Whether a test of the contract is one of those."""
    if os.environ.get("ACCEL_LAB_WGPU") == "all":
        return True
    chosen = CHOSEN.get(file)
    return chosen is not None and (not chosen or test in chosen)
