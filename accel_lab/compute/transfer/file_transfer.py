"""`load`, `open_file` and `save` of a device: files read into the arena, and written from it."""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from accel_lab.compute.files.box import Box, Place
from accel_lab.compute.files.formats import ONLY
from accel_lab.compute.files.open_file import OpenFile, require_path
from accel_lab.compute.files.saving import Array, Outgoing
from accel_lab.compute.files.saving import save as save_arrays
from accel_lab.compute.files.stored import Stored
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.transfer.transfers import Transfers
from accel_lab.errors import InvalidArgument

Path_ = str | os.PathLike[str]


def open_file(transfers: Transfers, path: Path_, timeout_s: float) -> OpenFile:
    """Open a file whose arrays go to one device; see `Device.open_file`."""
    return OpenFile(path, partial(_send, transfers, timeout_s))


def load(transfers: Transfers, path: Path_, names: Iterable[str] | None, timeout_s: float) -> Any:
    """Load the arrays of a file; see `Device.load`."""
    with open_file(transfers, path, timeout_s) as file:
        if names is None:
            if file.refused:
                listed = ", ".join(f"{name!r}: {why}" for name, why in file.refused.items())
                text = f"{file.path} has what cannot be loaded ({listed}): give names= for the rest"
                raise InvalidArgument(text)
            if file.is_single:
                return file[ONLY].load()
            names = file
        elif isinstance(names, str):
            raise InvalidArgument(f"names= is a list of names: names=[{names!r}]")
        wanted = []
        for name in names:
            if name not in file and name not in file.refused:
                text = f"{file.path} has no {name!r}, but {', '.join(map(repr, file)) or 'nothing'}"
                raise InvalidArgument(text)
            wanted.append(file[name])
        return {array.name: array.load() for array in wanted}


def save(arrays: AccelRef | Mapping[str, AccelRef], path: Path_, timeout_s: float) -> None:
    """Write buffers to a file; see `Device.save`."""
    is_single = isinstance(arrays, AccelRef)
    named: Mapping[Any, Any] = arrays if isinstance(arrays, Mapping) else {ONLY: arrays}
    for name, ref in named.items():
        if not isinstance(ref, AccelRef) or not isinstance(name, str):
            what = f"{name!r}: {type(ref).__name__}"
            raise InvalidArgument(f"save takes an AccelRef, or a dict of them by names, not {what}")
    try:
        target = Path(path)
    except TypeError as error:
        raise InvalidArgument(f"a path is a text or a Path, not {path!r}") from error
    require_path(target)
    outgoing = {
        name: Outgoing(ref.shape, str(ref.dtype), partial(_ask, ref, timeout_s))
        for name, ref in named.items()
    }
    save_arrays(outgoing, target, is_single=is_single)


def _send(transfers: Transfers, timeout_s: float, stored: Stored, box: Box) -> AccelRef:
    parts = partial(stored.parts, box)
    return transfers.fill(box.shape, stored.dtype, parts, timeout_s, in_order=stored.in_order)


def _ask(ref: AccelRef, timeout_s: float, starts: Place, counts: Place) -> Callable[[], Array]:
    part = ref
    if counts != ref.shape:
        ends = map(int.__add__, starts, counts)
        part = ref[tuple(map(slice, starts, ends))]
    return ref.device.get(part, timeout_s=timeout_s).result
