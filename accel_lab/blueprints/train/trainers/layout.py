"""What each rank has of parameters and slots: all of them, where nothing else is said."""

from abc import ABC
from collections.abc import Sequence

from accel_lab.blueprints.train.optimizers.optimizer import SEPARATOR, Buffers
from accel_lab.blueprints.train.snapshots.snapshot import Array
from accel_lab.compute.message.buffer import AccelRef


class Layout(ABC):  # noqa: B024 - what it says holds for who has all
    """Says how state is cut among ranks, and how it becomes whole again."""

    def cut(self, rank: int, name: str, whole: Array) -> Array | None:
        """Return a rank's part of a parameter or slot; None where it has nothing of it."""
        del rank, name
        return whole

    def is_kept(self, rank: int, name: str) -> bool:
        """Whether a rank's part is one of those that are joined to the whole."""
        del name
        return rank == 0

    def joined(self, name: str, parts: Sequence[Array]) -> Array:
        """Return the whole of the parts that are kept; any thread."""
        del name
        return parts[0]

    def own(self, rank: int, state: Buffers) -> Buffers:
        """Return the parameters that a rank updates."""
        del rank
        return {name: ref for name, ref in state.items() if SEPARATOR not in name}

    def counted(self, rank: int, gradients: Buffers) -> Sequence[AccelRef]:
        """Return those of a rank's gradients that it counts for the norm of all."""
        del rank
        return list(gradients.values())

    def total(self, numbers: Sequence[AccelRef]) -> Sequence[AccelRef]:
        """Return the sum of what the ranks have counted, on each rank."""
        return numbers

    def agreed(self, flags: Sequence[AccelRef]) -> AccelRef:
        """Return whether all ranks say so."""
        return flags[0]

    def shared(self, states: list[Buffers]) -> list[Buffers]:
        """Return the states, when each rank has updated what it owns."""
        return states
