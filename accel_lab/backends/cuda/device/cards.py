"""The NVIDIA cards as NVML reports them, without opening a CUDA context."""

import os
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple


class Cards(NamedTuple):
    """What the driver offers this process.

    Attributes:
        number: the cards that CUDA would show.
        cuda_major: the newest CUDA that the driver runs; 0 without a driver.
        reason: why there are none, for people; empty when there are some.
        driver: its version, as `580.159.04`.
    """

    number: int
    cuda_major: int
    reason: str
    driver: str = ""


def cards() -> Cards:
    """Ask NVML; blocks for some milliseconds, any thread."""
    try:
        nvml = import_module("pynvml")
    except ImportError:
        return Cards(0, 0, "NVML cannot be asked; pip install nvidia-ml-py")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return Cards(0, 0, f"no NVIDIA driver answers: {error}")
    try:
        major = nvml.nvmlSystemGetCudaDriverVersion_v2() // 1000
        total = nvml.nvmlDeviceGetCount()
        driver = nvml.nvmlSystemGetDriverVersion()
    except nvml.NVMLError as error:
        return Cards(0, 0, f"the NVIDIA driver does not answer: {error}")
    finally:
        with suppress(nvml.NVMLError):
            nvml.nvmlShutdown()
    if total == 0:
        return Cards(0, major, "the NVIDIA driver shows no card")
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = total if chosen is None else visible(chosen, total)
    if count == 0:
        return Cards(0, major, f"CUDA_VISIBLE_DEVICES={chosen!r} hides every card")
    return Cards(count, major, "", driver)


def visible(chosen: str, total: int) -> int:
    """Count the cards that CUDA_VISIBLE_DEVICES leaves of `total`.

    As CUDA does, it stops at the first entry that names no card.
    """
    entries = [entry.strip() for entry in chosen.split(",")]
    for place, entry in enumerate(entries):
        by_number = entry.isdecimal() and int(entry) < total
        if not by_number and not entry.startswith(("GPU-", "MIG-")):
            return place
    return len(entries)
