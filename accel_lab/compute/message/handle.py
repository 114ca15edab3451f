"""The handle of what is no array: a kernel, a plan, a graph, a state, a cache.

A library declares what it is of in its messages' file, as `class RnnState: "..."`, answers with it,
`class MakeState(Operation[Handle[RnnState]])`, and takes it, `state: Handle[RnnState]`. On the wire
and in the record it is an id like a buffer's. In a context the thing itself lies in the table.
"""

import typing
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

import numpy as np

from accel_lab.actor.reply import Pump
from accel_lab.compute.message.buffer import AccelRef, Owner, Ref
from accel_lab.compute.message.operators import Operators
from accel_lab.display.buffer_number import short
from accel_lab.display.sizes import size
from accel_lab.display.summary import as_html
from accel_lab.errors import NotAnArray

T = TypeVar("T")


class Handle(Ref["Handle[T]"], Generic[T]):
    """What a device has that is no array, usable as an operand before it is made.

    `await handle` or `handle.result()` waits until it is made, and returns the handle itself. It is
    closed, and its memory freed, when the last handle of it is garbage-collected.

    Attributes:
        of: the class that its library declares for it.
        nbytes_made: how large it was when it was made; None before.
    """

    _instead = "it stands for what is on a device: make another where you need one"

    __slots__ = ()

    of: type[T]
    nbytes_made: int | None
    known = False

    def __init__(
        self,
        pump: Pump,
        origin: object,
        device: Any,
        owner: Owner,
        generation: int,
        of: type[T],
    ) -> None:
        super().__init__(pump, origin, device, owner, generation)
        self.of = of
        self.nbytes_made = None

    def learn(self, shape: tuple[int, ...], dtype: str) -> None:  # noqa: ARG002 - see `Ref`
        """Take in how large it is, and whether it has to be closed: told in place of a shape."""
        self.nbytes_made, closes = shape
        if closes:
            self.device.requests.handles.has_closing = True

    @property
    def kind(self) -> str:
        """What it is, as `RnnState`."""
        return self.of.__name__

    @property
    def said(self) -> Any:
        """What the context has told of it when it was made, as a kernel's limits."""
        return self._value

    def _what(self) -> str:
        return self.kind

    def _lines(self) -> Iterator[tuple[str, str]]:
        """Give what is worth knowing of it as (what, text); never blocks."""
        yield "kind", f"{self.kind} of {self.library}" if self.library else self.kind
        nbytes = self.nbytes_made
        yield "size", "not known yet" if nbytes is None else f"{size(nbytes)} when it was made"
        yield from self._where("handle")

    def __repr__(self) -> str:
        return self._told("Handle", "handle")

    def _repr_html_(self) -> str:
        return as_html(f"Handle {self.label}", self._lines())

    if not TYPE_CHECKING:  # type checkers refuse these by themselves

        def __getattr__(self, name: str) -> NoReturn:
            """Say what it is where an array's attributes are asked for.

            Raises:
                NotAnArray: always.
            """
            if name.startswith("_") or not (hasattr(AccelRef, name) or hasattr(np.ndarray, name)):
                raise NotAnArray(f"{self._said_of_it()}; it has no attribute {name!r}")
            raise NotAnArray(f"{self._said_of_it()}, so it has no {name}; {_USE}")

    def _said_of_it(self) -> str:
        return f"{self.kind} #{short(self.id)} of {self.device.name} is no array"


_USE = "give it to the functions of its library, or to gpu.run(function, handle)"


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(self: Handle[Any], *_: object) -> NoReturn:
        text = f"{self._said_of_it()}, so {name} means nothing to it; {_USE}"
        raise NotAnArray(text)

    refuse.__name__ = name
    return refuse


# `==` tells whether two are the same handle, as for any object.
_KEPT = frozenset(("__eq__", "__ne__", "__hash__"))
for _name, _method in vars(Operators).items():
    if _name.startswith("__") and callable(_method) and _name not in _KEPT:
        setattr(Handle, _name, _refusing(_name))


def kind_of(hint: Any) -> type[Any] | None:
    """Return what a type is a handle of: `RnnState` of `Handle[RnnState]`.

    `Ref` stands for `Ref[Any]`, a handle of anything or a buffer. None of other types.
    """
    origin = typing.get_origin(hint)
    of: type[Any] | None = typing.get_args(hint)[0] if origin is Handle else None
    return Ref if origin is Ref else of


def fits(value: object, of: type[Any]) -> bool:
    """Whether something is what `kind_of` says."""
    if of is Ref:
        return isinstance(value, Ref)
    return type(value) is Handle and value.of is of


def is_ref(hint: Any) -> bool:
    """Whether this is what an operand or a result is: a buffer, or a handle."""
    return hint is AccelRef or typing.get_origin(hint) in (Handle, Ref)
