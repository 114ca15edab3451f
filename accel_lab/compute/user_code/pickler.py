"""cloudpickle for the user's functions and objects, as contexts and notebooks exchange them."""

from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import IO, Any

import cloudpickle

from accel_lab.compute.arrays import torch_interop
from accel_lab.compute.user_code import functools_pickle
from accel_lab.compute.user_code.code_pickle import CodePickle
from accel_lab.compute.user_code.slots_pickle import with_slots

FOUND_THERE: dict[type, Callable[[Any], tuple[Any, ...]]] = {}
"""How handles, by their type, are made what they stand for in a context; others get none."""


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Leaves namespaces behind, for which a persistent id has to stand.

    A function of such a namespace has it as its globals there, and its pickle no copy of some.

    Parameters:
        spaces: what is called how, by `id`.
    """

    def __init__(self, file: IO[bytes], spaces: dict[int, str], **options: Any) -> None:
        super().__init__(file, **options)
        self._spaces = spaces
        self._code = CodePickle()
        self._shared: dict[int, CellType] = {}

    def space_of(self, obj: Any) -> str | None:
        """Return what a namespace that stays behind is called; None of anything else."""
        return self._spaces.get(id(obj)) if type(obj) is dict else None

    def note(self, function: FunctionType) -> None:
        """Hear of a function whose globals stay behind."""

    def reducer_override(self, obj: Any) -> Any:
        """Return how to make an object, as `pickle` says."""
        kind = type(obj)
        there = FOUND_THERE[kind](obj) if kind in FOUND_THERE else None
        found = there or torch_interop.reduced(obj) or functools_pickle.reduced(obj)
        if found is not None:
            return found
        if kind.__name__ == "TypeAliasType" and obj.__module__ == "__main__":  # else by its name
            return _aliased, (kind, obj.__name__, obj.__value__, obj.__type_params__)
        if kind is CodeType:
            return self._code.reduced(obj, *self.dispatch_table[CodeType](obj))
        if id(obj) in self._shared:
            return CellType, ()  # its functions fill it, once they are there
        made = super().reducer_override(obj)
        return made if made is NotImplemented else self._as_here(obj, made)

    def _as_here(self, obj: Any, made: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return how to make what cloudpickle alone would make otherwise than it is here."""
        if isinstance(obj, type):
            return with_slots(obj, made)
        if type(obj) is not FunctionType:
            return made
        return self._among_names(obj, self._with_cells(obj, made))

    def _with_cells(self, function: FunctionType, made: tuple[Any, ...]) -> tuple[Any, ...]:
        """Have functions share the variables of functions around them, as they do here.

        cloudpickle gives each function cells of its own.
        """
        if not function.__closure__:
            return made
        make, (*rest, _), (state, slots), *more = made
        self._shared |= {id(cell): cell for cell in function.__closure__}
        slots["__closure__"] = tuple(map(_copied, function.__closure__))
        return make, (*rest, function.__closure__), (state, slots), *more

    def _among_names(self, function: FunctionType, made: tuple[Any, ...]) -> tuple[Any, ...]:
        """Have a function look up its globals in the namespace there, if that stays behind."""
        if id(function.__globals__) not in self._spaces:
            return made
        self.note(function)
        make, (code, _, *rest), (state, slots), *more = made
        slots["__globals__"] = {}
        return make, (code, function.__globals__, *rest), (state, slots), *more


def _copied(cell: CellType) -> CellType:
    try:
        return CellType(cell.cell_contents)
    except ValueError:  # nothing is in it
        return CellType()


def _aliased(kind: type, name: str, value: Any, parameters: tuple[Any, ...]) -> Any:
    """Make what a `type` statement of `__main__` does; it is of the module whose code makes it."""
    there = {"__name__": "__main__", "make": kind, "given": (name, value), "of": parameters}
    return eval("make(*given, type_params=of)", there)  # noqa: S307 - as it stands
