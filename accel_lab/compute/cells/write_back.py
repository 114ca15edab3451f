"""Objects that a cell has changed, sent back whole and updated in place in the notebook.

These are plain data, NumPy's arrays and PyTorch's tensors on the host, random generators, and the
optimizers and schedulers of PyTorch.
"""

import pickle
from collections import defaultdict, deque
from typing import Any

import numpy as np

from accel_lab.compute.arrays import torch_interop
from accel_lab.compute.cells import random_generators
from accel_lab.compute.cells.plain_data import CONTAINERS, frozen

_MUTABLE: frozenset[type] = CONTAINERS - {tuple, frozenset} | {bytearray, np.ndarray}


def can_change(value: Any) -> bool:
    """Whether a cell may change this in place, and the notebook's be made equal to it."""
    if type(value) in _MUTABLE or random_generators.is_generator(value):
        return True
    return torch_interop.is_tensor(value) or torch_interop.has_state(value)


def holds_changing(value: Any) -> bool:
    """Whether this is a container with something inside that may change, and have other names."""
    if type(value) not in CONTAINERS:
        return False
    inside = value.values() if isinstance(value, dict) else value
    return any(can_change(one) or (type(one) is tuple and holds_changing(one)) for one in inside)


def is_array(value: Any) -> bool:
    """Whether this is an array, which may be the device's where that is the host."""
    return type(value) is np.ndarray or torch_interop.is_tensor(value)


def copied(value: Any) -> bytes | None:
    """Return a copy as bytes, which `thawed` makes something for `renew` of; None if it has none.

    Equal bytes are of equal values.
    """
    kind = type(value)
    if kind in CONTAINERS:
        return frozen(value)
    if kind.__module__ == "__main__" or (kind is np.ndarray and value.dtype.hasobject):
        return None
    if kind is np.ndarray or kind is bytearray or random_generators.is_generator(value):
        return pickle.dumps(value)
    found = torch_interop.copy_of(value) or torch_interop.state_of(value)
    try:
        return frozen(value) if found is None else pickle.dumps(found)
    except Exception:  # noqa: BLE001 - a state may hold anything
        return None


def made(copy: Any) -> Any:
    """Return what a thawed copy is of."""
    return torch_interop.made_of(copy) if isinstance(copy, torch_interop.TensorCopy) else copy


def renew(mine: Any, copy: Any) -> bool:
    """Make something equal to a thawed copy in place; whether that could be.

    An array keeps its shape, a tensor its dtype, a deque its `maxlen`.
    """
    if isinstance(copy, torch_interop.TensorCopy):
        return torch_interop.renew(mine, copy)
    if isinstance(copy, torch_interop.State):
        return torch_interop.set_state(mine, copy)
    if type(mine) is not type(copy):
        return False
    return (
        random_generators.set_as(mine, copy)
        if random_generators.is_generator(mine)
        else _fill(mine, copy)
    )


def _fill(mine: Any, copy: Any) -> bool:
    if isinstance(mine, np.ndarray):
        if not mine.flags.writeable or mine.size != copy.size or mine.dtype != copy.dtype:
            return False
        mine[...] = copy.reshape(mine.shape)
    elif isinstance(mine, list | bytearray):
        try:
            mine[:] = copy
        except BufferError:  # an array is on these bytes, and they are not as many any more
            return False
    elif isinstance(mine, deque) and mine.maxlen == copy.maxlen:
        mine.clear()
        mine.extend(copy)
    elif isinstance(mine, dict | set):
        mine.clear()
        mine.update(copy)
        if isinstance(mine, defaultdict):
            mine.default_factory = copy.default_factory
    else:
        return False
    return True
