"""What a context process loads before it knows its device."""

import os
from contextlib import suppress
from importlib import import_module

from accel_lab.backends import libraries
from accel_lab.backends.cuda.collective.bindings import preload


def load() -> None:
    """Import CuPy and the library bindings and load their shared libraries; no cuInit.

    Where one of NVIDIA's libraries is not installed, all works but what calls it.

    Raises:
        ImportError: a package is missing.
    """
    # CUDA's own order is "fastest first"; NVML and nvidia-smi, by which users know their cards,
    # go by the bus. It is read at cuInit.
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    from cuda.pathfinder import DynamicLibNotFoundError
    from cupy.cuda import nvrtc
    from nvmath.bindings import cublas

    import_module("accel_lab.backends.cuda.device.device")
    libraries.load(
        "cuda", DynamicLibNotFoundError
    )  # else each context would, when it opens its device
    from accel_lab.backends.cuda.jit.nvrtc import include_folders

    # Each of these reads a version number, for which its library has to be loaded.
    nvrtc.getVersion()
    with suppress(DynamicLibNotFoundError):
        cublas.get_property(0)
    include_folders()
    preload()
