"""Which systems of this process are open, whatever other threads open and close meanwhile."""

import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from accel_lab import open_systems
from accel_lab.open_systems import add, remove, running

STEPS = 200
"""More than a look has."""


class Named:
    """What can be open."""

    def __init__(self, name: str) -> None:
        self.name = name


@pytest.fixture(autouse=True)
def nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing open at first, and nobody told."""
    monkeypatch.setattr(open_systems, "_open", weakref.WeakKeyDictionary())
    monkeypatch.setattr(open_systems, "opened", [])
    monkeypatch.setattr(open_systems, "ended", [])


def between(steps: int, do: Callable[[], None]) -> list[Any]:
    """Return what runs, where something is done after so many steps of looking, or at its end."""
    before, left = sys.gettrace(), steps

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        frame.f_trace_opcodes = True
        left -= event == "opcode"
        if left == 0:
            left -= 1
            do()
        return trace

    sys.settrace(trace)
    try:
        found = running()
    finally:
        sys.settrace(before)
    if left > 0:
        do()
    return found


@pytest.mark.parametrize("steps", range(1, STEPS))
def test_another_thread_may_open_and_close_systems_at_any_moment(steps: int) -> None:
    systems: list[Any] = [Named(name) for name in "abc"]
    new: Any = Named("d")
    for system in systems:
        add(system)

    def change() -> None:
        remove(systems[0])
        remove(systems[1])
        add(new)

    found = "".join(system.name for system in between(steps, change))
    assert found in {"abc", "cd"}
    assert [system.name for system in running()] == ["c", "d"]


def test_what_is_gone_is_not_open() -> None:
    kept: Any = Named("kept")
    gone: Any = Named("gone")
    add(gone)
    add(kept)
    del gone
    assert running() == [kept]
