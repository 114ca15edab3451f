"""What a failure says when it has crossed the wire."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.backends.host.array.library import HostArray
from accel_lab.backends.host.device import HostBackend
from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.wire.codec import FRAME_LIMIT, encode_reports
from accel_lab.compute.wire.failure import pack, unpack, user_code_error
from accel_lab.errors import AccelError, InvalidArgument, UserCodeError
from accel_lab.libraries.array.library import Copy

WAIT = 60.0


def noted(error: BaseException) -> str:
    explained = HostBackend(0).explain(error, "array")
    assert isinstance(explained, AccelError)
    (note,) = unpack(pack(7, "Copy #7", explained, 0), None).__notes__
    return note


def test_a_failed_library_call_is_noted_with_its_line() -> None:
    """The traceback stays in the context, and without it a handler's mistake is hard to find."""
    try:
        HostArray().copy(Copy(Buffer(1)), np.zeros(2), np.zeros(3))
    except ValueError as error:
        note = noted(error)
    place, _, line = note.rpartition(", line ")
    assert place == "in Copy #7, at accel_lab/backends/host/array/library.py"
    assert int(line) > 1


def test_what_no_line_of_ours_raised_is_noted_without_one() -> None:
    assert noted(ValueError("from elsewhere")) == "in Copy #7"
    assert noted(InvalidArgument("a mistake of the caller's")) == "in Copy #7"


def test_a_group_of_exceptions_tells_each_with_its_line() -> None:
    def fail(n: int) -> ValueError:
        try:
            return ValueError(int(f"number {n}"))
        except ValueError as error:
            return error

    inner = ExceptionGroup("inner", [fail(0)])
    outer = ExceptionGroup("outer", [*map(fail, range(1, 12)), inner])
    told = str(user_code_error(outer)).splitlines()
    assert told[0] == "ExceptionGroup: outer (12 sub-exceptions)"
    assert [line for line in told if line.startswith("  ValueError")] == [
        f"  ValueError: invalid literal for int() with base 10: 'number {n}'" for n in range(1, 9)
    ]
    assert told[-1] == "  and 4 more"
    assert sum("in fail" in line for line in told) == 8
    (nested,) = user_code_error(ExceptionGroup("outer", [inner])).args
    assert "\n  ExceptionGroup: inner (1 sub-exception)\n    ValueError: invalid" in nested


def raise_no_text() -> None:
    raise ValueError("a file name, \udcff")


def raise_long() -> None:
    raise ValueError("begin" + "x" * 3_000_000 + "end")


def raise_long_group() -> None:
    raise ExceptionGroup("many", [ValueError("\udcff" * 300_000) for _ in range(9)])


def raise_beside_no_text() -> None:
    class Strange:
        def __repr__(self) -> str:
            return "\udcff" * 150

    strange = Strange()
    raise ValueError(f"beside {type(strange).__name__}")


@pytest.mark.parametrize(
    "function", [raise_no_text, raise_long, raise_long_group, raise_beside_no_text]
)
def test_no_text_of_an_exception_ends_a_context(function: Callable[[], Any]) -> None:
    with System("host") as lab:
        cpu = lab.devices[0]
        before = cpu.put(np.ones(3))
        with pytest.raises(UserCodeError) as caught:
            cpu.run(function).result(WAIT)
        assert before.get(timeout_s=WAIT).tolist() == [1, 1, 1]
        assert cpu.generation == 1
    said = str(caught.value)
    if function is raise_no_text:
        assert said.startswith("ValueError: a file name, \\udcff\n")
    elif function is raise_long:
        assert said.startswith("ValueError: beginxxx")
        assert " bytes … x" in said
        assert "in raise_long" in said


class Wordless(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError


class Leaving:
    """Exits wherever somebody looks at it."""

    def __reduce__(self) -> Any:
        raise SystemExit

    __repr__ = __reduce__


class WordlessAndLeaving(Wordless):
    """Cannot say what it is, and exits where it is pickled."""

    def __reduce__(self) -> Any:
        raise SystemExit


def raise_wordless() -> None:
    raise Wordless


def raise_wordless_and_leaving() -> None:
    raise WordlessAndLeaving


def raise_beside_leaving() -> None:
    leaving = Leaving()
    raise ValueError(f"beside {type(leaving).__name__}")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (raise_wordless, "Wordless: <its str raised RuntimeError>"),
        (raise_wordless_and_leaving, "WordlessAndLeaving: <its str raised RuntimeError>"),
        (raise_beside_leaving, "ValueError: beside Leaving"),
        (Leaving, "TypeError: the result, a Leaving, cannot be pickled: SystemExit"),
    ],
)
def test_a_class_that_raises_where_it_is_told_fails_only_what_runs(
    function: Callable[[], Any], said: str
) -> None:
    """The fourth such failure within a minute has ended the context, or the first."""
    with System("host") as lab:
        cpu = lab.devices[0]
        before = cpu.put(np.ones(3))
        for _ in range(5):
            with pytest.raises(UserCodeError) as caught:
                cpu.run(function).result(WAIT)
            assert str(caught.value).startswith(said)
        assert before.get(timeout_s=WAIT).tolist() == [1, 1, 1]
        assert cpu.generation == 1


def test_of_frames_that_know_too_much_the_innermost_are_told() -> None:
    knew = [(f"name_{n}" * 300, "é" * 200) for n in range(50)]
    frames = tuple(("file.py", n, "f", "line", knew) for n in range(20))
    failure = pack(7, "Run #7", UserCodeError("x", frames=frames), 0)
    assert len(encode_reports([failure])) < FRAME_LIMIT * 3 // 4
    told = unpack(failure, None)
    assert isinstance(told, UserCodeError)
    assert 1 < len(told.frames) < 20
    assert [number for _, number, *_ in told.frames][-1] == 19
