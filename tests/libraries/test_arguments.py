"""A kernel's signature says what is read and what is written, and how its block is laid out."""

import ctypes
from typing import Any

import numpy as np
import pytest

from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.stream import Storage, Stream
from accel_lab.libraries.jit.arguments import Arguments
from accel_lab.libraries.jit.signature import Parameter


class Native:
    """A stream that counts the waits put on it."""

    def activate(self) -> None:
        """Do nothing."""

    def before_work(self, call: object) -> None:
        """Do nothing: there is no work."""

    def record(self) -> str:
        return "event"

    def wait(self, event: Any) -> None:
        assert event == "event"

    def done(self) -> bool:
        return True

    def reached(self, event: Any) -> bool:
        return event is not None

    def synchronize(self, event: Any) -> None:
        """Return at once."""


def pointer(*, read_only: bool) -> Parameter:
    return Parameter(8, 8, "pointer", "float32", 4, 4, read_only)


def number(code: str, size: int) -> Parameter:
    return Parameter(size, size, code, "", 0, 1, read_only=False)


def buffer(id_: int, stream: Stream) -> Buffer:
    made = Buffer(id_)
    array = np.zeros(3, np.float32)
    made.fill(array, array.shape, "float32", Storage(stream, array.nbytes, "test"))
    return made


def address(array: Any) -> int:
    found: int = array.ctypes.data
    return found


@pytest.fixture
def streams() -> tuple[Stream, Stream]:
    return Stream("jit", Native()), Stream("other", Native())


def test_const_pointers_are_read_and_others_written(streams: tuple[Stream, Stream]) -> None:
    jit, other = streams
    arguments = Arguments("f", (pointer(read_only=True), pointer(read_only=False)), address)
    x, y = buffer(1, other), buffer(2, other)
    for launch in range(1, 4):
        jit.operations += 1
        jit.seq = 10 * launch
        arguments.pack((x, y), (None, None), jit)
        assert x.storage is not None
        assert y.storage is not None
        assert x.storage.writer is other
        assert x.storage.readers == {jit: launch}
        assert y.storage.writer is jit
        assert y.storage.write_operation == launch
        assert (x.storage.write_seq, y.storage.write_seq) == (0, 10 * launch)


def test_later_uses_wait_for_what_a_kernel_does(streams: tuple[Stream, Stream]) -> None:
    jit, other = streams
    arguments = Arguments("f", (pointer(read_only=True), pointer(read_only=False)), address)
    x, y = buffer(1, jit), buffer(2, jit)
    assert x.storage is not None
    assert y.storage is not None
    other.operations += 1
    x.storage.write_on(other)
    y.storage.read_on(other)
    jit.operations += 1
    arguments.pack((x, y), (None, None), jit)
    assert jit.waits == 1  # both are behind the same operation of the other stream
    other.operations += 1
    y.storage.read_on(other)
    assert other.waits == 1


def test_the_block_is_laid_out_as_a_compiler_would(streams: tuple[Stream, Stream]) -> None:
    jit, _ = streams
    kinds = [("int8", 1), ("float64", 8), ("int16", 2), ("float32", 4), ("bool", 1), ("int64", 8)]
    parameters = [number(code, size) for code, size in kinds]
    parameters.insert(2, pointer(read_only=True))
    arguments = Arguments("f", tuple(parameters), address)
    x = buffer(1, jit)
    arguments.pack((x,), (-5, 0.1, None, 300, 1.5, True, -(2**40)), jit)
    at = (ctypes.c_uint64 * len(parameters)).from_address(arguments.at)
    types: list[Any] = [ctypes.c_int8, ctypes.c_double, ctypes.c_uint64, ctypes.c_int16]
    types += [ctypes.c_float, ctypes.c_bool, ctypes.c_int64]
    found = [kind.from_address(where).value for kind, where in zip(types, at, strict=True)]
    assert found == [-5, 0.1, address(x.array), 300, 1.5, True, -(2**40)]
    for where, parameter in zip(at, parameters, strict=True):
        assert where % parameter.align == 0
