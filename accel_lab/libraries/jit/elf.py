"""What a compiled kernel's file says of its variables: shared libraries and cubins are ELF."""

import struct
from typing import NamedTuple

_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOLS = (2, 11)  # the types of symbol tables
_VARIABLE = 1
_RESERVED = 0xFF00  # sections from here on are none
_WRITABLE = 1


class Variable(NamedTuple):
    """A variable of a binary.

    Attributes:
        address: where it is, from where the binary is loaded.
        writable: whether the section that it is in may be written to.
    """

    address: int
    nbytes: int
    writable: bool


def variables_of(binary: bytes) -> dict[str, Variable]:
    """Return the variables of a 64-bit ELF file by their names in it.

    Raises:
        ValueError: it is none.
    """
    if binary[:5] != b"\x7fELF\x02":
        raise ValueError("this is no 64-bit ELF file")
    header = _HEADER.unpack_from(binary)
    at, size, count = header[5], header[10], header[11]
    sections = [_SECTION.unpack_from(binary, at + i * size) for i in range(count)]
    found = {}
    for kind, start, nbytes, link in ((s[1], s[4], s[5], s[6]) for s in sections):
        if kind not in _SYMBOLS:
            continue
        names = sections[link][4]
        for name, info, _, index, value, length in _SYMBOL.iter_unpack(
            binary[start : start + nbytes]
        ):
            if info & 15 != _VARIABLE or not 0 < index < _RESERVED:
                continue
            begin = names + name
            text = binary[begin : binary.index(b"\0", begin)].decode(errors="replace")
            found[text] = Variable(value, length, bool(sections[index][2] & _WRITABLE))
    return found


def symbols_for(name: str) -> list[str]:
    """Return what compilers call a variable of this C++ name, with namespaces: "a::count"."""
    parts = name.split("::")
    *spaces, last = [f"{len(part)}{part}" for part in parts]
    if not spaces:
        return [name, f"_ZL{last}"]
    inside = "".join(spaces)
    return [f"_ZN{inside}{last}E", f"_ZN{inside}L{last}E"]
