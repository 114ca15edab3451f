"""The `__constant__` and `__device__` variables of a kernel's source, as buffers.

What has a buffer is copied into the variable before a launch and, but for a `__constant__`, out of
it behind the launch. So its value is that of the buffer: it outlives the context, another kernel
can have the same, and it is set and read like any buffer.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.stream import Stream
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import describe
from accel_lab.libraries.jit.comments import without_comments

if TYPE_CHECKING:
    from accel_lab.compute.device import Device

_ALIGNMENT = re.compile(r"\b(?:__align__|alignas)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)")
_DECLARATION = re.compile(
    r"\b__(?P<kind>constant|device|managed)__(?P<rest>(?:[^(){};=\[\]]|\[[^\]]*\])*)[;={]"
)
_EXTENTS = re.compile(r"\[[^\]]*\]")
_NAME = re.compile(r"(?P<name>[A-Za-z_]\w*)$")


class Place(NamedTuple):
    """Where a variable is on the device."""

    address: int
    nbytes: int
    writable: bool = True


class Holder(Protocol):
    """A loaded kernel, as far as its variables go.

    Attributes:
        name: the kernel's.
    """

    name: str

    def place(self, variable: str) -> Place | None:
        """Find a variable; None if the kernel's code has none of this name."""

    def copy(self, to: int, source: int, nbytes: int, stream: Any) -> None:
        """Copy memory of the device, in the order of a stream."""

    def address_of(self, array: Any) -> int:
        """Return where an array begins."""


class Globals(MutableMapping[str, AccelRef]):
    """The variables of a source or a module that have buffers; kernels may share one of these.

    To set one, give it a buffer or an array, which is copied to the device. What it answers with
    is the buffer: `get()` it for the value.

    Parameters:
        declared: the variables by name, and whether each is a constant; None where nothing tells.
            A function is called for them when the first is set.
    """

    def __init__(
        self,
        device: "Device",
        declared: Mapping[str, bool] | Callable[[], Mapping[str, bool] | None],
    ) -> None:
        self.device = device
        self._declared: Any = declared
        self._refs: dict[str, AccelRef] = {}
        self.given: tuple[tuple[str, ...], tuple[str, ...], tuple[AccelRef, ...]] = ((), (), ())

    @property
    def declared(self) -> Mapping[str, bool] | None:
        """The variables there are, and whether each is a constant; None where nothing tells."""
        if callable(self._declared):
            self._declared = self._declared()
        declared: Mapping[str, bool] | None = self._declared
        return declared

    def __setitem__(self, name: str, value: Any) -> None:
        """Give a variable a buffer.

        Raises:
            InvalidArgument: the source declares no such variable.
        """
        declared = self.declared
        if declared is not None and name not in declared:
            known = ", ".join(declared) or "none"
            text = (
                f"the source has no __constant__ or __device__ variable {name!r}; it has: {known}"
            )
            raise InvalidArgument(text)
        ref = value if isinstance(value, AccelRef) else self.device.put(np.asarray(value))
        self._refs[name] = ref
        self._sort()

    def __getitem__(self, name: str) -> AccelRef:
        """Return the buffer of a variable; KeyError if it has none."""
        return self._refs[name]

    def __delitem__(self, name: str) -> None:
        """Leave a variable to the kernel's own memory again."""
        del self._refs[name]
        self._sort()

    def __iter__(self) -> Iterator[str]:
        return iter(self._refs)

    def __len__(self) -> int:
        return len(self._refs)

    def _sort(self) -> None:
        declared = self.declared or {}
        constants = tuple(name for name in self._refs if declared.get(name))
        variables = tuple(name for name in self._refs if not declared.get(name))
        refs = tuple(self._refs[name] for name in (*constants, *variables))
        self.given = constants, variables, refs


def declared_in(texts: Iterable[str]) -> dict[str, bool]:
    """Return the variables that C++ declares outside functions; whether each is a constant."""
    found: dict[str, bool] = {}
    for text in texts:
        code = _ALIGNMENT.sub("", without_comments(text))
        for one in _DECLARATION.finditer(code):
            constant = one["kind"] == "constant" or "__constant__" in one["rest"]
            for part in _EXTENTS.sub("", one["rest"]).split(","):
                named = _NAME.search(part.strip())
                if named is not None:
                    found[named["name"]] = constant
    return found


def bind(
    holder: Holder,
    names: Mapping[str, bool],
    refs: Iterable[AccelRef],
    stream: Stream,
) -> Callable[[], None] | None:
    """Copy buffers into the variables; return what copies them back, behind the launch.

    Parameters:
        names: the variables in the order of their buffers, and whether each is a constant.

    Raises:
        InvalidArgument: a buffer is of another size than its variable.
    """
    backs: list[tuple[int, int, int]] = []
    moves: list[tuple[int, int, int]] = []
    for (name, constant), ref in zip(names.items(), refs, strict=True):
        assert isinstance(ref, Buffer)
        assert ref.storage is not None
        place = holder.place(name)
        if place is None:  # another kernel of the source has a use for it
            continue
        _require(holder.name, name, place, ref)
        address = holder.address_of(ref.array)
        moves.append((place.address, address, place.nbytes))
        if constant:
            ref.storage.read_on(stream)
        else:
            ref.storage.write_on(stream)
            backs.append((address, place.address, place.nbytes))
    for to, source, nbytes in moves:
        holder.copy(to, source, nbytes, stream.native)

    def back() -> None:
        for to, source, nbytes in backs:
            holder.copy(to, source, nbytes, stream.native)

    return back if backs else None


def _require(kernel: str, name: str, place: Place, ref: Buffer) -> None:
    if not place.writable:
        raise InvalidArgument(f"{kernel}: the variable {name} is const, and cannot be set")
    if ref.array.nbytes != place.nbytes or not ref.array.flags.c_contiguous:
        gaps = "" if ref.array.flags.c_contiguous else "a view with gaps of "
        raise InvalidArgument(
            f"{kernel}: the variable {name} has {place.nbytes} bytes, and its buffer is "
            f"{gaps}{describe(ref)}, {ref.array.nbytes} bytes"
        )
