"""PyTorch's tensors on the CPU, as arrays on the same memory. Nothing here imports PyTorch."""

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_lab.compute.dtypes import NAMES, itemsize, numpy_dtype


def as_array(value: Any) -> npt.NDArray[Any] | None:
    """Return an array on the memory of a dense CPU tensor; None for anything else.

    A tensor that is a lazy conjugate or negative is made plain, which copies it. What autograd
    knows of it stays behind.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor) or value.device.type != "cpu":
        return None
    dtype = str(value.dtype).removeprefix("torch.")
    if value.layout is not torch.strided or dtype not in NAMES:
        return None
    tensor = value.detach().resolve_conj().resolve_neg()
    native = numpy_dtype(dtype)
    if native.isbuiltin == 1:
        return np.asarray(tensor.numpy())
    # PyTorch's NumPy knows no narrow floats: the bits cross as integers.
    bits = torch.uint8 if itemsize(dtype) == 1 else torch.int16
    return np.asarray(tensor.view(bits).numpy().view(native))


def is_whole(value: Any) -> bool:
    """Whether PyTorch has to pickle this by itself, tensors inside it included: a model, as one."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    if isinstance(value, torch.nn.Module):
        return not any(tensor.is_cuda for tensor in value.state_dict().values())
    return isinstance(value, torch.Tensor) and not value.is_cuda
