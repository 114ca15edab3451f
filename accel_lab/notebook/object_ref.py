"""The handle of an object that stays in a context, under a name of the notebook."""

import operator
import os
from collections.abc import Callable, Iterator
from html import escape
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from accel_lab.compute.cells import workspace_registry
from accel_lab.compute.cells.cell_execution import Resident
from accel_lab.compute.cells.plain_data import thawed
from accel_lab.compute.cells.workspace_registry import Workspaces
from accel_lab.compute.message.service import in_context
from accel_lab.compute.residency import kept_objects
from accel_lab.compute.user_code.pickler import FOUND_THERE
from accel_lab.display.sizes import size
from accel_lab.errors import StaleRef, UserCodeError
from accel_lab.uncopied import Uncopied

if TYPE_CHECKING:
    from accel_lab.compute.device import Device

ANSWER_WITHIN_S = 60.0
_UNCHANGING = ("bool", "int", "float", "complex", "str", "bytes", "NoneType")
"""Types of which the copy is the object for ever."""


_OWN = frozenset(("device", "generation", "copy", "dropped", "_call", "_space", "_resident"))

Binary = Callable[["ObjectRef", Any], Any]


def _operators(function: Callable[[Any, Any], Any]) -> tuple[Binary, Binary]:
    """Return the methods for `object + other` and `other + object`."""

    def method(self: "ObjectRef", other: Any) -> Any:
        return self._ask(function, other)

    def reflected(self: "ObjectRef", other: Any) -> Any:
        return self._ask(_swapped, function, other)

    return method, reflected


def _swapped(value: Any, function: Callable[[Any, Any], Any], other: Any) -> Any:
    return function(other, value)


class ObjectRef(Uncopied):
    """Stands for an object in a device's context; in a `%%gpu` cell it is the object itself.

    It may be an argument of `device.run`, too, and anywhere inside one. In a cell of the notebook's
    own it can be asked for what Python's numbers and containers know: `float(loss)`,
    `loss < 1e-3`, `loss + 1`, `f"{loss:.3f}"`, `len(history)`, `history[-1]`,
    `np.asarray(history)`. The context answers, and the cell waits for that.

    Of numbers, text and small containers of them a copy is kept here, so that a fault does not take
    them along. Numbers, text and None, which never change, are equal to what they stand for, as
    keys too, and print so: `mode == "train"`, `results[mode]`, `open(path)`. `is` and `isinstance`
    see the handle. `==` compares handles of all else.

    Attributes:
        copy: that copy, frozen; None of anything else.
        dropped: why a suspension has given it up; empty if none has.
    """

    _instead = "fetch the object with get(), and pickle that"

    def __init__(
        self,
        device: "Device",
        space: str,
        resident: Resident,
        generation: int,
        copy: bytes | None = None,
    ) -> None:
        self.device = device
        self.generation = generation
        self._space = space
        self._resident = resident
        self.copy = copy
        self.dropped = ""
        kept_objects.note(self, space)

    def renew(self, resident: Resident, copy: bytes | None) -> None:
        """Take note of what has become of the object."""
        if resident.serial == self._resident.serial:
            self._resident, self.copy = resident, copy

    @property
    def name(self) -> str:
        """What the cells call it."""
        return self._resident.name

    @property
    def type(self) -> str:
        """Its type, as text."""
        return self._resident.kind

    @property
    def nbytes(self) -> int:
        """The memory of the device that it is seen to hold, in bytes, when its cell had run."""
        return self._resident.nbytes

    def get(self, timeout_s: float | None = ANSWER_WITHIN_S) -> Any:
        """Return a copy of the object; blocks until it is here.

        Raises:
            StaleRef: it is gone, with its context or otherwise.
            UserCodeError: it does not pickle.
        """
        if (copy := self._settled_copy) is not None:
            return thawed(copy)
        self._require()
        return self.device.run(_itself, self, pure=True).result(timeout_s)

    def drop(self) -> None:
        """Have the context forget it; does not block."""
        resident = self._resident
        where = in_context(Workspaces)
        self.device.run(Workspaces.drop, where, self._space, resident.name, resident.serial)
        kept_objects.forget(self.device, self._space, resident.name)

    def _require(self) -> None:
        """Refuse what was given up.

        Raises:
            StaleRef: it was; says why.
        """
        if self.dropped:
            raise self.stale()

    def stale(self) -> StaleRef:
        """Return the error that says how the object went, and what to do."""
        how = "was lost with its context"
        if self.dropped:
            how = f"was dropped when {self.device.name} was suspended ({self.dropped})"
        return StaleRef(f"{self.name!r}, a {self.type}, {how}; run its cell again")

    @property
    def _is_lost(self) -> bool:
        return self.generation != self.device.generation

    @property
    def _settled_copy(self) -> bytes | None:
        """The copy, if the object is lost or never changes: its name may be another's by now."""
        return self.copy if self._is_lost or self.type in _UNCHANGING else None

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """Pickle what never changes, or was lost, as what it is; else refuse."""
        if (copy := self._settled_copy) is not None:
            return thawed, (copy,)
        return super().__reduce_ex__(protocol)

    def _found_there(self) -> tuple[Any, ...]:
        """Return how to find the object in its context."""
        if (copy := self._settled_copy) is not None:
            return thawed, (copy,)
        resident = self._resident
        return workspace_registry.resident, (self._space, resident.name, resident.serial)

    def __copy__(self) -> Any:
        return self.get()

    def __deepcopy__(self, memo: object) -> Any:
        return self.get()

    def _ask(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return what a function of the object answers, called in the context; blocks for it.

        Raises:
            Exception: what the function raises, as Python would here.
            StaleRef: the object is gone.
        """
        if (copy := self._settled_copy) is not None:
            return function(thawed(copy), *args)
        self._require()
        try:
            return self.device.run(function, self, *args, pure=True).result(ANSWER_WITHIN_S)
        except UserCodeError as error:
            if isinstance(error.__cause__, ArithmeticError | LookupError | TypeError | ValueError):
                raise error.__cause__ from None
            raise

    def _unchanging(self) -> Any:
        """Return the object itself, of a type whose objects never change."""
        return self.get() if self.copy is None else thawed(self.copy)

    def __eq__(self, other: object) -> Any:
        if self.type not in _UNCHANGING:
            return NotImplemented
        return self._unchanging() == other

    def __hash__(self) -> int:
        if self.type not in _UNCHANGING:
            return object.__hash__(self)
        return hash(self._unchanging())

    def __str__(self) -> str:
        return str(self._unchanging()) if self.type in _UNCHANGING else repr(self)

    def __fspath__(self) -> str | bytes:
        path: str | bytes = self._ask(os.fspath)
        return path

    def __bool__(self) -> bool:
        return bool(self._ask(bool))

    def __int__(self) -> int:
        return int(self._ask(int))

    def __float__(self) -> float:
        return float(self._ask(float))

    def __complex__(self) -> complex:
        return complex(self._ask(complex))

    def __index__(self) -> int:
        return operator.index(self._ask(operator.index))

    def __format__(self, form: str) -> str:
        return str(self._ask(format, form) if form else self)

    def __len__(self) -> int:
        return int(self._ask(len))

    def __getitem__(self, key: Any) -> Any:
        return self._ask(operator.getitem, key)

    def __setitem__(self, key: Any, value: object) -> None:
        """Refuse, and say what does it.

        Raises:
            TypeError: always: the object is changed where it is.
        """
        raise TypeError(f"{self.name} is in the context: begin the cell with %%gpu to change it")

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _OWN:
            text = f"{self.name}.{name} is in the context: begin the cell with %%gpu to change it"
            raise AttributeError(text)
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """Say where it can be had.

        Raises:
            AttributeError: always: what the object has is where it is.
        """
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        if not name.startswith("_"):
            text += f": read {self.name}.{name} in a %%gpu cell, or of the copy {self.name}.get()"
        raise AttributeError(text)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._ask(list))

    def __contains__(self, value: object) -> bool:
        return bool(self._ask(operator.contains, value))

    def __lt__(self, other: Any) -> Any:
        return self._ask(operator.lt, other)

    def __le__(self, other: Any) -> Any:
        return self._ask(operator.le, other)

    def __gt__(self, other: Any) -> Any:
        return self._ask(operator.gt, other)

    def __ge__(self, other: Any) -> Any:
        return self._ask(operator.ge, other)

    __add__, __radd__ = _operators(operator.add)
    __sub__, __rsub__ = _operators(operator.sub)
    __mul__, __rmul__ = _operators(operator.mul)
    __truediv__, __rtruediv__ = _operators(operator.truediv)
    __floordiv__, __rfloordiv__ = _operators(operator.floordiv)
    __mod__, __rmod__ = _operators(operator.mod)
    __pow__, __rpow__ = _operators(operator.pow)
    __divmod__, __rdivmod__ = _operators(divmod)
    __matmul__, __rmatmul__ = _operators(operator.matmul)
    __and__, __rand__ = _operators(operator.and_)
    __or__, __ror__ = _operators(operator.or_)
    __xor__, __rxor__ = _operators(operator.xor)
    __lshift__, __rlshift__ = _operators(operator.lshift)
    __rshift__, __rrshift__ = _operators(operator.rshift)

    def __neg__(self) -> Any:
        return self._ask(operator.neg)

    def __pos__(self) -> Any:
        return self._ask(operator.pos)

    def __invert__(self) -> Any:
        return self._ask(operator.invert)

    def __abs__(self) -> Any:
        return self._ask(abs)

    def __round__(self, digits: int | None = None) -> Any:
        return self._ask(round, digits)

    def __array__(
        self,
        dtype: Any = None,
        copy: bool | None = None,  # noqa: FBT001 - NumPy's signature
    ) -> npt.NDArray[Any]:
        """Fetch it for NumPy, as np.asarray(losses) asks; blocks.

        Raises:
            ValueError: NumPy was told not to copy.
        """
        if copy is False:
            raise ValueError("an object in a context can only be copied to the notebook")
        return np.asarray(self.get(), dtype)

    def _title(self) -> str:
        held = f", {size(self.nbytes)} of device memory" if self.nbytes else ""
        lost = ", lost with its context" if self.copy is None else ", as its context left it"
        gone = lost if self._is_lost else ""
        gone = ", dropped when its device was suspended" if self.dropped else gone
        return f"{self.type} {self.name!r} on {self.device.name}{held}{gone}"

    def __repr__(self) -> str:
        return f"<ObjectRef {self._title()}: {self._resident.text}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self._title())}</p><pre>{escape(self._resident.text)}</pre>"


FOUND_THERE[ObjectRef] = ObjectRef._found_there  # noqa: SLF001 - it is of this module


def _itself(value: Any) -> Any:
    return value
