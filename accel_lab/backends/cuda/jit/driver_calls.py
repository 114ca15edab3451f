"""The driver's calls that CuPy lacks: launches in clusters, and descriptions of tiles.

The structures and numbers are those of `cuda.h`, which stay what they are in every version.
"""

import ctypes
from functools import partial
from typing import Any

from cupy.cuda import driver

from accel_lab.compute.machine.loaded_driver import loaded_driver
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.jit.tensor_map import GRAIN, L2, NBYTES, SWIZZLES, Tiling

_CLUSTER, _PROGRAMMATIC = 4, 6  # CUlaunchAttributeID
_MOST_STRIDE = 1 << 40
_TYPES = {
    "bool": 0,
    "int8": 0,
    "uint8": 0,
    "float8_e4m3fn": 0,
    "float8_e5m2": 0,
    "int16": 1,
    "uint16": 1,
    "uint32": 2,
    "int32": 3,
    "uint64": 4,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
}
"""CUtensorMapDataType; one of the same size serves where only bits are copied."""
_POINTER = ctypes.c_void_p


class Attribute(ctypes.Structure):
    """CUlaunchAttribute, whose value is a union of 64 bytes; here as words."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16))


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("shape", ctypes.c_uint * 7),  # the grid, the block, the bytes of shared memory
        ("stream", _POINTER),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", ctypes.c_uint),
    )


def call(name: str, *given: Any) -> None:
    """Call a function of the driver.

    Raises:
        driver.CUDADriverError: it does not answer with success.
    """
    found = loaded_driver(quick=True)
    assert found is not None
    status = getattr(found, name)(*given)
    if status:
        raise driver.CUDADriverError(status)


def configured(
    function: int,
    *shape: int,
    cluster: tuple[int, int, int] | None,
    programmatic: bool,
) -> "partial[None]":
    """Return what launches a kernel (cuLaunchKernelEx).

    Parameters:
        shape: the grid, the block, the bytes of shared memory, the stream, and the address of the
            pointers to the arguments.
    """
    *extents, stream, at = shape
    attributes = []
    if cluster is not None:
        attributes.append(Attribute(_CLUSTER, 0, (ctypes.c_uint * 16)(*cluster)))
    if programmatic:
        attributes.append(Attribute(_PROGRAMMATIC, 0, (ctypes.c_uint * 16)(1)))
    several = (Attribute * len(attributes))(*attributes)
    config = Config((ctypes.c_uint * 7)(*extents), stream, several, len(attributes))
    given = ctypes.byref(config), _POINTER(function), _POINTER(at), None
    return partial(call, "cuLaunchKernelEx", *given)


def tiled(array: Any, dtype: str, tiling: Tiling) -> bytes:
    """Return what describes the tiles of an array (cuTensorMapEncodeTiled).

    Raises:
        InvalidArgument: its memory does not lie as the card's copy engine needs it.
    """
    address, extents, strides = array.data.ptr, array.shape, layout(array)
    if address % GRAIN:
        raise InvalidArgument(f"it begins at no multiple of {GRAIN} bytes; copy it first")
    rank = len(extents)
    memory = ctypes.create_string_buffer(2 * NBYTES)
    at = ctypes.addressof(memory)
    at += -at % NBYTES
    status = 0
    try:
        call(
            "cuTensorMapEncodeTiled",
            _POINTER(at),
            _TYPES[dtype],
            ctypes.c_uint(rank),
            _POINTER(address),
            (ctypes.c_uint64 * rank)(*extents[::-1]),
            (ctypes.c_uint64 * rank)(*strides[::-1][1:]),
            (ctypes.c_uint32 * rank)(*tiling.box[::-1]),
            (ctypes.c_uint32 * rank)(*[1] * rank),
            0,  # CU_TENSOR_MAP_INTERLEAVE_NONE
            SWIZZLES.index(tiling.swizzle),
            L2.index(tiling.l2),
            int(tiling.fill == "nan"),
        )
    except driver.CUDADriverError as error:
        status = error.status
    if status:
        raise InvalidArgument(
            f"the driver refuses it, CUresult {status}: {list(extents)}, strides {list(strides)} "
            f"bytes, {tiling}"
        )
    return ctypes.string_at(at, NBYTES)


def layout(array: Any) -> tuple[int, ...]:
    """Return an array's strides in bytes, as a description of tiles has them.

    Raises:
        InvalidArgument: they are none that the card's copy engine takes.
    """
    strides, ahead = list(array.strides), array.itemsize * array.shape[-1]
    if array.shape[-1] > 1 and strides[-1] != array.itemsize:
        raise InvalidArgument("its last axis has gaps; copy it first, with array.copy")
    strides[-1] = array.itemsize
    for axis in range(len(strides) - 2, -1, -1):
        if array.shape[axis] == 1:  # nothing is there to stride over
            strides[axis] = -(-ahead // GRAIN) * GRAIN
        stride = strides[axis]
        if not 0 < stride < _MOST_STRIDE or stride % GRAIN:
            raise InvalidArgument(
                f"along axis {axis} it has a stride of {stride} bytes, no multiple of {GRAIN}; "
                "copy it into a buffer with longer rows"
            )
        ahead = max(ahead, stride * array.shape[axis])
    return tuple(strides)
