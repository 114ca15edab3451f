"""How a notebook shows the end of a cell that awaits when the stop button is pressed.

It cancels the task of the cell, and would show that, with the frames of asyncio. Such a cell ends
in the notebook as one that blocks, with a KeyboardInterrupt at its own line; what its code sees
is asyncio's CancelledError.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from accel_lab.compute.machine import stack_frames

_ASYNCIO = f"{Path(asyncio.__file__).parent}/"


class StoppedCell:
    """Shows it, in one IPython; between the cells that await IPython is as it was.

    Parameters:
        stopped: is asked when a cell ends with CancelledError: None if no stop button was
            pressed in it, else whether anything was taken back.
    """

    def __init__(self, shell: Any, stopped: Callable[[], bool | None]) -> None:
        self._shell = shell
        self._stopped = stopped
        self._shown: KeyboardInterrupt | None = None
        self._usual: tuple[Any, Any] | None = None
        self._ours: Any = None

    def follow(self) -> None:
        """A cell begins that awaits: be asked how its end is shown."""
        self._give_back()
        usual = self._shell.custom_exceptions, self._shell.CustomTB
        if issubclass(asyncio.CancelledError, usual[0]):
            return  # the user shows it
        self._shell.set_custom_exc((*usual[0], asyncio.CancelledError), self._show)
        self._usual, self._ours = usual, self._shell.CustomTB

    def over(self, result: Any) -> None:
        """The cell has ended: its result, which is the notebook's, is what was shown."""
        self._give_back()
        shown, self._shown = self._shown, None
        if shown is not None and result is not None:
            result.error_in_exec = shown

    def _give_back(self) -> None:
        usual, self._usual = self._usual, None
        if usual is not None and self._shell.CustomTB is self._ours:  # the cell has set none
            self._shell.custom_exceptions, self._shell.CustomTB = usual
        self._ours = None

    def _show(
        self,
        shell: Any,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType,
        tb_offset: int | None = None,
    ) -> Any:
        """Show how a cell ends; IPython calls it, and the parameters are named as it has them."""
        if not isinstance(error, asyncio.CancelledError):
            return None if self._usual is None else self._usual[1](kind, error, trace, tb_offset)
        taken_back = self._stopped()
        if taken_back or (taken_back is not None and _passed_us(trace)):
            self._shown = KeyboardInterrupt().with_traceback(_of_cell(trace))
            error = self._shown
        shell.showtraceback((type(error), error, error.__traceback__), tb_offset=tb_offset)
        return None


def _passed_us(trace: TracebackType | None) -> bool:
    """Whether a cell was stopped while it awaited something of this package's."""
    while trace is not None:
        if not stack_frames.of_user(trace.tb_frame):
            return True
        trace = trace.tb_next
    return False


def _of_cell(trace: TracebackType) -> TracebackType:
    """Return a traceback without the frames of this package and of asyncio."""
    passed = []
    one: TracebackType | None = trace
    while one is not None:
        if _of_cells(one.tb_frame):
            passed.append(one)
        one = one.tb_next
    below = None
    for own in reversed(passed):
        below = TracebackType(below, own.tb_frame, own.tb_lasti, own.tb_lineno)
    return below or trace


def _of_cells(frame: FrameType) -> bool:
    return stack_frames.of_user(frame) and not frame.f_code.co_filename.startswith(_ASYNCIO)
