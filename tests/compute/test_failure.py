"""What a failure says when it has crossed the wire."""

import numpy as np

from accel_lab.backends.host.array import HostArray
from accel_lab.backends.host.device import HostBackend
from accel_lab.compute.failure import pack, unpack, user_code_error
from accel_lab.errors import AccelError, InvalidArgument


def noted(error: BaseException) -> str:
    explained = HostBackend(0).explain(error, "array")
    assert isinstance(explained, AccelError)
    (note,) = unpack(pack(7, "Copy #7", explained, 0), None).__notes__
    return note


def test_a_failed_library_call_is_noted_with_its_line() -> None:
    """The traceback stays in the context, and without it a handler's mistake is hard to find."""
    try:
        HostArray().copy(np.zeros(2), np.zeros(3))
    except ValueError as error:
        note = noted(error)
    place, _, line = note.rpartition(", line ")
    assert place == "in Copy #7, at accel_lab/backends/host/array.py"
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
