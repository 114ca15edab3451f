"""A film as an MP4 file, which the program ffmpeg writes: pictures go to it through a pipe."""

import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accel_lab.display.install import pip_command
from accel_lab.errors import FilmError

ENDS_WITHIN_S = 60.0


def ffmpeg() -> str | None:
    """Return the program: from the path, or of the package imageio-ffmpeg; None without either."""
    if found := shutil.which("ffmpeg"):
        return found
    with suppress(ImportError, RuntimeError):  # there may be none for this machine in it
        from imageio_ffmpeg import get_ffmpeg_exe

        return str(get_ffmpeg_exe())
    return None


class Mp4File:
    """An MP4. A pipe has room for less than one picture, so none waits in this process.

    Raises:
        FilmError: there is no ffmpeg.
        OSError: it cannot be started.
    """

    def __init__(self, path: Path, size: tuple[int, int], rate_hz: float) -> None:
        program = ffmpeg()
        if program is None:
            install = pip_command("install imageio-ffmpeg")
            text = f"a film in an .mp4 file needs ffmpeg: put it on the path, or {install}"
            raise FilmError(text)
        height, width = size
        raw = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-video_size", f"{width}x{height}")
        # Half as many pixels have colours, so an odd edge is given another row or column.
        even = ("-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p")
        command = [program, "-y", "-loglevel", "error", *raw, "-framerate", f"{rate_hz:g}"]
        command += ["-i", "-", *even, "-movflags", "+faststart", "-f", "mp4", str(path)]
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the program
        try:
            self._program = subprocess.Popen(  # noqa: S603 - the program is the user's own
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                start_new_session=True,  # Ctrl-C is for the notebook
            )
        except OSError:
            self._said.close()
            raise

    def add(self, pixels: NDArray[np.uint8]) -> None:
        """Give it another picture; waits until it takes that."""
        assert self._program.stdin is not None
        try:
            self._program.stdin.write(np.ascontiguousarray(pixels).data)
        except BrokenPipeError:
            self.close()  # which says why
            raise

    def close(self) -> None:
        """Wait for the end of the program.

        Raises:
            FilmError: it failed, with what it said.
        """
        if self._said.closed:
            return
        assert self._program.stdin is not None
        with suppress(BrokenPipeError):
            self._program.stdin.close()
        try:
            code = self._program.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._program.kill()
            code = self._program.wait()
        with self._said:
            self._said.seek(0)
            said = self._said.read().decode(errors="replace").strip().splitlines()
        if code:
            raise FilmError(f"ffmpeg failed: {said[-1] if said else f'it ended with {code}'}")
