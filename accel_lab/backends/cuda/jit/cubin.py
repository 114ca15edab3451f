"""Read what a cubin says of itself: it is an ELF file, so this needs no GPU."""

import struct

_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOLS = 2  # the type of a symbol table


def data_of(cubin: bytes, symbol: str) -> bytes:
    """Return the initial value of a variable.

    Raises:
        ValueError: there is no such variable, or this is no 64-bit ELF file.
    """
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError("a cubin is a 64-bit ELF file, and this is none")
    header = _HEADER.unpack_from(cubin)
    at, size, count = header[5], header[10], header[11]
    sections = [_SECTION.unpack_from(cubin, at + i * size) for i in range(count)]
    for kind, offset, nbytes, link in ((s[1], s[4], s[5], s[6]) for s in sections):
        if kind != _SYMBOLS:
            continue
        names = sections[link][4]
        for name, _, _, index, value, length in _SYMBOL.iter_unpack(
            cubin[offset : offset + nbytes]
        ):
            start = names + name
            if cubin[start : cubin.index(b"\0", start)] == symbol.encode():
                _, _, _, address, begin, *_ = sections[index]
                begin += value - address
                return cubin[begin : begin + length]
    raise ValueError(f"there is no variable {symbol} in this cubin")
