"""What a cubin says of its kernels and variables: it is an ELF file, so this needs no GPU."""

import ctypes
import struct
from functools import cache
from typing import Any, NamedTuple

from accel_lab.libraries.jit.elf import variables_of
from accel_lab.libraries.jit.signature import PREFIX
from accel_lab.libraries.module.parameter_types import Place

RELOCATABLE = 1
"""The type of an ELF file that has to be linked; a cubin that can be loaded has another."""
_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOLS, _FUNCTION = 2, 2  # the types of a table of symbols, and of one that is a function
_ENTRY = 0x10  # of a symbol's `other`: it can be launched
_INFO = ".nv.info."
# Attributes of a kernel: those of the form 4 are followed by their size, the others have 4 bytes.
_SIZED, _PARAMETER = 4, 0x17
_ATTRIBUTE = struct.Struct("<BBH")
_PLACE = struct.Struct("<IHHI")  # an index, the parameter's number, its offset, its size << 18
_SIZE_SHIFT = 18


class Section(NamedTuple):
    """A part of an ELF file."""

    name: str
    kind: int
    link: int
    data: bytes


def is_relocatable(cubin: bytes) -> bool:
    """Whether a cubin has to be linked before it can be loaded."""
    kind: int = _HEADER.unpack_from(cubin)[0]
    return kind == RELOCATABLE


def kernels_of(cubin: bytes) -> dict[str, tuple[Place, ...]]:
    """Return the kernels by their symbols, and where the parameters of each lie."""
    sections = _sections(cubin)
    infos = {
        one.name.removeprefix(_INFO): one.data for one in sections if one.name.startswith(_INFO)
    }
    found = {}
    for table in sections:
        if table.kind != _SYMBOLS:
            continue
        names = sections[table.link].data
        for name, info, other, _, _, _ in _SYMBOL.iter_unpack(table.data):
            if info & 15 == _FUNCTION and other & _ENTRY:
                symbol = _text(names, name)
                found[symbol] = _places(infos.get(symbol, b""))
    return found


def variables_in(cubin: bytes) -> dict[str, bool]:
    """Return the variables by their names in C++, and whether each is a constant."""
    return {
        readable(symbol): not found.writable
        for symbol, found in variables_of(cubin).items()
        if symbol[:1].isidentifier() and not symbol.startswith(PREFIX)
    }


def readable(symbol: str) -> str:
    """Return a symbol as C++ has it, "scale(float*, int)"; the symbol itself if it is none."""
    demangle = _demangler()
    if demangle is None or not symbol.startswith("_Z"):
        return symbol
    status = ctypes.c_int()
    found = demangle(symbol.encode(), None, None, ctypes.byref(status))
    if not found:
        return symbol
    try:
        text = ctypes.string_at(found).decode(errors="replace")
    finally:
        _free()(found)
    return text


@cache
def _demangler() -> Any:
    """Return the C++ library's function; None where that is not there."""
    try:
        demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle  # noqa: SLF001 - its name
    except (OSError, AttributeError):
        return None
    demangle.restype = ctypes.c_void_p
    demangle.argtypes = [ctypes.c_char_p, *[ctypes.c_void_p] * 3]
    return demangle


@cache
def _free() -> Any:
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free.restype = None
    return free


def _sections(cubin: bytes) -> list[Section]:
    header = _HEADER.unpack_from(cubin)
    at, size, count, names = header[5], header[10], header[11], header[12]
    rows = [_SECTION.unpack_from(cubin, at + i * size) for i in range(count)]
    texts = cubin[rows[names][4] : rows[names][4] + rows[names][5]]
    return [
        Section(_text(texts, row[0]), row[1], row[6], cubin[row[4] : row[4] + row[5]])
        for row in rows
    ]


def _text(names: bytes, start: int) -> str:
    return names[start : names.index(b"\0", start)].decode(errors="replace")


def _places(info: bytes) -> tuple[Place, ...]:
    """Read where parameters lie: the driver's cuFuncGetParamInfo tells the same."""
    found: dict[int, Place] = {}
    at = 0
    while at < len(info):
        form, attribute, size = _ATTRIBUTE.unpack_from(info, at)
        at += _ATTRIBUTE.size
        if form == _SIZED:
            if attribute == _PARAMETER:
                _, number, offset, flags = _PLACE.unpack_from(info, at)
                found[number] = Place(offset, flags >> _SIZE_SHIFT)
            at += size
    return tuple(found[number] for number in sorted(found))
