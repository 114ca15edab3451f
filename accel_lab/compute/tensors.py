"""PyTorch's tensors and arrays on the same memory. What needs PyTorch imports it when called."""

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


def kind_of(value: Any) -> str:
    """Return `parameter`, `leaf` (autograd keeps its gradient) or `tensor`; "" for all else."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return ""
    if isinstance(value, torch.nn.Parameter):
        return "parameter"
    return "leaf" if value.requires_grad and value.is_leaf else "tensor"


def made(array: Any, kind: str) -> Any:
    """Return a tensor of a kind on the memory of an array, CuPy's or NumPy's; without gradient."""
    import torch

    dtype = str(array.dtype)
    if numpy_dtype(dtype).isbuiltin == 1:
        tensor = torch.from_dlpack(array)
    else:
        bits = "uint8" if itemsize(dtype) == 1 else "int16"
        tensor = torch.from_dlpack(array.view(bits)).view(getattr(torch, dtype))
    if kind == "parameter":
        return torch.nn.Parameter(tensor)
    return tensor.requires_grad_(kind == "leaf")


def is_whole(value: Any) -> bool:
    """Whether PyTorch has to pickle this by itself, tensors inside it included: a model, as one."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    if isinstance(value, torch.nn.Module):
        return not any(tensor.is_cuda for tensor in value.state_dict().values())
    return isinstance(value, torch.Tensor) and not value.is_cuda
