"""What a kernel needs of the device that it is enqueued on."""

from collections.abc import Sequence
from typing import Any, Protocol


class Pipelines(Protocol):
    """What makes kernels."""

    def made(self, text: str, buffers: int) -> tuple[Any, Any]:
        """Return the pipeline of a text and the layout of its bindings."""


class Recorder(Protocol):
    """Where work is enqueued."""

    def dispatch(
        self, pipeline: Any, layout: Any, bound: Sequence[Any], groups: tuple[int, int, int]
    ) -> None:
        """Record a job."""

    def copy(self, source: Any, start: int, target: Any, place: int, nbytes: int) -> None:
        """Record a copy from one buffer to another one."""


class Target(Protocol):
    """A device."""

    @property
    def lacks(self) -> frozenset[str]:
        """The dtypes that it does not compute in."""

    @property
    def most_bound(self) -> int:
        """How many bytes a binding can have."""

    @property
    def kernels(self) -> Pipelines:
        """What makes its kernels."""

    @property
    def queue(self) -> Recorder:
        """Where its work is enqueued."""

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Allocate an array."""
