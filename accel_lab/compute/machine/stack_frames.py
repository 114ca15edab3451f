"""The frames that errors keep, and with them the variables of their functions."""

import dis
import gc
import inspect
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType
from typing import Any

PACKAGE = f"{Path(__file__).parents[2]}/"
_MAY_REST = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and all that led to it, each once."""
    ahead, seen = [error], set[int]()
    while ahead:
        one = ahead.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        ahead += [one.__context__, one.__cause__]
        if isinstance(one, BaseExceptionGroup):
            ahead += one.exceptions


def within(error: BaseException | None) -> list[FrameType]:
    """Return the frames of functions that an error, or what led to it, has passed.

    Not those of modules and cells: what these know is known by name.
    """
    found: dict[FrameType, None] = {}
    for one in chain(error):
        passed = one.__traceback__
        while passed is not None:
            if of_function(passed.tb_frame):
                found[passed.tb_frame] = None
            passed = passed.tb_next
    return list(found)


def of_function(frame: FrameType) -> bool:
    """Whether a frame has variables of its own; those of a module or a cell are names."""
    return bool(inspect.CO_OPTIMIZED & frame.f_code.co_flags)


def of_user(frame: FrameType) -> bool:
    """Whether a frame is not of this package."""
    return not frame.f_code.co_filename.startswith(PACKAGE)


def raised_by_user(error: BaseException) -> bool:
    """Whether a `raise` outside this package has raised it, and no allocation or other call."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not of_user(last.tb_frame):
        return False
    return last.tb_frame.f_code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def lines_of(error: BaseException) -> str:
    """Return the lines of the user's own code that an error has passed, as Python writes them."""
    passed = zip(
        traceback.extract_tb(error.__traceback__),
        traceback.walk_tb(error.__traceback__),
        strict=True,
    )
    own = [line for line, (frame, _) in passed if of_user(frame)]
    return "".join(traceback.format_list(own)).rstrip()


def variables(frame: FrameType) -> dict[str, Any]:
    """Return the variables of a function that have values.

    Before Python 3.13 a frame keeps the copy of them that it gives out, and with it what they
    stood for then; it is emptied here, unless it is a debugger's.
    """
    given: Any = frame.f_locals
    found = dict(given)
    if type(given) is dict and of_function(frame) and not _debugged():
        given.clear()
    return found


def _debugged() -> bool:
    running: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the functions that look
    while running is not None:
        if running.f_globals.get("__name__") in ("bdb", "pdb"):
            return True
        running = running.f_back
    return False


def suspended(frames: Iterable[FrameType]) -> set[FrameType]:
    """Return those that go on later: of generators and coroutines that are not over."""
    may = {frame for frame in frames if frame.f_code.co_flags & _MAY_REST}
    if not may:
        return set()
    resting = set()
    for one in gc.get_objects():
        kind = type(one)  # not `isinstance`, which asks the object
        if kind is GeneratorType:
            resting.add(one.gi_frame)
        elif kind is CoroutineType:
            resting.add(one.cr_frame)
        elif kind is AsyncGeneratorType:
            resting.add(one.ag_frame)
    return may & resting


def clear(frame: FrameType) -> None:
    """Empty the frame of a function that is over; one that runs stays as it is."""
    with suppress(RuntimeError):  # it runs
        frame.clear()
        _ = frame.f_locals  # before 3.11.8 a copy that a debugger took outlives `clear`
