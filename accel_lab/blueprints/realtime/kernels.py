"""The kernels of the simulations: CUDA C++ in files of their own, one source for both backends."""

from collections.abc import Iterable
from importlib import resources
from typing import Any

from accel_lab import Device, jit
from accel_lab.actor.reply import Reply

THREADS = 256
MOST_BLOCKS = 1 << 16
HEADERS = ("cells.h",)


class Kernels:
    """The kernels of one file on one device; all are sent to the compiler at once.

    Each kernel walks over its elements in a loop, and is right for any number of threads.

    Parameters:
        file: in the folder `cuda`, without `.cu`.
        names: of its kernels.
        real: what `Real` is in the source, "float" or "double".
    """

    def __init__(
        self, device: Device, file: str, names: Iterable[str], *, real: str = "float"
    ) -> None:
        folder = resources.files("accel_lab.blueprints.realtime") / "cuda"
        source = (folder / f"{file}.cu").read_text(encoding="utf-8")
        headers = {name: (folder / name).read_text(encoding="utf-8") for name in HEADERS}
        options = (f"-DReal={real}", "--fmad=false")  # so that both backends round alike
        self._kernels = {
            name: jit.compile(device, source, name, options=options, headers=headers)
            for name in names
        }
        # The host runs one thread after the other, so one thread is quickest there.
        self._is_host = device.name.startswith("cpu")

    def launch(self, name: str, count: int, *args: Any) -> Reply[None]:
        """Launch a kernel for `count` elements; does not block."""
        blocks = min(max(1, -(-count // THREADS)), MOST_BLOCKS)
        grid, block = (1, 1) if self._is_host else (blocks, THREADS)
        return self._kernels[name](grid, block, args)
