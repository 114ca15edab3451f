"""The parameters of a kernel by their C++ types: as a user writes them, or a symbol tells them.

A binary has their sizes alone, so these decide what a type is that nobody knows.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from accel_lab.compute.arrays.dtypes import itemsize
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.jit.signature import Parameter

_POINTER_BYTES = 8
_LARGEST_ALIGNMENT = 16
_QUALIFIERS = frozenset(
    ("const", "volatile", "restrict", "__restrict__", "__restrict", "struct", "enum", "class")
)
_INTEGERS = {
    "int8": ("signed char", "int8_t"),
    "int16": ("short", "short int", "signed short", "int16_t"),
    "int32": ("int", "signed", "signed int", "int32_t"),
    "int64": ("long", "long int", "signed long", "long long", "long long int", "int64_t"),
    "uint8": ("unsigned char", "uint8_t"),
    "uint16": ("unsigned short", "unsigned short int", "uint16_t"),
    "uint32": ("unsigned", "unsigned int", "uint32_t"),
    "uint64": (
        "unsigned long",
        "unsigned long int",
        "unsigned long long",
        "unsigned long long int",
        "uint64_t",
        "size_t",
    ),
}
_OTHERS = {
    "bool": ("bool",),
    "char": ("char",),
    "void": ("void",),
    "float16": ("__half", "half"),
    "bfloat16": ("__nv_bfloat16", "nv_bfloat16"),
    "float8_e4m3fn": ("__nv_fp8_e4m3",),
    "float8_e5m2": ("__nv_fp8_e5m2",),
    "float32": ("float",),
    "float64": ("double",),
}
_CODES = {
    tuple(sorted(text.split())): code
    for code, texts in {**_INTEGERS, **_OTHERS}.items()
    for text in texts
}
_WORDS = re.compile(r"[\w:]+(?:<.*>)?(?:::[\w:]+)*")


class Place(NamedTuple):
    """Where a parameter lies among all, and its bytes: what a binary says of it."""

    offset: int
    nbytes: int


def parameters_of(kernel: str, text: str, places: Sequence[Place]) -> tuple[Parameter, ...]:
    """Return the parameters that a text lists, "float* y, const float* x, int n".

    Parameters:
        places: those of the binary, which it has to fit.

    Raises:
        InvalidArgument: it does not.
    """
    types = [one for one in _parts(text) if one and one != "void"]
    if len(types) != len(places):
        raise InvalidArgument(
            f"{kernel} has {len(places)} parameters {sizes_text(places)}, and {text!r} lists "
            f"{len(types)}"
        )
    return tuple(
        _parameter(kernel, i, one, place)
        for i, (one, place) in enumerate(zip(types, places, strict=True))
    )


def sizes_text(places: Sequence[Place]) -> str:
    """Return the sizes for people: "(of 8, 8 and 4 bytes)"."""
    sizes = [str(one.nbytes) for one in places]
    listed = " and ".join(filter(None, (", ".join(sizes[:-1]), *sizes[-1:])))
    return f"(of {listed} bytes)" if sizes else "(none)"


def signature_in(readable: str) -> tuple[str, str] | None:
    """Take a demangled symbol apart: "void scale<float>(float*)" is a name and its parameters."""
    if not readable.endswith(")"):
        return None
    depth, at = 0, len(readable)
    while at:
        at -= 1
        depth += {")": 1, "(": -1}.get(readable[at], 0)
        if not depth:
            break
    return _without_result(readable[:at]), readable[at + 1 : -1]


def _without_result(name: str) -> str:
    """Return a function's name without the type that it returns, which templates have there."""
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += {">": 1, ")": 1, "<": -1, "(": -1}.get(name[at], 0)
        if name[at] == " " and not depth:
            return name[at + 1 :]
    return name


def _parts(text: str) -> list[str]:
    """Cut a list at the commas that are in no brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += {"<": 1, "(": 1, "[": 1, ">": -1, ")": -1, "]": -1}.get(char, 0)
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def _parameter(kernel: str, index: int, text: str, place: Place) -> Parameter:
    align = min(place.offset & -place.offset or _LARGEST_ALIGNMENT, _LARGEST_ALIGNMENT)
    base, *levels = text.split("*") if "(" not in text else (text,)
    code = _code_of(base, has_name=not levels)
    if "&" in text or "[" in text:
        raise InvalidArgument(f"{kernel}: parameter {index} is {text!r}; write a pointer as T*")
    if levels:
        if len(levels) > 1:
            element, nbytes, const = "pointer", _POINTER_BYTES, "const" in levels[-2].split()
        else:
            const = "const" in base.split()
            element, nbytes = code, 0 if code in ("", "void") else _size_of(code)
        _require(kernel, index, text, _POINTER_BYTES, place)
        return Parameter(
            _POINTER_BYTES, _POINTER_BYTES, "pointer", element, nbytes, max(nbytes, 1), const
        )
    if code == "void":
        raise InvalidArgument(f"{kernel}: parameter {index} is {text!r}, which is no type of one")
    if code:
        _require(kernel, index, text, _size_of(code), place)
        align = _size_of(code)
    return Parameter(place.nbytes, align, code, "", 0, 1, read_only=False)


def _size_of(code: str) -> int:
    return 1 if code == "char" else itemsize(code)


def _code_of(text: str, *, has_name: bool) -> str:
    """Return what a type is called in a table; empty for one that nobody knows here."""
    words = [word.removeprefix("std::") for word in _WORDS.findall(text)]
    words = [word for word in words if word not in _QUALIFIERS]
    code = _CODES.get(tuple(sorted(words)), "")
    if not code and has_name and len(words) > 1:
        code = _CODES.get(tuple(sorted(words[:-1])), "")
    return code


def _require(kernel: str, index: int, text: str, nbytes: int, place: Place) -> None:
    if nbytes != place.nbytes:
        raise InvalidArgument(
            f"{kernel}: parameter {index} is {text!r}, {nbytes} bytes, and that of the module has "
            f"{place.nbytes}"
        )
