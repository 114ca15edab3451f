"""The kernels of the simulations: CUDA C++ in files of their own, one source for both backends."""

from collections.abc import Mapping
from functools import partial
from importlib import resources
from typing import Any

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device
from accel_lab.libraries import jit
from accel_lab.libraries.jit.kernel import Kernel

THREADS = 256
MOST_BLOCKS = 1 << 16
HEADERS = ("cells.h", "summary.h")


class Kernels:
    """The kernels of one file on one device; each is compiled when it is first launched.

    Launches wait for the compiler, and nobody else does: those of a step are compiled together.
    Each kernel walks over its elements in a loop, and is right for any number of threads.

    Parameters:
        file: in the folder `cuda`, without `.cu`.
        defines: macros of the source, as {"Real": "double"}.
    """

    def __init__(
        self,
        device: Device,
        file: str,
        *,
        defines: Mapping[str, str] | None = None,
    ) -> None:
        folder = resources.files("accel_lab.blueprints.realtime") / "cuda"
        source = (folder / f"{file}.cu").read_text(encoding="utf-8")
        headers = {name: (folder / name).read_text(encoding="utf-8") for name in HEADERS}
        options = [f"-D{name}={value}" for name, value in (defines or {}).items()]
        options.append("--fmad=false")  # so that both backends round alike
        self._compile = partial(
            jit.compile, device, source, options=tuple(options), headers=headers
        )
        self._kernels: dict[str, Kernel] = {}
        # The host runs one thread after the other, so one thread is quickest there.
        self._is_host = device.name.startswith("cpu")

    def launch(self, name: str, count: int, *args: Any) -> Reply[None]:
        """Launch a kernel for `count` elements; does not block."""
        blocks = min(max(1, -(-count // THREADS)), MOST_BLOCKS)
        grid, block = (1, 1) if self._is_host else (blocks, THREADS)
        kernel = self._kernels.get(name)
        if kernel is None:
            kernel = self._kernels[name] = self._compile(name)
        return kernel(grid, block, args)
