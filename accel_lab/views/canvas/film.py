"""A film of a simulation: each picture that a canvas paints goes to a file, and none is kept."""

import atexit
import threading
from base64 import b64encode
from html import escape
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from accel_lab.errors import FilmError, InvalidArgument
from accel_lab.uncopied import Uncopied
from accel_lab.views.canvas.gif import GifFile
from accel_lab.views.canvas.mp4 import Mp4File

LARGEST_SHOWN = 8 << 20
"""A notebook keeps what it shows, so it shows no larger file."""


class FilmFile(Protocol):
    """What writes pictures."""

    def __init__(self, path: Path, size: tuple[int, int], rate_hz: float) -> None:
        """Begin a file, of pictures of this height and width."""

    def add(self, pixels: NDArray[np.uint8]) -> None:
        """Write another picture."""

    def close(self) -> None:
        """Write the end."""


KINDS: dict[str, type[FilmFile]] = {".gif": GifFile, ".mp4": Mp4File}


class Film(Uncopied):
    """A file that pictures are written to as they come. It has its name when it is whole.

    Parameters:
        path: ends in .gif or .mp4.
        most: how many pictures it ends after.
        of: what lives as long as it is written.

    Attributes:
        pictures: how many it has.
        problem: why it ended before it was whole; None else.

    Raises:
        FilmError: what writes such a file is not installed, or it cannot be written there.
        InvalidArgument: it is neither a .gif nor an .mp4.
    """

    _instead = "record another; `path` is the file"

    def __init__(
        self, path: str | Path, size: tuple[int, int], *, most: int, rate_hz: float, of: object
    ) -> None:
        try:
            self.path = Path(path).absolute()
            kind = KINDS[self.path.suffix.lower()]
        except (TypeError, KeyError) as error:
            text = f"record: path must end in .gif or .mp4, not {path!r}"
            raise InvalidArgument(text) from error
        if not self.path.parent.is_dir():
            raise FilmError(f"{self.path} cannot be written: there is no such folder")
        self.most = most
        self.rate_hz = rate_hz
        self.pictures = 0
        self.problem: FilmError | None = None
        self._of: object = of
        self._part = self.path.with_name(f".{self.path.name}.part")
        self._lock = threading.Lock()
        self._ended = threading.Event()
        try:
            self._file = kind(self._part, size, rate_hz)
        except OSError as error:
            raise FilmError(f"{self.path} cannot be written: {error}") from error
        atexit.register(self.finish)

    @property
    def running(self) -> bool:
        """Whether more pictures are written to it."""
        return not self._ended.is_set()

    def add(self, pixels: NDArray[np.uint8]) -> None:
        """Write another picture, if it is not over; raises nothing."""
        with self._lock:
            if not self.running:
                return
            try:
                self._file.add(pixels)
            except (OSError, FilmError) as error:
                self._end(error)
                return
            self.pictures += 1
            if self.pictures >= self.most:
                self._end()

    def finish(self) -> None:
        """Write the end, if that is not done; waits for it and raises nothing."""
        with self._lock:
            if self.running:
                self._end()

    def stop(self) -> Path:
        """End it, and return where it is.

        Raises:
            FilmError: it could not be written to its end.
        """
        self.finish()
        return self.wait()

    def wait(self, timeout_s: float | None = None) -> Path:
        """Wait until it has all its pictures, or the canvas is closed; return where it is.

        Raises:
            FilmError: it could not be written to its end.
            TimeoutError: it goes on.
        """
        if not self._ended.wait(timeout_s):
            raise TimeoutError(f"{self!r} goes on after {timeout_s:g} s")
        if self.problem is not None:
            raise self.problem.copy()
        return self.path

    def _end(self, error: Exception | None = None) -> None:
        """Close the file; who holds the lock."""
        try:
            self._file.close()
            if error is None and self.pictures:
                self._part.replace(self.path)
        except (OSError, FilmError) as last:
            error = error if error is not None and isinstance(last, OSError) else last
        if error is None and not self.pictures:
            error = FilmError(f"{self.path.name} ended before there was a picture")
        if error is not None:
            self._part.unlink(missing_ok=True)
            self.problem = FilmError(f"{self.path.name} was not written: {error}")
            self.problem.__cause__ = error
        self._of = None
        atexit.unregister(self.finish)
        self._ended.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        if self.problem is not None:
            return f"<Film: {self.problem}>"
        going = ", recording" if self.running else ""
        return f"<Film {self.path.name}: {self.pictures} pictures{going}>"

    def _repr_html_(self) -> str:
        """Show it, if it is whole and no large file."""
        told = escape(repr(self))
        is_there = not self.running and self.problem is None and self.path.is_file()
        if not is_there or self.path.stat().st_size > LARGEST_SHOWN:
            return told
        data: Any = b64encode(self.path.read_bytes()).decode()
        if self.path.suffix.lower() == ".gif":
            return f'<img alt="{told}" src="data:image/gif;base64,{data}">'
        return f'<video controls loop src="data:video/mp4;base64,{data}">{told}</video>'
