"""The NVIDIA driver and its cards, asked through NVML, which opens no CUDA context."""

import os
import platform
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from accel_lab.compute.machine.loaded_driver import UNPROTECTED, open_contexts
from accel_lab.doctor.finding import CUDA, Finding
from accel_lab.doctor.machine import size

CudaVersion = tuple[int, int]

OLDEST_CUDA: CudaVersion = (12, 0)
PCI = Path("/sys/bus/pci/devices")
NVIDIA_VENDOR = "0x10de"
CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))
DRIVER_COMMANDS = {
    "debian": "sudo apt-get install nvidia-driver",
    "fedora": "sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda",
    "ubuntu": "sudo ubuntu-drivers install",
}
HOST_REMAINS = "the cuda backend; the host backend computes the same on the CPU"
DRIVER_FIRST = "the cuda backend, which needs the driver first; the host backend needs neither"


class Nvidia(NamedTuple):
    """The newest CUDA version that the driver runs, if there is one, and the findings."""

    cuda_version: CudaVersion | None
    findings: tuple[Finding, ...]


def nvidia(nvml: Any = None) -> Nvidia:
    """Ask NVML (the module `pynvml`) for the driver and every card."""
    if nvml is None:
        try:
            nvml = import_module("pynvml")
        except ImportError:
            return Nvidia(None, (_absent("nvidia-ml-py, which asks the driver, is missing"),))
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return Nvidia(None, (_absent(f"no driver answers: {error}"),))
    try:
        code = nvml.nvmlSystemGetCudaDriverVersion_v2()
        version = (code // 1000, code % 1000 // 10)
        driver = _driver(nvml.nvmlSystemGetDriverVersion(), version)
        return Nvidia(version, (driver, *_cards(nvml), *_visible_devices()))
    except nvml.NVMLError as error:
        return Nvidia(None, (_absent(f"the driver does not answer: {error}"),))
    finally:
        nvml.nvmlShutdown()


def own_contexts() -> Iterator[Finding]:
    """Say on which cards this process itself has a CUDA context, whose faults would be its own."""
    cards = open_contexts()
    if cards:
        yield Finding(
            topic="gpu",
            name="own CUDA context",
            state="limited",
            found=f"this process has one on card {', '.join(map(str, cards))}",
            disables=f"the protection of this process: {UNPROTECTED}",
        )


def _absent(found: str) -> Finding:
    has_card = _has_card()
    return Finding(
        topic="gpu",
        name="driver",
        state="missing",
        found=found if has_card else f"{found}; this machine shows no NVIDIA card",
        disables=HOST_REMAINS,
        command=_driver_command() if has_card else "",
        blocks=CUDA,
    )


def _driver(version: str, cuda_version: CudaVersion) -> Finding:
    found = f"{version}, for CUDA up to {cuda_version[0]}.{cuda_version[1]}"
    if cuda_version >= OLDEST_CUDA:
        return Finding(topic="gpu", name="driver", state="ok", found=found)
    return Finding(
        topic="gpu",
        name="driver",
        state="missing",
        found=f"{found}; the CUDA packages start at {OLDEST_CUDA[0]}.{OLDEST_CUDA[1]}",
        disables=HOST_REMAINS,
        command=_driver_command(),
        blocks=CUDA,
    )


def _cards(nvml: Any) -> Iterator[Finding]:
    count = nvml.nvmlDeviceGetCount()
    if not count:
        yield Finding(
            topic="gpu",
            name="gpu0",
            state="missing",
            found="the driver shows no card",
            disables=HOST_REMAINS,
            command=_driver_command() if _in_container() else "",
            blocks=CUDA,
        )
    for index in range(count):
        try:
            yield _card(nvml, f"gpu{index}", nvml.nvmlDeviceGetHandleByIndex(index))
        except nvml.NVMLError as error:
            yield Finding(
                topic="gpu",
                name=f"gpu{index}",
                state="missing",
                found=f"does not answer: {error}",
                disables="this card",
                blocks=CUDA if count == 1 else (),
            )


def _card(nvml: Any, name: str, handle: Any) -> Finding:
    memory = _optional(nvml, "nvmlDeviceGetMemoryInfo", handle)
    capability = _optional(nvml, "nvmlDeviceGetCudaComputeCapability", handle)
    mig = _optional(nvml, "nvmlDeviceGetMigMode", handle)
    parts = [
        nvml.nvmlDeviceGetName(handle),
        size(memory.total) if memory else "",
        f"compute capability {capability[0]}.{capability[1]}" if capability else "",
        "MIG on" if mig and mig[0] else "",
    ]
    return Finding(
        topic="gpu",
        name=name,
        state="ok",
        found=", ".join(filter(None, parts)),
        size_bytes=memory.total if memory else None,
    )


def _optional(nvml: Any, function: str, handle: Any) -> Any:
    """Ask what not every card answers; None where this one does not."""
    try:
        return getattr(nvml, function)(handle)
    except nvml.NVMLError:
        return None


def _visible_devices() -> Iterator[Finding]:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        hidden = not visible or visible.startswith("-")
        yield Finding(
            topic="gpu",
            name="CUDA_VISIBLE_DEVICES",
            state="missing" if hidden else "limited",
            found=repr(visible),
            disables="every card" if hidden else "the cards that it does not name",
            command="unset CUDA_VISIBLE_DEVICES",
            blocks=CUDA if hidden else (),
        )


def _has_card() -> bool:
    return any(
        vendor.read_text().strip() == NVIDIA_VENDOR
        and (vendor.parent / "class").read_text().startswith("0x03")
        for vendor in PCI.glob("*/vendor")
    )


def _in_container() -> bool:
    return any(mark.exists() for mark in CONTAINER_MARKS)


def _driver_command() -> str:
    """Give the command of this distribution, or of whoever starts its container."""
    if _in_container():
        return "docker run --gpus all ..."
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    for family in (release.get("ID", ""), *release.get("ID_LIKE", "").split()):
        if family in DRIVER_COMMANDS:
            return DRIVER_COMMANDS[family]
    return "see https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
