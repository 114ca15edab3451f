"""A kernel's signature says what is read and what is written, and how its block is laid out."""

import ctypes
from typing import Any

import numpy as np
import pytest

from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.stream import Storage, Stream
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.jit.arguments import Arguments
from accel_lab.libraries.jit.signature import Parameter
from accel_lab.libraries.jit.tensor_map import Tiling


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


def test_tiles_are_described_again_only_when_they_change(streams: tuple[Stream, Stream]) -> None:
    jit, _ = streams
    described: list[int] = []

    def tiled(array: Any, dtype: str, tiling: Tiling) -> bytes:
        assert (dtype, tiling.argument) == ("float32", 0)
        described.append(address(array))
        return bytes([len(described)]) * 128

    struct = Parameter(128, 64, "", "", 0, 1, read_only=False)
    parameters = struct, pointer(read_only=True), number("int32", 4)
    arguments = Arguments("f", parameters, address, tiled)
    x, y, z = (buffer(i, jit) for i in range(3))
    maps = (Tiling(0, (4,)),)

    def pack(first: Buffer, n: int, tiles: tuple[Tiling, ...]) -> tuple[bytes, int, int]:
        arguments.pack((first, y), (None, None, n), jit, tiles)
        at = (ctypes.c_uint64 * 3).from_address(arguments.at)
        assert at[0] % 64 == 0
        found, count = ctypes.c_uint64.from_address(at[1]), ctypes.c_int32.from_address(at[2])
        return ctypes.string_at(at[0], 128), found.value, count.value

    for n in (3, 4):
        assert pack(x, n, maps) == (b"\1" * 128, address(y.array), n)
    assert (arguments.writes, arguments.reads) == ((x,), (y,))
    assert pack(z, 4, maps)[0] == b"\2" * 128
    assert pack(z, 4, (maps[0]._replace(read_only=True),))[0] == b"\3" * 128
    assert (arguments.writes, arguments.reads) == ((), (z, y))
    assert described == [address(one.array) for one in (x, z, z)]
    arguments.forget()  # they may be elsewhere now
    assert pack(z, 4, (maps[0]._replace(read_only=True),))[0] == b"\4" * 128


def test_tiles_are_for_a_struct_of_128_bytes(streams: tuple[Stream, Stream]) -> None:
    jit, _ = streams
    x, maps = buffer(1, jit), (Tiling(0, (4,)),)
    arguments = Arguments("f", (pointer(read_only=True),), address, lambda *_: b"")
    with pytest.raises(InvalidArgument, match=r"argument 0 of f is a tensor map.*const float\*"):
        arguments.pack((x,), (None,), jit, maps)
    without = Arguments("f", (Parameter(128, 64, "", "", 0, 1, read_only=False),), address)
    with pytest.raises(InvalidArgument, match="no tensor maps; give the buffer itself"):
        without.pack((x,), (None,), jit, maps)
    with pytest.raises(InvalidArgument, match="struct of 128 bytes"):
        without.pack((x,), (None,), jit)
