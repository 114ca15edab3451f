"""PyTorch's tensors and arrays on the same memory. What needs PyTorch imports it when called."""

import pickle
import sys
from collections.abc import Callable
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


def storage_of(value: Any, arrays: Any) -> tuple[int, Any, Callable[[], Any]] | None:
    """Return the memory of a tensor that is being pickled; None for all else.

    It comes as its address, a dtype, and what makes an array of its bytes. It is None, too, where
    that memory is not where `arrays`, NumPy or CuPy, has its own.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.storage.TypedStorage):
        return None
    storage = value.untyped()
    if (storage.device.type == "cpu") is not (arrays is np) or not storage.nbytes():
        return None
    tensor = torch.empty(0, dtype=torch.uint8, device=storage.device)
    return storage.data_ptr(), value.dtype, lambda: arrays.from_dlpack(tensor.set_(storage))


def storage_on(array: Any) -> Any:
    """Return PyTorch's storage on the memory of an array of bytes."""
    import torch

    return torch.from_dlpack(array).untyped_storage()


def typed(storage: Any, dtype: Any) -> Any:
    """Return a storage as one of a dtype, as tensors are pickled with."""
    import torch

    return torch.storage.TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def reduced(value: Any) -> Any:
    """Return how a tensor is pickled, where PyTorch's own way would lose more; None for all else.

    A gradient goes along. What autograd knows of a result stays behind: it is a plain tensor then.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return None
    if not value.is_leaf:
        return value.detach().__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    if value.grad is None:
        return None
    make, args, *_ = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    return make, args, value.grad, None, None, _with_grad


def _with_grad(tensor: Any, grad: Any) -> None:
    tensor.grad = grad


def is_whole(value: Any) -> bool:
    """Whether PyTorch has to pickle this by itself, tensors inside it included: a model, as one."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    if isinstance(value, torch.nn.Module):
        return not any(tensor.is_cuda for tensor in value.state_dict().values())
    return isinstance(value, torch.Tensor) and not value.is_cuda
