"""NCCL's functions, where they are installed; a single card works without them.

nccl4py's own classes try to import PyTorch in each call, which takes seconds and memory. So what
lies beneath them is called: `nccl.bindings`, which takes addresses, counts and numbers of dtypes.
"""

import os
from functools import cache
from importlib.metadata import distributions
from typing import Any

from accel_lab.display.install import pip_install
from accel_lab.errors import BackendUnavailable

OLDEST = 22300
"""2.23 has `ncclCommInitRankScalable`, by which communicators are made."""
IN_PROGRESS = 7
"""`ncclInProgress`: a thread of NCCL's is still at what was called."""
DTYPES = {
    "int8": 0,
    "uint8": 1,
    "int32": 2,
    "uint32": 3,
    "int64": 4,
    "uint64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
    "float8_e4m3fn": 10,
    "float8_e5m2": 11,
}
"""`ncclDataType_t`."""
REDUCTIONS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "avg": 4}
"""`ncclRedOp_t`."""
_VARIABLES = {
    # Contexts are killed as a matter of course, and whoever dies with NVLink's multicast set up may
    # take all cards of the machine out of service with him.
    "NCCL_NVLS_ENABLE": "0",
    # Rings and trees are connected while all ranks join. Else the first operation does that, and
    # the dispatcher would wait for the other ranks.
    "NCCL_RUNTIME_CONNECT": "0",
}


def set_variables() -> None:
    """Say in the environment how NCCL is to work, unless the user has; it reads that once."""
    for name, value in _VARIABLES.items():
        os.environ.setdefault(name, value)


def multicasts() -> bool:
    """Whether NCCL may use NVLink's multicast."""
    return os.environ.get("NCCL_NVLS_ENABLE") != "0"


def preload() -> None:
    """Load NCCL if it is there: that takes a third of a second, which a world would wait to heal.

    It opens no device.
    """
    set_variables()
    try:
        _loaded()
    except BackendUnavailable:
        return  # whoever asks for a communicator is told


def bindings() -> Any:
    """Return NCCL's functions.

    Raises:
        BackendUnavailable: nccl4py or NCCL is not installed, or too old.
    """
    set_variables()  # a context may have taken over the notebook's environment since it began
    return _loaded()


@cache
def _loaded() -> Any:
    try:
        from nccl.bindings import nccl

        version = nccl.get_version()
    except (ImportError, RuntimeError) as error:  # the latter where there is no libnccl
        why = " ".join(str(error).split())
        raise _unavailable(f"collective operations on cuda need nccl4py and NCCL: {why}") from error
    if version < OLDEST:
        text = f"NCCL is {written(version)}, and collective operations need {written(OLDEST)}"
        raise _unavailable(text)
    return nccl


def _unavailable(why: str) -> BackendUnavailable:
    installed = {one.metadata["Name"] for one in distributions()}
    extra = "cuda12" if "cupy-cuda12x" in installed else "cuda13"
    return BackendUnavailable(f"{why}; {pip_install(extra)}")


def written(version: int) -> str:
    """Return a version as people write it: 22809 is 2.28.9."""
    return f"{version // 10_000}.{version // 100 % 100}.{version % 100}"
