"""A film as a GIF file, written picture by picture (GIF 89a).

Pillow finds each picture's 256 colours and packs its pixels. It would keep all pictures until the
end, so the file around them is written here.
"""

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accel_lab.display.install import pip_command
from accel_lab.errors import FilmError

COLOURS = 256
LOOKED_AT = 128
"""The colours of a larger picture are found in one that is as wide and as high at most."""
SHORTEST_CS = 2
"""Browsers show what is to last shorter for a tenth of a second."""


class GifFile:
    """A GIF that repeats for ever.

    Raises:
        FilmError: Pillow is not installed.
        OSError: the file cannot be written.
    """

    def __init__(self, path: Path, size: tuple[int, int], rate_hz: float) -> None:
        try:
            import PIL.GifImagePlugin
        except ImportError as error:
            text = f"a film in a .gif file needs Pillow: {pip_command('install pillow')}"
            raise FilmError(text) from error
        self._pillow = PIL
        self._duration_ms = 10 * max(SHORTEST_CS, round(100 / rate_hz))
        self._file = path.open("wb")
        height, width = size
        self._file.write(b"GIF89a" + struct.pack("<HHBBB", width, height, 0, 0, 0))
        self._file.write(b"!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")

    def add(self, pixels: NDArray[np.uint8]) -> None:
        """Write another picture."""
        image, gif = self._pillow.Image, self._pillow.GifImagePlugin
        picture = image.fromarray(pixels)
        small = picture.copy()
        small.thumbnail((LOOKED_AT, LOOKED_AT), image.Resampling.NEAREST)
        indexed = small.quantize(COLOURS, image.Quantize.MEDIANCUT)
        if small.size != picture.size:
            indexed = picture.quantize(palette=indexed, dither=image.Dither.NONE)
        options = {"duration": self._duration_ms, "include_color_table": True}
        for part in gif.getdata(indexed, **options):
            self._file.write(part)

    def close(self) -> None:
        """Write the end."""
        with self._file:
            self._file.write(b";")
