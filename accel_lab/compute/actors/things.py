"""Copies of what is no array: to the host by its `checkpoint`, and back by its library's `restore`.

A checkpoint is bytes, or arrays of the device in a dict or a tuple; the arrays are copied as any.
"""

import pickle
from typing import Any, NamedTuple

import numpy as np

from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.held_objects import Kept
from accel_lab.compute.execution.launch import Launch
from accel_lab.compute.message.buffer import Ref
from accel_lab.display.buffer_number import short
from accel_lab.errors import InvalidArgument


class Saved(NamedTuple):
    """What a thing was made of.

    Attributes:
        nbytes: how much it takes on the device; None where it tells that itself.
    """

    made_of: Any
    nbytes: int | None


def save(launch: Launch, ref: Ref[Any]) -> Saved:
    """Enqueue the copy of a thing to the host; it is whole when the launch is done.

    Raises:
        InvalidArgument: it has no `checkpoint`, or that returns something else.
    """
    assert isinstance(ref, Buffer)
    thing, kept = launch.read(ref), ref.storage
    checkpoint = getattr(thing, "checkpoint", None)
    if type(kept) is not Kept or not callable(checkpoint):
        text = (
            f"{ref.dtype} #{short(ref.id)} has no checkpoint: after a loss it is rebuilt by its "
            "messages; a library gives what it keeps a method checkpoint() to cut that short"
        )
        raise InvalidArgument(text)
    found = checkpoint()
    if isinstance(found, bytes):
        made_of: Any = found
    elif isinstance(found, dict):
        made_of = {name: _to_host(launch, one) for name, one in found.items()}
    elif isinstance(found, tuple):
        made_of = tuple([_to_host(launch, one) for one in found])
    else:
        text = f"the checkpoint of a {ref.dtype} is bytes, or arrays in a dict or tuple"
        raise InvalidArgument(f"{text}, not {found!r}")
    return Saved(made_of, kept.given_nbytes)


def _to_host(launch: Launch, array: Any) -> Any:
    backend = launch.context.backend
    array = backend.arrays.ascontiguousarray(array)
    if isinstance(array, np.ndarray) and backend.address(array) is None:
        return array.copy()  # of a thing that the host has made in the device's place
    data = backend.host_memory(array.nbytes)
    backend.download(array, data)
    launch.hold(array)
    return np.frombuffer(data, array.dtype).reshape(array.shape)


def restore(launch: Launch, library: str, kind: str, data: bytes) -> None:
    """Make a thing of what was saved, by its library.

    Raises:
        LibraryError: that cannot.
    """
    saved: Saved = pickle.loads(data)  # noqa: S301 - our own
    made_of, context = saved.made_of, launch.context
    fallback = context.fallback
    if fallback is not None and library not in context.backend.libraries:
        actor = fallback.actor(library)  # whose arrays are NumPy's
        launch.restored(actor.restore(kind, made_of), saved.nbytes, kind, library)
        return
    if isinstance(made_of, dict):
        made_of = {name: _to_device(launch, one) for name, one in made_of.items()}
    elif isinstance(made_of, tuple):
        made_of = tuple([_to_device(launch, one) for one in made_of])
    actor = context.actors[library]
    launch.restored(actor.restore(kind, made_of), saved.nbytes, kind, library)


def _to_device(launch: Launch, array: Any) -> Any:
    backend = launch.context.backend
    made = backend.arrays.empty(array.shape, array.dtype)
    data = array.reshape(-1).view(np.uint8)
    backend.upload(made, 0, data)
    launch.hold(data)
    return made
