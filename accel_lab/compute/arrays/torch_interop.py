"""PyTorch's tensors and arrays on the same memory. What needs PyTorch imports it when called."""

import pickle
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel_lab.compute.arrays.dtypes import NAMES, itemsize, numpy_dtype


class TensorCopy(NamedTuple):
    """What a tensor on the CPU holds.

    Attributes:
        array: its numbers.
        grad: those of the gradient that autograd keeps of it, or None.
        kind: as of `kind_of`.
        requires_grad: whether autograd keeps a gradient of it from now on.
    """

    array: npt.NDArray[Any]
    grad: npt.NDArray[Any] | None
    kind: str
    requires_grad: bool


class State(NamedTuple):
    """What an optimizer, a scheduler or a random generator goes on from, tensors as TensorCopy.

    Attributes:
        own: its state.
        parameters: those of an optimizer.
        optimizer: the state of a scheduler's optimizer.
    """

    own: Any
    parameters: list[TensorCopy]
    optimizer: "State | None" = None


def copy_of(value: Any) -> TensorCopy | None:
    """Return what a dense CPU tensor holds, on the same memory; None for anything else."""
    array = as_array(value)
    if array is None:
        return None
    if not value.is_leaf:
        return TensorCopy(array, None, "tensor", requires_grad=False)
    grad = None if value.grad is None else as_array(value.grad)
    if grad is None and value.grad is not None:
        return None
    return TensorCopy(array, grad, kind_of(value), value.requires_grad)


def made_of(copy: TensorCopy) -> Any:
    """Return a tensor on the memory of a copy."""
    tensor = made(copy.array, copy.kind).requires_grad_(copy.requires_grad)
    if copy.grad is not None:
        tensor.grad = made(copy.grad, "tensor")
    return tensor


def renew(mine: Any, copy: TensorCopy) -> bool:
    """Make a tensor equal to a copy in place, gradient included; whether that could be."""
    own = copy_of(mine)
    if own is None or own.array.shape != copy.array.shape or own.array.dtype != copy.array.dtype:
        return False
    import torch

    new = made_of(copy)
    try:
        with torch.no_grad():
            mine.copy_(new)
    except RuntimeError:  # it is expanded, or one of inference
        return False
    if not mine.is_leaf:
        return True
    mine.requires_grad_(copy.requires_grad)
    if mine.grad is None or new.grad is None:
        mine.grad = new.grad
    else:
        mine.grad.copy_(new.grad)
    return True


def state_of(value: Any) -> State | None:
    """Return the state of an optimizer, a scheduler or a random generator on the CPU, else None.

    Only of PyTorch's own classes: nothing of the user's runs here.
    """
    torch = sys.modules.get("torch")
    if torch is None or not type(value).__module__.startswith("torch."):
        return None
    try:
        if isinstance(value, torch.Generator):
            return State(_copied(value.get_state()), []) if value.device.type == "cpu" else None
        if isinstance(value, torch.optim.Optimizer):
            own = _mapped(value.state_dict(), torch.Tensor, _copied)
            return State(own, [_copied(one) for one in _parameters(value)])
        if isinstance(value, torch.optim.lr_scheduler.LRScheduler):
            optimizer = state_of(value.optimizer)
            own = _mapped(value.state_dict(), torch.Tensor, _copied)
            return None if optimizer is None else State(own, [], optimizer)
    except ValueError:  # it has what is not on the CPU
        return None
    return None


def set_state(mine: Any, state: State) -> bool:
    """Have an optimizer, a scheduler or a generator go on from a state; whether it could.

    An optimizer's parameters are what they were when it had that state.
    """
    import torch

    if isinstance(mine, torch.Generator):
        mine.set_state(made_of(state.own))
        return True
    if not has_state(mine):
        return False
    try:
        mine.load_state_dict(_mapped(state.own, TensorCopy, made_of))
    except ValueError:  # it has other parameters meanwhile
        return False
    if state.optimizer is not None:
        return set_state(mine.optimizer, state.optimizer)
    for parameter, copy in zip(_parameters(mine), state.parameters, strict=True):
        renew(parameter, copy)
    return True


def _parameters(optimizer: Any) -> list[Any]:
    return [one for group in optimizer.param_groups for one in group["params"]]


def _copied(value: Any) -> TensorCopy:
    copy = copy_of(value)
    if copy is None:
        raise ValueError("not on the CPU")
    return copy


def _mapped(value: Any, kind: type, function: Callable[[Any], Any]) -> Any:
    """Return nested containers with what is of a type replaced."""
    if isinstance(value, kind):
        return function(value)
    if isinstance(value, dict):
        return {key: _mapped(part, kind, function) for key, part in value.items()}
    if type(value) is list or type(value) is tuple:
        return type(value)(_mapped(part, kind, function) for part in value)
    return value


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


def is_tensor(value: Any) -> bool:
    """Whether this is a tensor of PyTorch's, on whatever device."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def has_state(value: Any) -> bool:
    """Whether this is something that `state_of` may have the state of."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    kinds = torch.Generator, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler
    return isinstance(value, kinds)


def is_module(value: Any) -> bool:
    """Whether this is a module of PyTorch's: a model or a layer."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def is_whole(value: Any) -> bool:
    """Whether PyTorch has to pickle this by itself, tensors inside it included: a model, as one."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    if isinstance(value, torch.nn.Module):
        return not any(tensor.is_cuda for tensor in value.state_dict().values())
    return isinstance(value, torch.Tensor) and not value.is_cuda
