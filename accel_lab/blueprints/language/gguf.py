"""GGUF files: what llama.cpp reads, a header of named values and tensors, many of them quantized.

The format is ggml's, versions 2 and 3 (docs/gguf.md there), and the blocks are those of its
ggml-common.h. A file is read in parts and never mapped.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_lab.errors import FileDamaged, InvalidArgument

Array: TypeAlias = npt.NDArray[Any]

VERSIONS = (2, 3)
BLOCK = 32
MOST_AXES = 4
_STRING, _LIST = 8, 9
_NUMBERS = {
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    7: "|b1",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}


def of_q4_1(blocks: Array) -> Array:
    """Return the numbers of blocks: a scale, an offset, and 32 times four bits."""
    low, high = blocks["bits"] & 15, blocks["bits"] >> 4
    whole = np.concatenate([low, high], axis=1).astype(np.float32)
    return whole * blocks["scale"].astype(np.float32) + blocks["offset"].astype(np.float32)


def of_q8_0(blocks: Array) -> Array:
    """Return the numbers of blocks: a scale, and 32 times eight bits with a sign."""
    return blocks["whole"].astype(np.float32) * blocks["scale"].astype(np.float32)


class Encoding(NamedTuple):
    """How numbers of a tensor are stored.

    Attributes:
        item: the dtype of a block.
        numbers: how many a block has.
        decode: makes float32 of blocks.
    """

    item: np.dtype[Any]
    numbers: int
    decode: Callable[[Array], Array]


def _single(blocks: Array) -> Array:
    return blocks.astype(np.float32)


ENCODINGS = {
    0: Encoding(np.dtype("<f4"), 1, _single),
    1: Encoding(np.dtype("<f2"), 1, _single),
    3: Encoding(
        np.dtype([("scale", "<f2", (1,)), ("offset", "<f2", (1,)), ("bits", "u1", (BLOCK // 2,))]),
        BLOCK,
        of_q4_1,
    ),
    8: Encoding(np.dtype([("scale", "<f2", (1,)), ("whole", "i1", (BLOCK,))]), BLOCK, of_q8_0),
}
"""By ggml's number: F32, F16, Q4_1, Q8_0."""


class Tensor(NamedTuple):
    """Where a tensor of a file is.

    Attributes:
        shape: as NumPy has it; the file says it the other way round.
        kind: ggml's number of the encoding.
        start: the byte at which it begins.
    """

    shape: tuple[int, ...]
    kind: int
    start: int


class GgufFile:
    """The header of a GGUF file, and its tensors when they are asked for.

    Attributes:
        values: what the file says of itself, by name.
        tensors: where each one is.

    Raises:
        FileDamaged: it is none, or is cut short.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.values: dict[str, Any] = {}
        with self.path.open("rb") as stream:
            header = _Header(self.path, stream)
            tensors, values = header.begin()
            for _ in range(values):
                name = header.string()
                self.values[name] = header.value(header.number("<u4"))
            found = [header.tensor() for _ in range(tensors)]
            unit = self.values.get("general.alignment", BLOCK)
            if not isinstance(unit, int) or unit < 1:
                raise FileDamaged(f"{self.path}: the alignment is {unit!r}; 1 or more is wanted")
            begin = -(-stream.tell() // unit) * unit
        self.tensors = {name: tensor._replace(start=begin + tensor.start) for name, tensor in found}

    def read(self, name: str) -> Array:
        """Return a tensor as float32.

        Raises:
            InvalidArgument: the file has none such, or its encoding is not read here.
            FileDamaged: the file is cut short.
        """
        if name not in self.tensors:
            raise InvalidArgument(f"{self.path.name} has no tensor {name!r}")
        shape, kind, start = self.tensors[name]
        if kind not in ENCODINGS:
            known = ", ".join(map(str, ENCODINGS))
            text = f"{name} in {self.path.name} has ggml's encoding {kind}; those read are {known}"
            raise InvalidArgument(text)
        encoding = ENCODINGS[kind]
        if shape[-1] % encoding.numbers:
            text = f"{self.path}: a row of {name} is {shape[-1]}, no multiple of {encoding.numbers}"
            raise FileDamaged(text)
        with self.path.open("rb") as stream:
            stream.seek(min(start, self.path.stat().st_size))
            wanted = math.prod(shape) // encoding.numbers * encoding.item.itemsize
            content = _exactly(self.path, stream, wanted)
        return encoding.decode(np.frombuffer(content, encoding.item)).reshape(shape)


class _Header:
    """Reads one value after the other."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self.path, self.stream = path, stream

    def begin(self) -> tuple[int, int]:
        """Read how many tensors and values there are."""
        found, version = _exactly(self.path, self.stream, 4), self.number("<u4")
        if found != b"GGUF" or version not in VERSIONS:
            text = f"{self.path} begins with {found!r}, version {version}; GGUF 2 or 3 is wanted"
            raise FileDamaged(text)
        return self.number("<u8"), self.number("<u8")

    def number(self, dtype: str) -> Any:
        """Read one number."""
        return self.numbers(dtype, 1)[0].item()

    def numbers(self, dtype: str, count: int) -> Array:
        """Read so many numbers."""
        size = count * np.dtype(dtype).itemsize
        return np.frombuffer(_exactly(self.path, self.stream, size), dtype)

    def string(self) -> str:
        """Read a text."""
        content = _exactly(self.path, self.stream, self.number("<u8"))
        return content.decode(errors="replace")

    def value(self, kind: int) -> Any:
        """Read a value of that kind."""
        if kind == _STRING:
            return self.string()
        if kind == _LIST:
            inner, count = self.number("<u4"), self.number("<u8")
            if inner in _NUMBERS:
                return self.numbers(_NUMBERS[inner], count).tolist()
            if inner == _STRING:
                return [self.string() for _ in range(count)]
        if kind not in _NUMBERS:
            text = (
                f"{self.path}: a value of kind {kind} at byte {self.stream.tell()}; none is known"
            )
            raise FileDamaged(text)
        return self.number(_NUMBERS[kind])

    def tensor(self) -> tuple[str, Tensor]:
        """Read the name of a tensor, and where it is."""
        name, axes = self.string(), self.number("<u4")
        if not 1 <= axes <= MOST_AXES:
            raise FileDamaged(f"{self.path}: {name} has {axes} axes; 1 to {MOST_AXES} are wanted")
        extents = self.numbers("<u8", axes).tolist()
        return name, Tensor(tuple(extents[::-1]), self.number("<u4"), self.number("<u8"))


def _exactly(path: Path, stream: BinaryIO, count: int) -> bytes:
    left = path.stat().st_size - stream.tell()  # before memory for what is not there is taken
    content = stream.read(count) if count <= left else b""
    if len(content) < count:
        text = f"{path} is cut short: {count} bytes are wanted at {stream.tell()}, {left} are left"
        raise FileDamaged(text)
    return content
