"""What is put on a device, as a NumPy array of numbers."""

from typing import Any

import numpy as np
import numpy.typing as npt

from accel_lab.compute.arrays.torch_interop import as_array
from accel_lab.errors import InvalidArgument


def host_array(value: Any) -> npt.NDArray[Any]:
    """Return what NumPy makes of a value, or the memory of a tensor on the CPU.

    Raises:
        InvalidArgument: it has a mask, or is no array of numbers.
    """
    tensor = as_array(value)
    if tensor is not None:
        return tensor
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidArgument(
            "a masked array cannot be put on a device: put x.filled(value) and x.mask"
        )
    try:
        array = np.asarray(value)
    except ValueError as error:  # rows of different lengths
        raise InvalidArgument(f"this is no array: {error}") from error
    if array.dtype.kind == "O" and array is not value:
        kind = type(value).__name__
        how = "x.to_numpy(dtype)" if hasattr(value, "to_numpy") else "np.asarray(x, dtype)"
        raise InvalidArgument(
            f"NumPy turns this {kind} into Python objects, and a device holds numbers: put {how}"
        )
    return array
