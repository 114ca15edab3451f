"""Which operations wgpu has for which dtypes; all others are refused by name.

Elements of any dtype are moved. What is computed is in the dtypes that WGSL has, and in narrow ones
by float32; an adapter may lack float64 and the integers of 64 bits.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any

from accel_lab.backends.support import COMMON
from accel_lab.compute.arrays.dtypes import NAMES, itemsize
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.compute.message.support import name_of
from accel_lab.display.sizes import size
from accel_lab.errors import InvalidArgument

COMPUTED = frozenset(
    {
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "bfloat16", "float32", "float64",
    }
)  # fmt: skip
MOVED = (
    "Zeros", "Full", "Copy", "Slice", "Reshape", "Transpose", "Broadcast", "Triangle", "Diagonal",
    "Eye", "Take", "TakeAlong", "Assign", "AssignAt", "AssignAlong",
)  # fmt: skip
"""Messages of `array` that compute nothing."""
ARITHMETIC = (
    "Cast", "Unary", "Binary", "Where", "Reduce", "Matmul", "Concatenate", "Arange",
    "Scan", "Sort", "Argsort", "Searchsorted", "Mask", "Nonzero",
)  # fmt: skip

BLAS = (
    "Gemm", "GemmBy", "GemmStridedBatched", "GemmStridedBatchedBy", "GemmGrouped", "Gemv",
    "GemvBy", "Axpy", "AxpyBy", "Scal", "ScalBy", "Dot", "Nrm2", "Asum", "Iamax", "Iamin", "Swap",
)  # fmt: skip

RNG = ("Words", "Integers", "Uniform", "Normal")

TRANSFORMS = ("C2C", "R2C", "C2R")
"""Messages of `fft` that compute."""
PLACES = ("Frequencies", "Shift", "Embedded", "Interleaved")
"""Those that move elements, or are computed by the host."""

WHOLE = frozenset(
    {
        *(f"blas.{name}" for name in BLAS), *(f"rng.{name}" for name in RNG),
        *(f"fft.{name}" for name in TRANSFORMS), "array.Matmul", "array.Scan", "array.Sort",
        "array.Argsort", "array.Searchsorted", "array.Mask", "array.Nonzero", "array.Take",
        "array.TakeAlong", "array.AssignAt", "array.AssignAlong", "array.Triangle",
    }
)  # fmt: skip
"""What computes with arrays that bindings have as a whole; all else goes in parts."""


def bound(most_bytes: int) -> str:
    """Return what a refusal says of the limit."""
    return (
        f"a binding of this adapter has at most {size(most_bytes)}; beyond that wgpu copies, "
        "fills, computes functions of elements, sums and the like: do anything else part by part"
    )


def require_bound(message: Operation[Any], spec: Any, most_bytes: int) -> None:
    """Refuse a message that names what is larger than a binding, and does not go in parts.

    Parameters:
        spec: what is known of the result.

    Raises:
        InvalidArgument: it does.
    """
    row = name_of(type(message))
    if row not in WHOLE or message.dtype_key not in SUPPORT[row]:
        return
    for one in (*message.operands(), spec):
        if isinstance(one, AccelRef | Spec) and one.dtype in NAMES:
            nbytes = math.prod(one.shape) * max(itemsize(one.dtype), 4)
            if nbytes > most_bytes:
                text = f"{row}: {one.dtype}{list(one.shape)} is {size(nbytes)} on wgpu"
                raise InvalidArgument(f"{text}, and {bound(most_bytes)}")


def table(lacks: Collection[str] = ()) -> Mapping[str, frozenset[str]]:
    """Return the table of an adapter.

    Parameters:
        lacks: the dtypes that it does not compute in.
    """
    made: dict[str, frozenset[str]] = dict.fromkeys(COMMON, frozenset())
    for name in MOVED:
        made[f"array.{name}"] = COMMON[f"array.{name}"]
    computing = [f"array.{name}" for name in ARITHMETIC] + [f"blas.{name}" for name in BLAS]
    if not {"uint64", "float64"} & {*lacks}:  # in which all draws are made
        computing += [f"rng.{name}" for name in RNG]
    for name in ("Compile", "LaunchKernel", "InspectKernel"):
        made[f"jit.{name}"] = COMMON[f"jit.{name}"]
    for name in PLACES:
        made[f"fft.{name}"] = COMMON[f"fft.{name}"]
    without = {*lacks} | ({"complex128"} if "float64" in lacks else set())
    for name in TRANSFORMS:
        made[f"fft.{name}"] = COMMON[f"fft.{name}"] - without
    for name in computing:
        made[name] = (COMMON[name] & COMPUTED) - frozenset(lacks)
    return made


SUPPORT: Mapping[str, frozenset[str]] = table()
"""That of an adapter that lacks nothing."""
