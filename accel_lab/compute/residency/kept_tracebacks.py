"""The errors that a notebook keeps, and the handles in their frames: memory that nobody asked for.

IPython keeps the last error for `%tb` and `%debug`, and with its traceback every local variable of
every function that it has passed.
"""

import gc
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from accel_lab.compute.machine import stack_frames
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.residency.notebook_names import Namespace, below, handles, names
from accel_lab.compute.residency.referrers import referrers

LAST = "the last error"
LIMIT_S = 1.0
"""How much of the processor the search for names may take."""


def kept(space: Namespace) -> dict[str, BaseException]:
    """Return the errors that the interpreter, IPython and the notebook's names keep."""
    found: dict[str, BaseException] = {}
    for value in (getattr(sys, "last_exc", None), getattr(sys, "last_value", None), *_of_shell()):
        if issubclass(type(value), BaseException):
            found.setdefault(LAST, value)
    named = list(space.items())
    return found | {name: v for name, v in named if issubclass(type(v), BaseException)}


def handles_in_frames(space: Namespace) -> Iterator[tuple[str, Ref[Any]]]:
    """Yield the handles that frames hold, as ("x in train(), of the last error", handle).

    That are the frames of errors that are kept, and of what runs in this and in the main thread.
    """
    for name, error in kept(space).items():
        for frame in stack_frames.within(error):
            yield from _in_frame(frame, f", of {name}", space)
    for running in _running():
        package = str(running.f_globals.get("__name__", "")).partition(".")[0]
        if stack_frames.of_function(running) and package not in (
            "accel_lab",
            "IPython",
            "ipykernel",
        ):
            yield from _in_frame(running, "", space)


def _running() -> Iterator[FrameType]:
    """Yield the frames of this thread, and those of the main thread."""
    innermost = {threading.get_ident(): sys._getframe(1)}  # noqa: SLF001 - the functions that look
    if (main := threading.main_thread().ident) not in innermost:
        innermost |= {i: f for i, f in sys._current_frames().items() if i == main}  # noqa: SLF001
    for first in innermost.values():
        frame: FrameType | None = first
        while frame is not None:
            yield frame
            frame = frame.f_back


def only_there(error: BaseException) -> dict[int, Ref[Any]]:
    """Return the handles that nothing but the frames of an error holds, by buffer."""
    passed = stack_frames.within(error)
    space = names()
    there = {id(ref): ref for frame in passed for _, ref in _in_frame(frame, "", space)}
    for _, ref in handles(space, LIMIT_S):
        there.pop(id(ref), None)
    if not there:
        return {}
    known = [stack_frames.variables(frame) for frame in passed]
    values = [value for one in known for value in one.values()]
    holders = {id(one) for one in (*passed, *known, known, values, there)}
    below_them = _alone(
        [value for value in values if type(value) not in (AccelRef, Handle)], holders
    )
    holders |= {id(value) for value in below_them}
    holders |= {id(getattr(value, "__dict__", None)) for value in below_them}
    holders.add(id(below_them))
    alone = _alone(list(there.values()), holders)
    return {ref.id: ref for ref in alone if ref.device.holds(ref) and not ref.failed}


def _alone(values: list[Any], holders: set[int]) -> list[Any]:
    """Return those that nothing refers to but these holders."""
    left = {id(value): value for value in values if gc.is_tracked(value)}
    own = {id(values), id(left)}
    for holder in referrers(list(left.values())):
        if id(holder) not in holders and id(holder) not in own:
            for held in gc.get_referents(holder):
                left.pop(id(held), None)
    return list(left.values())


def release(space: Namespace) -> None:
    """Empty the frames of the errors that are kept; their texts, and `%tb`, stay."""
    passed = [frame for error in kept(space).values() for frame in stack_frames.within(error)]
    resting = stack_frames.suspended(passed)
    for frame in passed:
        if frame not in resting:
            stack_frames.clear(frame)
    del passed, resting
    gc.collect()


def _of_shell() -> list[Any]:
    """Return the errors that IPython keeps."""
    interactive = sys.modules.get("IPython")
    shell: Any = interactive.get_ipython() if interactive is not None else None
    last = getattr(shell, "last_execution_result", None)
    return [getattr(last, name, None) for name in ("error_in_exec", "error_before_exec")]


def _in_frame(frame: FrameType, of: str, space: Namespace) -> Iterator[tuple[str, Ref[Any]]]:
    function = f" in {frame.f_code.co_name}(){of}"
    users = stack_frames.of_user(frame)
    for name, value in stack_frames.variables(frame).items():
        if value is space:
            continue
        try:
            for what, ref in below(name, value, {}):
                yield f"{what}{function}" if users else f"a call of accel_lab{of}", ref
        except Exception:  # noqa: BLE001, S112 - stranger than we think
            continue
