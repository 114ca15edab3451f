"""The packages that accel_lab uses, found without importing one of them.

A version comes from a package's metadata, its presence from the import system's own search for
its top-level name; so asking for CUDA's packages leaves this process free of CUDA.
"""

import os
import re
from collections.abc import Iterator
from ctypes.util import find_library
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import msgspec
from msgspec.structs import replace

from accel_lab.display.install import pip_command, pip_install
from accel_lab.doctor.finding import CUDA, HOST_AND_CUDA, Backend, Finding, Topic
from accel_lab.doctor.nvidia import DRIVER_FIRST, HOST_REMAINS, CudaVersion

CUDA_MAJORS = (12, 13)
TOGETHER = "collective operations on several GPUs; a single one does all else"
LIBRARY_FOLDERS = ("CUDA_PATH/lib64", "CUDA_HOME/lib64", "CONDA_PREFIX/lib")


class Package(msgspec.Struct, frozen=True):
    """A package by its names.

    Attributes:
        name: what the report calls it.
        distribution: what its metadata is filed under (conda files CuPy under `name`).
        at_least: the oldest version that serves; empty where another package decides that.
        module: the top-level name it is imported by; empty for a bare shared library.
        disables: what does not work without it.
    """

    name: str
    distribution: str
    at_least: str = ""
    module: str = ""
    disables: str = ""


CORE = (
    Package("cloudpickle", "cloudpickle", "3.0", "cloudpickle"),
    Package("ml_dtypes", "ml_dtypes", "0.5", "ml_dtypes"),
    Package("opt_einsum", "opt_einsum", "3.4", "opt_einsum"),
    Package("msgspec", "msgspec", "0.19", "msgspec"),
    Package("numpy", "numpy", "2.1", "numpy"),
    Package("nvidia-ml-py", "nvidia-ml-py", "12.560", "pynvml"),
    Package("rich", "rich", "13.7", "rich"),
    Package("scipy", "scipy", "1.14", "scipy"),
    Package("threadpoolctl", "threadpoolctl", "3.5", "threadpoolctl"),
    Package("typer", "typer", "0.15", "typer"),
)

JUPYTER = (
    Package("jupyterlab", "jupyterlab", "4.2", "jupyterlab", "`accel-lab lab`"),
    Package(
        "ipykernel",
        "ipykernel",
        "7.1",
        "ipykernel",
        "notebooks; before 7.1 a live view may stop, or answer only between cells",
    ),
    Package("ipywidgets", "ipywidgets", "8.1", "ipywidgets", "live views; their tables remain"),
    Package("anywidget", "anywidget", "0.9", "anywidget", "live views; their tables remain"),
    Package("panel", "panel", "1.5", "panel", "`accel-lab dashboard`"),
    Package(
        "prometheus-client",
        "prometheus-client",
        "0.20",
        "prometheus_client",
        "`accel-lab dashboard` and its metrics",
    ),
)


def cuda(major: int) -> tuple[Package, ...]:
    """List what the extra `cuda12` or `cuda13` brings, as far as the cuda backend uses it."""
    suffix = "-cu12" if major == 12 else ""  # noqa: PLR2004 - wheels for CUDA 13 have no suffix
    return (
        Package("cupy", f"cupy-cuda{major}x", "14.2", "cupy"),
        Package("cuda-bindings", "cuda-bindings", {12: "12.9.2", 13: "13.0"}[major], "cuda"),
        Package("cuda-core", "cuda-core", "1.2", "cuda"),
        Package("nvmath-python", "nvmath-python", "1.0", "nvmath"),
        Package("cublas", f"nvidia-cublas{suffix}"),
        Package("nvrtc", f"nvidia-cuda-nvrtc{suffix}"),
        Package("nccl4py", "nccl4py", "0.6", "nccl", TOGETHER),
        Package("cuda-cccl", "cuda-cccl", "1.2.1", disables="`primitives`"),
        Package("nccl", f"nvidia-nccl-cu{major}", "2.23", disables=TOGETHER),
    )


def core_packages() -> Iterator[Finding]:
    """Look for what no part of accel_lab runs without."""
    for package in CORE:
        yield _find("core", package, "everything", pip_install(), HOST_AND_CUDA)


def jupyter_packages() -> Iterator[Finding]:
    """Look for what the notebooks and the views need."""
    for package in JUPYTER:
        yield _find("jupyter", package, package.disables, pip_install("lab"), ())


def cuda_packages(driver: CudaVersion | None) -> Iterator[Finding]:
    """Look for the cuda backend's packages: those of the newest CUDA that `driver` runs."""
    installed = [major for major in CUDA_MAJORS if _version(f"cupy-cuda{major}x")]
    newest = min(driver[0], CUDA_MAJORS[-1]) if driver else CUDA_MAJORS[-1]
    major = max((m for m in installed if m <= newest), default=max(newest, CUDA_MAJORS[0]))
    command = pip_install(f"cuda{major}")
    if wrong := [f"cupy-cuda{m}x" for m in installed if m != major]:
        yield Finding(
            topic="cuda",
            name="cupy for another CUDA",
            state="limited",
            found=", ".join(wrong),
            disables=f"importing cupy for CUDA {major}: both write the same files",
            command=pip_command(f"uninstall {' '.join(wrong)}"),
        )
    for package in cuda(major):
        disables = (package.disables or HOST_REMAINS) if driver else DRIVER_FIRST
        yield _find("cuda", package, disables, command, () if package.disables else CUDA)


def _find(
    topic: Topic, package: Package, disables: str, command: str, blocks: tuple[Backend, ...]
) -> Finding:
    found = _version(package.distribution) or _version(package.name)
    if not found and not package.module:
        found = _system_library(package.name)
    missing = Finding(
        topic=topic,
        name=package.name,
        state="missing",
        found=f"{package.distribution} is not installed",
        disables=disables,
        command=command,
        blocks=blocks,
    )
    if not found:
        return missing
    if package.module and not find_spec(package.module):
        repair = pip_command(f"install --force-reinstall --no-deps {package.distribution}")
        return replace(missing, found=f"{found}, but without its files", command=repair)
    if _release(found) < _release(package.at_least):
        older = f"{found}, older than {package.at_least}"
        return replace(missing, state="limited", found=older, blocks=())
    return Finding(topic=topic, name=package.name, state="ok", found=found)


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _release(text: str) -> tuple[int, ...]:
    """Read the numbers of a version, `7.1.0rc2` as (7, 1, 0), so that they compare."""
    digits = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, digits[0].split("."))) if digits else ()


def _system_library(name: str) -> str | None:
    """Look where the loader and CUDA's own packages look for a library."""
    if found := find_library(name):
        return found
    for place in LIBRARY_FOLDERS:
        variable, _, folder = place.partition("/")
        if prefix := os.environ.get(variable):
            for path in sorted(Path(prefix, folder).glob(f"lib{name}.so*")):
                return str(path)
    return None
