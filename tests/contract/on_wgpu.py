"""Which tests of the contract run on wgpu, too.

A processor's adapter takes 0.1 s for each kernel that is new to it, so by default those run that
say most. With ACCEL_LAB_WGPU=all all run, of which some ask for dtypes that wgpu refuses by name.
"""

import os
from collections.abc import Mapping
from typing import Any

from accel_lab.backends.wgpu.support import SUPPORT
from tests.contract.declared import DECLARED

CHOSEN: dict[str, frozenset[str]] = {}
"""By file; without a name it is the whole file."""
_LACKING = "complex", "float8"


def runs_on_wgpu(file: str, test: str) -> bool:
    """Whether a test of the contract is one of those."""
    if os.environ.get("ACCEL_LAB_WGPU") == "all":
        return True
    chosen = CHOSEN.get(file)
    return chosen is not None and (not chosen or test in chosen)


def is_refused(parameters: Mapping[str, Any]) -> bool:
    """Whether a test is of a message or a dtype that wgpu's table lacks."""
    if parameters.get("backend") != "wgpu":
        return False
    declared = DECLARED.get(str(parameters.get("name")))
    if declared is not None and not SUPPORT[declared.row]:
        return True
    return any(str(value).startswith(_LACKING) for value in parameters.values())
