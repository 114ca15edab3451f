"""What a context has compiled and searched for, as a file, and such a file on this disk."""

from typing import Any

import cupy

from accel_lab.backends.cuda.cutlass.kernels import every_template
from accel_lab.backends.cuda.cutlass.product import CudaProducts
from accel_lab.compute.execution.worker import Worker
from accel_lab.errors import FileError, InvalidArgument
from accel_lab.libraries.cutlass.prebuilt import Prebuilt, packed, unpacked


class CudaPrebuilt(CudaProducts):
    """Kernels for and from other machines."""

    def export(self) -> bytes:
        """Return the kernels in use, and the tiles that were found, as a file; any thread."""
        kernels, tiles = self._kernels.built(), self.found_tiles()
        return packed(Prebuilt(self._kernels.architecture, every_template(), kernels, tiles))

    def install(self, content: Any, worker: Worker) -> int:
        """Keep the kernels and tiles of a file on disk; blocks the worker.

        Raises:
            FileDamaged: the file is damaged.
            InvalidArgument: it is for other cards, or of other templates.
            FileError: the disk does not take it.
        """
        del worker  # its stream is CuPy's current one
        found = unpacked(cupy.asnumpy(content).tobytes())
        require_fitting(found, self._kernels.architecture)
        try:
            self._kernels.install(found.kernels)
            self.install_tiles(found.tiles)
        except OSError as error:
            raise FileError(f"cutlass: the kernels cannot be kept on disk: {error}") from error
        return len(found.kernels)


def require_fitting(found: Prebuilt, architecture: str) -> None:
    """Refuse a file that this card or this version cannot use.

    Raises:
        InvalidArgument: it is for cards of another compute capability, or of other templates.
    """
    if found.architecture != architecture:
        made, has = (f"{one[:-1]}.{one[-1]}" for one in (found.architecture, architecture))
        raise InvalidArgument(
            f"Install: the file is for cards of compute capability {made}, and this one has {has}; "
            "export it on such a card"
        )
    if found.templates != every_template():
        raise InvalidArgument(
            "Install: another version of accel_lab made the file; export it again with this one"
        )
