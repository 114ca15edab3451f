"""The handle of a buffer in the notebook, which is also the answer of the message that makes it.

`AccelRef` never holds a pointer. It names a device, an id and the generation in which it was
born; the table of the current context process decides whether the id still means memory. What it
has in common with the handle of what is no array (`Handle`) is a `Ref`.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from accel_lab.actor.reply import DONE, FAILED, PENDING, Pump, Reply, told
from accel_lab.compute.arrays.dtypes import itemsize
from accel_lab.compute.arrays.named_dtype import NamedDType, named
from accel_lab.compute.message.operators import Operators
from accel_lab.display.buffer_number import short
from accel_lab.display.sizes import size
from accel_lab.display.summary import as_html
from accel_lab.errors import AccelError, StaleRef
from accel_lab.uncopied import Uncopied

if TYPE_CHECKING:
    from accel_lab.compute.device import Device
    from accel_lab.compute.message.builtin import Write
    from accel_lab.compute.message.durability import Durability


R = TypeVar("R")

FREED = 0
"""The generation of a handle whose buffer was freed: no context ever has it."""


class Handles:
    """Counts, in any thread, the handles that have become useless: failed, or freed.

    Who relies on what was known of handles looks again when there are more of these.
    """

    lost = 0


class AccelToken(msgspec.Struct, frozen=True):
    """What tells which buffer a ref is of: a name for it, not a hold on it."""

    device: str
    id: int
    generation: int
    shape: tuple[int, ...] | None
    dtype: str | None


class Owner(Uncopied):
    """One buffer's hold on device memory, shared by every handle of it.

    The finalizer may run in any thread at any moment, so it only appends to a deque that the
    device empties with its next batch.
    """

    __slots__ = ("freed", "id")

    def __init__(self, id_: int, freed: "deque[int]") -> None:
        self.id = id_
        self.freed = freed

    def release(self) -> None:
        """Let go now; the second time nothing happens."""
        self.freed.append(self.id)
        self.freed = deque(maxlen=0)

    def __del__(self) -> None:
        self.freed.append(self.id)


class Borrowed(Owner):
    """No hold at all: names a buffer that others own."""

    __slots__ = ()

    def __del__(self) -> None:
        """Free nothing."""


_NOBODY = Borrowed(0, deque(maxlen=0))


class Ref(Reply[R]):
    """What a device has for the notebook, usable as an operand before it has been made.

    Its memory is freed when the last handle of it is garbage-collected.
    """

    # The last two are a `Handle`'s; classes with slots of their own could not have one heir.
    __slots__ = ("device", "generation", "id", "nbytes_made", "of", "owner")

    device: "Device"
    known: bool
    """Whether its shape and dtype are known by now; never of what is no array."""
    waits = False
    """Whether it is to be made when somebody first uses it: of a session that was opened again."""

    def __init__(
        self, pump: Pump, origin: object, device: "Device", owner: Owner, generation: int
    ) -> None:
        self._state = PENDING
        self._value = None
        self._error = None
        self._waiters = None
        self._pump = pump
        self.origin = origin
        self.library = ""
        self.device = device
        self.owner = owner
        self.id = owner.id
        self.generation = generation

    @property
    def is_valid(self) -> bool:
        """Whether the buffer is (or is about to be) in the current generation; never blocks."""
        device = self.device
        return device.state != "stopped" and not self.failed and device.holds(self)

    @property
    def durability(self) -> "Durability":
        """What a fault would do to it: `replayable`, `checkpointed` or `lost on fault`.

        A str with the reason in `.why`. Blocks to read what was recorded: for a moment, or, of
        100 000 messages and more, for a second.
        """
        return self.device.durability(self)

    def free(self) -> None:
        """Give the memory back after all that was sent before; does not block.

        It goes with the next message, within a second at the latest. Without this it goes with the
        last handle. What uses the buffer later raises StaleRef, and no fault brings it back; views
        of it keep their memory.
        """
        self.owner.release()
        self.generation = FREED
        Handles.lost += 1

    def fail(self, error: AccelError) -> bool:
        """Complete with a failure; return whether somebody waits, who is told of it."""
        waited = super().fail(error)
        Handles.lost += 1
        return waited

    def let_go(self) -> None:
        """Give the buffer up as the last handle of it does; for one that only its request has."""
        self.generation = FREED  # whoever finds it, as by a weak reference, learns that
        self.owner = _NOBODY

    def take_back(self, error: AccelError) -> Callable[[], object]:
        """Fail, and hold the memory until the request that writes it is over."""
        held = [self.owner]
        self.owner = Owner(self.id, deque(maxlen=0))
        self.reject(error)
        return held.clear

    def _outcome(self) -> Any:
        if self._error is not None:
            raise self._error.take()
        return self

    def passed_on(self) -> Any:
        """Return this handle itself."""
        return self

    @property
    def standing(self) -> str:
        """How it is now: `made`, `in flight`, or why it is of no use; never blocks."""
        if self._state == FAILED:
            return f"failed: {type(self._error).__name__}"
        if self.is_valid:
            return "made" if self._state == DONE else "in flight"
        if self.device.state == "stopped":
            return "closed"
        if self.generation == FREED:
            return "freed"
        if self.generation == self.device.generation:
            return "dropped when the device was suspended"
        return f"stale: the device is at generation {self.device.generation}"

    @property
    def label(self) -> str:
        """Its number and what it is, as `#3 float32[8, 8]`; never blocks."""
        return f"#{short(self.id)} {self._what()}"

    def learn(self, shape: tuple[int, ...], dtype: str) -> None:
        """Take in what only the context could tell."""
        raise NotImplementedError

    def _what(self) -> str:
        """Say what it is; never blocks."""
        raise NotImplementedError

    def _where(self, what: str) -> Iterator[tuple[str, str]]:
        """Give where it is and how it is as (what, text); never blocks."""
        yield "device", f"{self.device.name}, {what} {short(self.id)}"
        if self.generation != FREED:
            yield "generation", self._born()
        yield "state", self.standing
        if self.is_valid:
            durability = self.device.durability_now(self)
            waits = "not known yet, .durability waits for it"
            yield "durability", f"{durability}: {durability.why}" if durability else waits

    def _told(self, called: str, what: str) -> str:
        """Return it on one line."""
        born = "" if self.generation == FREED else f" of generation {self._born()}"
        where = f"{self.device.name}, {what} {short(self.id)}{born}"
        return f"<{called} {self._what()} on {where}, {self.standing}>"

    def _born(self) -> str:
        now = self.device.generation
        again = f", made again in {now}" if self.is_valid and now != self.generation else ""
        return f"{self.generation}{again}"


class AccelRef(Ref["AccelRef"], Operators):
    """A buffer on a device, usable as an operand before it has been computed.

    `await ref` or `ref.result()` waits for the computation and returns the ref itself; `ref.get()`
    fetches the contents. It has the operators of NumPy's arrays, see `Operators`; `==` is one of
    them, so handles are compared with `is`. Its memory is freed when the last handle is
    garbage-collected.
    """

    _instead = (
        "it stands for a buffer of a system of this process: fetch the array with get(), and "
        "pickle that"
    )
    # `shape` and `dtype` are unset while only the context can tell them; see `__getattr__`.
    __slots__ = ("_dtype", "_shape", "known")

    known: bool
    # Nobody sets them: `x.shape = …` would not change what is on the device.
    shape: tuple[int, ...] = property(attrgetter("_shape"))  # type: ignore[assignment]
    dtype: NamedDType = property(attrgetter("_dtype"))  # type: ignore[assignment]

    def __init__(
        self,
        pump: Pump,
        origin: object,
        device: "Device",
        owner: Owner,
        generation: int,
        shape: tuple[int, ...] | None,
        dtype: str | None,
    ) -> None:
        # Not through `super()`, which would cost each message a call.
        self._state = PENDING
        self._value = None
        self._error = None
        self._waiters = None
        self._pump = pump
        self.origin = origin
        self.library = ""
        self.device = device
        self.owner = owner
        self.id = owner.id
        self.generation = generation
        if shape is None or dtype is None:
            self.known = False
        else:
            self.known = True
            self._shape = shape
            self._dtype = dtype if type(dtype) is NamedDType else named(dtype)

    def __getattr__(self, name: str) -> Any:
        """Wait for a shape or dtype that only the context can tell."""
        if name not in ("shape", "dtype"):
            text = f"{type(self).__name__!r} object has no attribute {name!r}{_elsewhere(name)}"
            raise AttributeError(text)
        self.result()
        if not self.known:
            text = f"the result of buffer {short(self.id)} is not an array, so it has no {name}"
            raise StaleRef(text)
        return object.__getattribute__(self, name)

    def learn(self, shape: tuple[int, ...], dtype: str) -> None:
        """Take in a shape that only the context could tell."""
        self._shape = shape
        self._dtype = named(dtype)
        self.known = True

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self.size * itemsize(self.dtype)

    @property
    def token(self) -> AccelToken:
        """The name of this buffer, as plain data."""
        shape, dtype = (self.shape, self.dtype) if self.known else (None, None)
        name = None if dtype is None else str(dtype)
        return AccelToken(self.device.name, self.id, self.generation, shape, name)

    @property
    def last_write(self) -> "Reply[Write]":
        """What wrote it last, of all that was sent until now: stream, message, place there.

        Its context answers whatever its streams are at, so nothing waits for the write itself.
        `x.last_write.result()` is a `Write`.
        """
        return self.device.last_write(self)

    def _what(self) -> str:
        if not self.known:
            return "shape unknown yet"
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    def _lines(self) -> Iterator[tuple[str, str]]:
        """Give what is worth knowing of it as (what, text); never blocks."""
        if self.known:
            yield "shape", f"({', '.join(map(str, self.shape))})"
            yield "dtype", self.dtype
            yield (
                "size",
                f"{self.size:,} element{'' if self.size == 1 else 's'}, {size(self.nbytes)}",
            )
        else:
            yield "shape", "unknown until the device answers"
        yield from self._where("buffer")

    def __repr__(self) -> str:
        return self._told("AccelRef", "buffer")

    def _repr_html_(self) -> str:
        return self._drawn()["text/html"]

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Give IPython both forms with values that are fetched once; see `Device.first_values`.

        IPython asks for this of what a cell displays, and not of what is in a container.
        """
        return self._drawn()

    def _drawn(self) -> dict[str, str]:
        values = self.device.first_values(self) if self.known and self.is_valid else []
        text = "\n".join((repr(self), *(f"  {what}: {value}" for what, value in values)))
        return {
            "text/plain": text,
            "text/html": as_html(f"AccelRef {self.label}", (*self._lines(), *values)),
        }


def _elsewhere(name: str) -> str:
    """Say where NumPy's and CuPy's arrays have what handles have not."""
    if name.startswith("_") or not hasattr(np.ndarray, name):
        return ""
    use = f"x.{name}(…)" if callable(getattr(np.ndarray, name)) else f"x.{name}"
    return f", which arrays have: use it in a %%gpu cell, or as gpu.run(lambda x: {use}, ref)"


class RunRef(AccelRef):
    """The answer of `run`: a buffer if the function returned an array, else its value."""

    __slots__ = ()

    def copy(self) -> AccelRef:
        """Return a new buffer with the same elements.

        Raises:
            TypeError: its answer has come, and is no array.
        """
        if self._state == DONE and not self.known:
            text = "this result is not an array: copy what .result() returns"
            raise TypeError(text)
        return super().copy()

    def resolve(self, value: Any = None) -> None:
        """Complete with the function's value, or with None when it was an array."""
        self._value = value
        super().resolve(value)

    def _outcome(self) -> Any:
        super()._outcome()
        return self if self.known else self._look()

    def passed_on(self) -> Any:
        """Return this handle where it is a buffer's, else the value."""
        return self if self.known else self._value

    def __repr__(self) -> str:
        if self._state == DONE and not self.known:
            return f"<RunRef of {self.device.name}: {self._look()!r}>"
        return super().__repr__()

    def _drawn(self) -> dict[str, str]:
        if self._state != DONE or self.known:
            return super()._drawn()
        lines = (
            ("device", self.device.name),
            ("state", "answered"),
            ("answer", told(self._look())),
        )
        html = as_html("RunRef: the answer of a function, which is no array", lines)
        return {"text/plain": repr(self), "text/html": html}
