"""The pickle of what cells have left: their names and objects, in which each array is a number.

The arrays themselves are kept apart, as memory; so objects share afterwards what they have shared.
"""

import io
from collections.abc import Callable
from typing import Any

from accel_lab.compute.arrays import torch_interop
from accel_lab.compute.cells.workspace import Kept
from accel_lab.compute.cells.workspace_registry import Workspaces
from accel_lab.compute.user_code.pickler import Pickler
from accel_lab.compute.wire import main_classes


def pickled(value: Any, number: Callable[[Any], int], arrays: Any, workspaces: Workspaces) -> bytes:
    """Pickle namespaces of cells, or something in them.

    Parameters:
        number: takes an array and returns the number that stands for it.
        arrays: the module whose arrays are the device's.
        workspaces: those whose names stay behind.

    Raises:
        Exception: what the user's own classes raise.
    """
    file = io.BytesIO()
    _Pickler(file, number, arrays, workspaces).dump(value)
    return file.getvalue()


def bring_back(data: bytes, arrays: dict[int, Any], workspaces: Workspaces) -> dict[int | str, str]:
    """Have the cells' names again; all of them are lost when one of them cannot be."""
    try:
        kept: dict[str, Kept] = _Unpickler(data, arrays, workspaces).load()
    except Exception as error:  # noqa: BLE001 - the user's own classes
        workspaces.spaces().clear()
        return {"%%gpu": f"its objects could not be made again: {type(error).__name__}: {error}"}
    for name, state in kept.items():
        workspaces.of(name).take_up(state)
    return {}


class _Pickler(Pickler):
    """Pickles objects of cells: arrays by number, and the cells' names as those there will be."""

    def __init__(
        self,
        file: io.BytesIO,
        number: Callable[[Any], int],
        arrays: Any,
        workspaces: Workspaces,
    ) -> None:
        spaces = {id(one.names): name for name, one in workspaces.spaces().items()}
        super().__init__(file, spaces, protocol=5)
        self._number = number
        self._arrays = arrays
        self._numbers: dict[int, int] = {}

    def persistent_id(self, obj: Any) -> Any:
        kind = type(obj)
        if kind is self._arrays.ndarray and not obj.dtype.hasobject:
            if id(obj) not in self._numbers:
                self._numbers[id(obj)] = self._number(obj)
            return self._numbers[id(obj)]
        if kind is dict:
            return self.space_of(obj)
        found = torch_interop.storage_of(obj, self._arrays)
        if found is None:
            return None
        address, dtype, memory = found
        if address not in self._numbers:
            self._numbers[address] = self._number(memory())
        return self._numbers[address], dtype


class _Unpickler(main_classes.Unpickler):
    def __init__(self, data: bytes, arrays: dict[int, Any], workspaces: Workspaces) -> None:
        super().__init__(io.BytesIO(data))
        self._arrays = arrays
        self._workspaces = workspaces
        self._aliasing: dict[int, Any] = {}

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, str):
            return self._workspaces.of(pid).names
        if isinstance(pid, int):
            return self._arrays[pid]
        number, dtype = pid
        if number not in self._aliasing:
            self._aliasing[number] = torch_interop.storage_on(self._arrays[number])
        return torch_interop.typed(self._aliasing[number], dtype)
