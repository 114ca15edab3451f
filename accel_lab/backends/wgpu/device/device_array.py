"""An array on the device: a block, and a view of it whose shape and strides NumPy reckons."""

from types import EllipsisType
from typing import Any

import numpy as np

from accel_lab.backends.wgpu.device.blocks import Block

_READING = frozenset(
    {"all", "any", "argmax", "argmin", "argsort", "astype", "cumprod", "cumsum", "dot", "flatten"}
    | {"item", "max", "mean", "min", "nonzero", "prod", "repeat", "round", "std", "sum", "take"}
    | {"tobytes", "tolist", "trace", "var"}
)
"""Methods of NumPy's arrays that change nothing, and whose answer is no view."""


class DeviceArray(np.lib.mixins.NDArrayOperatorsMixin):
    """A view of a block.

    NumPy computes with it on the host: what comes of that is NumPy's array, and what is written in
    place, as by `x *= 2`, is written to the device.

    Attributes:
        block: the memory.
        layout: an array of NumPy's with the view's shape, strides and place. Nothing is behind it:
            look at what it says, and never at an element.
    """

    __slots__ = ("_owner", "block", "layout")

    def __init__(self, block: Block, layout: Any, owner: Any) -> None:
        self.block, self.layout, self._owner = block, layout, owner

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        shape: tuple[int, ...] = self.layout.shape
        return shape

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides in bytes of the dtype."""
        strides: tuple[int, ...] = self.layout.strides
        return strides

    @property
    def dtype(self) -> "np.dtype[Any]":
        """The dtype."""
        dtype: np.dtype[Any] = self.layout.dtype
        return dtype

    @property
    def name(self) -> str:
        """The dtype's name."""
        return str(self.layout.dtype)

    @property
    def flags(self) -> Any:
        """NumPy's flags."""
        return self.layout.flags

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return int(self.layout.ndim)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return int(self.layout.size)

    @property
    def nbytes(self) -> int:
        """The bytes of the elements, as the notebook counts them."""
        return int(self.layout.nbytes)

    @property
    def base(self) -> "DeviceArray | None":
        """The array of which this is a view, if it is one."""
        if self.layout is self.block.whole:
            return None
        return DeviceArray(self.block, self.block.whole, self._owner)

    @property
    def offset(self) -> int:
        """Where the first element lies in the block, in elements."""
        place: int = self.layout.__array_interface__["data"][0]
        return (place - self.block.start) // self.dtype.itemsize if self.size else 0

    def like(self, layout: Any) -> "DeviceArray":
        """Return another view of the block."""
        return DeviceArray(self.block, layout, self._owner)

    def __getitem__(self, index: Any) -> Any:
        entries = _entries(index)
        if not all(map(_is_basic, entries)):
            return self.get()[entries]
        has_rest = any(one is ... for one in entries)
        return self.like(self.layout[entries if has_rest else (*entries, ...)])

    def __setitem__(self, index: Any, values: Any) -> None:
        part = self[index]
        if isinstance(part, DeviceArray):
            part.set(values)
        else:
            whole = self.get()
            whole[_entries(index)] = _fetched(values)
            self.set(whole)

    def reshape(self, *shape: Any) -> "DeviceArray":
        """Return a view of another shape, or a copy where there can be none."""
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        try:
            return self.like(self.layout.reshape(given, copy=False))
        except ValueError:
            whole = self.copy()
            return whole.like(whole.layout.reshape(given, copy=False))

    def transpose(self, *axes: Any) -> "DeviceArray":
        """Return a view with permuted axes."""
        return self.like(self.layout.transpose(*axes))

    def broadcast_to(self, shape: tuple[int, ...]) -> "DeviceArray":
        """Return a view of that shape."""
        return self.like(np.broadcast_to(self.layout, shape))

    def copy(self) -> "DeviceArray":
        """Return a contiguous copy."""
        copied: DeviceArray = self._owner.empty(self.shape, self.name)
        self._owner.copy(self, copied)
        return copied

    def get(self) -> Any:
        """Return the elements as an array of NumPy's; waits for the device."""
        return self._owner.read(self)

    def set(self, values: Any) -> None:
        """Write elements."""
        given = np.broadcast_to(np.asarray(values, self.dtype), self.shape)
        self._owner.upload(self, 0, np.ascontiguousarray(given).tobytes())

    def __getattr__(self, name: str) -> Any:
        if name in _READING:
            return getattr(self.get(), name)
        raise AttributeError(f"a DeviceArray has no {name!r}; get() returns NumPy's array")

    def __len__(self) -> int:
        return len(self.layout)

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: tuple[Any, ...] = (), **options: Any
    ) -> Any:
        given = [_fetched(x) for x in inputs]
        options = {name: _fetched(x) for name, x in options.items()}
        if not out:
            return getattr(ufunc, method)(*given, **options)
        into = tuple(_fetched(x) for x in out)
        getattr(ufunc, method)(*given, out=into, **options)
        for target, made in zip(out, into, strict=True):
            if isinstance(target, DeviceArray):
                target.set(made)
        return out[0] if len(out) == 1 else out

    __hash__ = object.__hash__  # two of them are one array only if they are the same object

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:  # noqa: FBT001 - NumPy's
        if copy is False:
            raise ValueError("the elements are on the device: they can only be copied")
        got = self.get()
        return got if dtype is None else got.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"<DeviceArray {self.name}{list(self.shape)}>"


def _entries(index: Any) -> tuple[Any, ...]:
    return tuple(map(_fetched, index if isinstance(index, tuple) else (index,)))


def _is_basic(entry: Any) -> bool:
    """Whether it selects a view: no mask, and no list or array of places."""
    return isinstance(entry, int | np.integer | slice | EllipsisType | None) and not isinstance(
        entry, bool
    )


def _fetched(x: Any) -> Any:
    return x.get() if isinstance(x, DeviceArray) else x
