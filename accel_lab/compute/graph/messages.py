"""The messages of `graph`: record a program, make room for what it writes, launch it, time it."""

from typing import Any, ClassVar, TypeVar

from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import Operation, Spec

R = TypeVar("R")


class RecordedGraph:
    """A recorded program of a context, ready to be launched."""


class RecordGraph(
    Operation[Handle[RecordedGraph]], frozen=True, array_like=True, eq=False, tag=500
):
    """Record a program, which `gpu.graph()` writes; the answer is a handle to launch it by."""

    library: ClassVar[str] = "graph"
    dtypes: ClassVar = frozenset({""})
    body: bytes


class Reserve(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=501):
    """Make a buffer of zeros for a result that a graph will write."""

    library: ClassVar[str] = "graph"
    dtypes: ClassVar = frozenset({""})
    shape: tuple[int, ...]
    of: str

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        return Spec(self.shape, self.of)

    @property
    def dtype_key(self) -> str:
        """Nothing: a backend that makes such a result can hold it."""
        return ""


class OfGraph(Operation[R], frozen=True, array_like=True, eq=False):
    """Run a recorded program with these buffers, kernels and numbers in the places of its own."""

    library: ClassVar[str] = "graph"
    dtypes: ClassVar = frozenset({""})
    runs_user_code: ClassVar[bool] = True
    written: ClassVar[str] = "writes"
    graph: Handle[RecordedGraph]
    reads: tuple[Ref[Any], ...] = ()
    writes: tuple[AccelRef, ...] = ()
    numbers: tuple[Any, ...] = ()

    @property
    def dtype_key(self) -> str:
        """Nothing: what it is made of was looked at when it was recorded."""
        return ""


class LaunchGraph(OfGraph[None], frozen=True, array_like=True, eq=False, tag=502):
    """Run a recorded program once, as one piece of work."""


class TimeGraph(OfGraph[list[float]], frozen=True, array_like=True, eq=False, tag=503):
    """Run a recorded program once, message by message; the answer is how long each took."""
