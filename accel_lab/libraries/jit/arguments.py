"""The arguments of a kernel in memory, packed as its own signature says.

Used in the context. Checking is slow and packing has to be fast, so what has been checked is
remembered: a loop that launches with the same buffers packs only its numbers.
"""

import struct
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.stream import Storage, Stream
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import describe
from accel_lab.libraries.jit.messages import NULL
from accel_lab.libraries.jit.signature import Parameter
from accel_lab.libraries.jit.tensor_map import NBYTES, Tiling

_FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
    "char": "b",
    "bfloat16": "H",
    "float8_e4m3fn": "B",
    "float8_e5m2": "B",
}
_NARROW = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2"})
_BYTES = frozenset({"char", "uint8"})  # what C uses for memory of any kind
_DTYPES = frozenset(NAMES) - _BYTES
_COMPLEX = {8: "=2f", 16: "=2d"}
_ALIGN = 128


class Arguments:
    """The argument block of one kernel.

    Attributes:
        at: the address of an array of pointers, one to each argument.
        reads, writes: the buffers that were packed last, by what the kernel may do to them.
    """

    def __init__(
        self,
        name: str,
        parameters: tuple[Parameter, ...],
        address: Callable[[Any], int],
        tiled: Callable[[Any, str, Tiling], bytes] | None = None,
    ) -> None:
        self.name = name
        self.parameters = parameters
        self._address = address
        self._tiled = tiled
        self._maps: tuple[Tiling, ...] = ()
        self._encoded: dict[int, bytes] = {}
        self._pointers = [i for i, p in enumerate(parameters) if p.is_pointer]
        numbers = [i for i, p in enumerate(parameters) if not p.is_pointer]
        self._offsets, form, size = _layout(parameters, [*self._pointers, *numbers])
        self._block, self.at = self._new_block(size)
        self._first = 8 * len(parameters)
        self._addresses = struct.Struct(f"={len(self._pointers)}Q")
        packed = struct.Struct("=" + form)
        self._count = len(parameters)
        self._pack_numbers = packed.pack_into
        self._numbers_at = self._first + self._addresses.size
        self._pick = self._picker(numbers) if numbers else None
        self._refs: tuple[AccelRef, ...] | None = None
        self._values: tuple[Any, ...] | None = None
        self._reads: list[Storage] = []
        self._writes: list[Storage] = []
        self.reads: tuple[Buffer, ...] = ()
        self.writes: tuple[Buffer, ...] = ()

    def pack(
        self,
        refs: tuple[AccelRef, ...],
        values: tuple[Any, ...],
        stream: Stream,
        maps: tuple[Tiling, ...] = (),
    ) -> None:
        """Fill the block and order `stream` after what the buffers wait for.

        Parameters:
            refs: the buffers, in order.
            values: the numbers, with None where the next buffer stands.
            maps: which buffers are given as tiles.

        Raises:
            InvalidArgument: they do not fit the signature.
        """
        if values is not self._values or refs is not self._refs or maps is not self._maps:
            self._values = None  # it is not the same message again
            if refs != self._refs or len(values) != self._count or maps != self._maps:
                self._take(refs, values, maps)
            else:
                self._refs = refs
            pick = self._pick
            if pick is not None:
                try:
                    self._pack_numbers(self._block, self._numbers_at, *pick(values))
                except (struct.error, OverflowError, TypeError, ValueError):
                    raise self._wrong(refs, values, maps) from None
            self._values, self._maps = values, maps
        for storage in self._reads:
            if storage.writer is not stream:
                storage.read_on(stream)
        for storage in self._writes:
            if storage.writer is stream and not storage.readers:  # nothing to wait for
                storage.write_operation = stream.operations
                storage.write_seq, storage.write_kind = stream.seq, stream.kind
            else:
                storage.write_on(stream)

    def copy(self) -> tuple[int, object]:
        """Return the address of a copy of what is packed, and what keeps its memory."""
        block, at = self._new_block(len(self._block))
        block[self._first :] = self._block[self._first :]
        return at, block

    def forget(self) -> None:
        """Forget the buffers: they may be elsewhere now."""
        self._refs = self._values = None

    def _take(
        self, refs: tuple[AccelRef, ...], values: tuple[Any, ...], maps: tuple[Tiling, ...]
    ) -> None:
        """Check everything but the numbers, and remember the buffers."""
        if len(values) != len(self.parameters):
            takes = ", ".join(p.text for p in self.parameters) or "none"
            raise InvalidArgument(
                f"{self.name} takes {len(self.parameters)} arguments ({takes}), not {len(values)}"
            )
        self._refs = None
        self._encoded.clear()
        tilings = {one.argument: one for one in maps}
        left = iter(refs)
        addresses: list[int] = []
        reads: list[Buffer] = []
        writes: list[Buffer] = []
        for i, (parameter, value) in enumerate(zip(self.parameters, values, strict=True)):
            ref = next(left) if value is None else None
            if (tiling := tilings.get(i)) is not None:
                assert isinstance(ref, Buffer)
                self._encoded[i] = self._map(i, ref, tiling)
                (reads if tiling.read_only else writes).append(ref)
                continue
            if not parameter.is_pointer:
                if ref is not None:
                    raise self._refused(i, describe(ref))
                continue
            if ref is None:
                if value != NULL and (type(value) is not int or value != 0):
                    raise self._refused(i, _given(value), "give a buffer, or None for no memory")
                addresses.append(0)
                continue
            assert isinstance(ref, Buffer)
            assert ref.storage is not None
            addresses.append(self._pointer(i, ref))
            (reads if parameter.read_only else writes).append(ref)
        self._addresses.pack_into(self._block, self._first, *addresses)
        self.reads, self.writes = tuple(reads), tuple(writes)
        self._reads, self._writes = _memory(reads), _memory(writes)
        if len(refs) == len(self._pointers) + len(maps):
            self._refs = refs

    def _map(self, index: int, ref: Buffer, tiling: Tiling) -> bytes:
        """Return the bytes that describe a buffer's tiles."""
        parameter = self.parameters[index]
        if parameter.code or parameter.size != NBYTES:
            raise self._refused(index, f"a tensor map of {describe(ref)}", "give the buffer itself")
        if self._tiled is None:
            text = f"{self.name}: this device has no tensor maps"
            raise InvalidArgument(f"{text}; give the buffer itself, and index it")
        try:
            return self._tiled(ref.array, ref.dtype, tiling)
        except InvalidArgument as error:
            raise self._refused(index, f"a tensor map of {describe(ref)}", str(error)) from None

    def _new_block(self, size: int) -> tuple[memoryview, int]:
        """Return memory for arguments whose pointers are there already, and its address."""
        block: Any = np.zeros(size + _ALIGN, np.uint8)
        start = -block.ctypes.data % _ALIGN
        block = block[start : start + size]
        at: int = block.ctypes.data
        struct.pack_into(f"={len(self._offsets)}Q", block, 0, *(at + o for o in self._offsets))
        return memoryview(block), at

    def _pointer(self, index: int, ref: Buffer) -> int:
        parameter = self.parameters[index]
        if parameter.element in _DTYPES and ref.dtype != parameter.element:
            raise self._refused(index, describe(ref), "convert it with array.cast")
        if not ref.array.flags.c_contiguous:
            raise self._refused(
                index, f"a view of {describe(ref)} with gaps", "copy it first, with array.copy"
            )
        address = self._address(ref.array)
        if address % max(parameter.element_align, 1):
            raise self._refused(
                index,
                f"{describe(ref)}, a view that begins at no multiple of "
                f"{parameter.element_align} bytes",
                "copy it first, with array.copy",
            )
        return address

    def _picker(self, numbers: list[int]) -> Callable[[tuple[Any, ...]], Any]:
        """Return what takes the numbers out of the values, converted where `struct` cannot."""
        converts = {i: c for i in numbers if (c := self._conversion(i)) is not None}
        if converts:
            return lambda values: [
                converts[i](values[i]) if i in converts else values[i] for i in numbers
            ]
        if len(numbers) == 1:
            (only,) = numbers
            return lambda values: (values[only],)
        return itemgetter(*numbers)

    def _conversion(self, index: int) -> Callable[[Any], Any] | None:
        """Return what makes an argument fit for `struct`, and knows the tensor maps."""
        parameter, encoded = self.parameters[index], self._encoded
        convert = _conversion(parameter)
        if convert is None or parameter.code or parameter.size != NBYTES:
            return convert
        return lambda value: convert(encoded.get(index) if value is None else value)

    def _wrong(
        self, refs: tuple[AccelRef, ...], values: tuple[Any, ...], maps: tuple[Tiling, ...]
    ) -> InvalidArgument:
        """Find the number that does not fit, or that stands where a buffer has to."""
        try:
            self._take(refs, values, maps)
        except InvalidArgument as error:
            return error
        for i, (parameter, value) in enumerate(zip(self.parameters, values, strict=True)):
            if parameter.is_pointer:
                continue
            convert = self._conversion(i)
            try:
                struct.pack("=" + _format(parameter), convert(value) if convert else value)
            except (struct.error, OverflowError, TypeError, ValueError):
                return self._refused(i, _given(value))
        raise AssertionError(values)

    def _refused(self, index: int, given: str, advice: str = "") -> InvalidArgument:
        text = (
            f"argument {index} of {self.name} is {given}, and the kernel's parameter is "
            f"{self.parameters[index].text}"
        )
        return InvalidArgument(f"{text}; {advice}" if advice else text)


def keeping(call: partial[Any], memory: object) -> partial[Any]:
    """Return a call that keeps the memory whose address it was made with."""
    call.memory = memory  # type: ignore[attr-defined]
    return call


def _memory(buffers: list[Buffer]) -> list[Storage]:
    return [buffer.storage for buffer in buffers if buffer.storage is not None]


def _layout(parameters: tuple[Parameter, ...], order: list[int]) -> tuple[list[int], str, int]:
    """Place the arguments behind their pointers: offsets, the numbers' format, bytes in all."""
    offsets = [0] * len(parameters)
    form = ""
    at = 8 * len(parameters)
    for i in order:
        parameter = parameters[i]
        gap = -at % parameter.align
        at += gap
        offsets[i] = at
        at += parameter.size
        if not parameter.is_pointer:
            form += "x" * gap + _format(parameter)
    return offsets, form, at


def _format(parameter: Parameter) -> str:
    return _FORMATS.get(parameter.code) or f"{parameter.size}s"


def _conversion(parameter: Parameter) -> Callable[[Any], Any] | None:
    """Return what makes a value fit for `struct`; raises TypeError or ValueError if it is none."""
    code = parameter.code
    if code == "bool":
        return _truth
    if code in _NARROW:
        dtype = numpy_dtype(code)
        bits = np.dtype(f"u{dtype.itemsize}")
        return lambda value: int(np.array(float(value)).astype(dtype).view(bits))
    if not code:
        size = parameter.size
        return lambda value: _raw(value, size)
    return None


def _truth(value: Any) -> bool:
    if value not in (0, 1):
        raise ValueError
    return bool(value)


def _raw(value: Any, size: int) -> bytes:
    """Return the bytes of a struct; a complex number, which travels as a list, is two floats."""
    if isinstance(value, list) and size in _COMPLEX:
        return struct.pack(_COMPLEX[size], *value)
    if not isinstance(value, bytes) or len(value) != size:
        raise ValueError
    return value


def _given(value: Any) -> str:
    """Describe a value as it travelled."""
    if value == NULL:
        return "None"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, list):
        return "a complex number"
    return f"the {type(value).__name__} {value!r}"
