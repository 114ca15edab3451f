"""The variables in a failed function's frames, as text: a context has no terminal to debug in.

The text is made when the function fails, in little time and room: what an array holds is told of
small ones only, and what does not come in time is named by its type.
"""

import reprlib
import time
import traceback
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

from accel_lab.compute.machine.stack_frames import of_function, of_user, variables
from accel_lab.compute.user_code.interrupts import INTERRUPTS
from accel_lab.display.sizes import size

LIMIT_S = 0.5
"""After this time, what is left is named by its type."""
FRAMES = 20
"""How many frames are told of, the innermost."""
LOCALS = 50
"""How many names of a frame are told."""
TEXT = 200
"""How long the text of a value may be."""
ELEMENTS = 100
"""How many elements an array may have whose values are told."""
FETCHED_BYTES = 16 << 20
"""How much an object may hold whose repr is taken."""
ALL_TEXT = 128 << 10
"""How long all texts may be together."""

Frame = tuple[str, int, str, str, list[tuple[str, str]]]
"""File, line, function, the line's text, and (name, value) of each local variable."""


def frames_of(error: BaseException, bytes_of: Callable[[Any], int]) -> tuple[Frame, ...]:
    """Return the frames of the user's own code that an error has passed, the innermost last.

    After an interrupt values are named by their types; another ends the telling, not the caller.
    Nothing is told where that runs into code that exits: the error itself is to arrive.

    Parameters:
        bytes_of: returns how many bytes of the device an object is seen to hold.
    """
    try:
        return _told(error, _Teller(bytes_of))
    except BaseException:  # noqa: BLE001 - a class of the user's may even exit
        return ()


def _told(error: BaseException, teller: "_Teller") -> tuple[Frame, ...]:
    told: list[Frame] = []
    lines = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    own = [(line, frame) for line, frame in zip(lines, frames, strict=True) if of_user(frame)]
    try:
        with INTERRUPTS:
            for line, frame in reversed(own[-FRAMES:]):
                told.insert(
                    0,
                    (
                        line.filename,
                        line.lineno or 0,
                        line.name,
                        (line.line or "").strip()[:TEXT],
                        [(name, teller.tell(value)) for name, value in _locals(frame)],
                    ),
                )
    except KeyboardInterrupt:
        pass
    return tuple(told)


def _locals(frame: FrameType) -> list[tuple[str, Any]]:
    """Return the variables of a function, or those of its names that a cell uses."""
    known = variables(frame)
    names = known if of_function(frame) else frame.f_code.co_names
    found = [
        (name, known[name])
        for name in names
        if name in known and not name.startswith("__") and type(known[name]) is not ModuleType
    ]
    return found[:LOCALS]


class _Teller(reprlib.Repr):
    """Writes values on one line each, until time or room is used up."""

    def __init__(self, bytes_of: Callable[[Any], int]) -> None:
        super().__init__()
        self._bytes_of = bytes_of
        self.maxlevel = 3
        self.maxstring = self.maxother = self.maxlong = TEXT
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = 8
        self._until = time.monotonic() + LIMIT_S
        self._left = ALL_TEXT

    def tell(self, value: Any) -> str:
        """Return a value's text, cut."""
        try:
            text = " ".join(self.repr(value).split())
        except KeyboardInterrupt:
            self._until = 0.0
            text = self.repr(value)
        except BaseException as error:  # noqa: BLE001 - an exit is the user's own repr's
            text = f"<its repr raised {type(error).__name__}>"
        text = text if len(text) <= TEXT else f"{text[: TEXT - 1]}…"
        self._left -= len(text)
        return text

    def repr1(self, x: Any, level: int) -> str:
        """Write a value, or its type when there is no time or room left."""
        kind = type(x)
        if self._left <= 0 or time.monotonic() > self._until:
            return f"<{kind.__qualname__}>"
        if hasattr(kind, "shape") and hasattr(kind, "dtype"):
            return self._array(x)
        try:
            return super().repr1(x, level)
        except Exception:  # noqa: BLE001 - the user's own class, of a name that reprlib knows
            return self.repr_instance(x, level)

    def repr_instance(self, x: Any, level: int) -> str:  # noqa: ARG002 - as reprlib calls it
        """Write what reprlib does not know; not what would fetch much from the device for that."""
        nbytes = self._bytes_of(x)
        if nbytes > FETCHED_BYTES:
            return f"<{type(x).__qualname__} that holds {size(nbytes)}>"
        try:
            return repr(x)
        except Exception as error:  # noqa: BLE001 - the user's own repr
            return f"<its repr raised {type(error).__name__}>"

    def _array(self, x: Any) -> str:
        """Write an array or tensor; a large one would have to come from the device."""
        try:
            shape = tuple(x.shape)
            what = f"{x.dtype}[{', '.join(map(str, shape))}]"
            count = 1
            for extent in shape:
                count *= extent
            return f"{what} {x.tolist()}" if count <= ELEMENTS else what
        except Exception as error:  # noqa: BLE001 - of a class that only looks like one
            return f"<{type(x).__qualname__}, which raised {type(error).__name__}>"
