"""Operators: those that have a name, and functions of the user's CUDA C++ source."""

import re
from typing import Any, NamedTuple

import numpy as np

from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import INTEGERS
from accel_lab.libraries.authoring.operand import kind

NUMBERS = (INTEGERS - {"bool"}) | {"float16", "float32", "float64"}
"""The dtypes that primitives have: integers, and floats that NumPy has itself."""

BITWISE = ("bit_and", "bit_or", "bit_xor")
ASSOCIATIVE = ("sum", "prod", "min", "max", *BITWISE)
"""What combines two elements, in any grouping."""
DIFFERENCES = ("sub", *ASSOCIATIVE)

TYPES = {
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float16": "__half",
    "float32": "float",
    "float64": "double",
}
"""What an element of each dtype is in C++."""

_FUNCTION = re.compile(r"(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*(?:<.*>)?")


class Operator(NamedTuple):
    """An operator: a word of ours, or a function of a source.

    Attributes:
        source: CUDA C++; empty for a word of ours.
    """

    name: str
    source: str = ""

    def text(self, dtype: str) -> str:
        """Return the source with what elements of this dtype need."""
        header = "#include <cuda_fp16.h>\n" if dtype == "float16" else ""
        return f'{header}#line 1 "operator.cu"\n{self.source}\n'


def require_operator(message: Any, name: str, known: tuple[str, ...], dtype: str) -> None:
    """Refuse what is neither one of ours nor, with a source, a function of it.

    Parameters:
        name: the message's field.
        known: our words; none where it has to be a function.

    Raises:
        InvalidArgument: it is none, or the dtype does not have it.
    """
    said, source = getattr(message, name), message.source
    if not isinstance(source, str) or "\0" in source:
        raise InvalidArgument(f"{kind(message)}: source is to be CUDA C++ text, not {source!r}")
    if source:
        if not isinstance(said, str) or _FUNCTION.fullmatch(said) is None:
            text = f"{name} is to be the name of a function of source, not {said!r}"
            raise InvalidArgument(f"{kind(message)}: {text}")
        base = said.partition("<")[0].rpartition(":")[2]
        if re.search(rf"\b{base}\b", source) is None:
            raise InvalidArgument(f"{kind(message)}: nothing in source is called {said}")
        return
    if not known:
        text = f"{name} is {said!r}, and without source there is no function to call"
        raise InvalidArgument(f"{kind(message)}: {text}; give source, CUDA C++ that has it")
    if not isinstance(said, str) or said not in known:
        *first, last = map(repr, known)
        words = f"{', '.join(first)} or {last}"
        text = f"{name} is {said!r}; it may be {words}, or a function of source"
        raise InvalidArgument(f"{kind(message)}: {text}")
    if said in BITWISE and dtype not in INTEGERS:
        raise InvalidArgument(f"{kind(message)}: {said} is of integers, and x is {dtype}")


def identity(op: str, dtype: str) -> Any:
    """Return the element that changes no other under one of our operators."""
    native = numpy_dtype(dtype)
    if op in ("min", "max"):
        low, high = _range(native)
        return high if op == "min" else low
    if op == "bit_and":
        return ~native.type(0)
    return native.type(1 if op == "prod" else 0)


def _range(native: Any) -> tuple[Any, Any]:
    if native.kind == "f":
        return native.type("-inf"), native.type("inf")
    limits = np.iinfo(native)
    return native.type(limits.min), native.type(limits.max)


def computed_in(op: Operator, dtype: str) -> str:
    """Return the dtype in which an operator is computed: sums of float16 are formed in float32."""
    narrow = dtype == "float16" and not op.source and op.name in ("sum", "prod")
    return "float32" if narrow else dtype
