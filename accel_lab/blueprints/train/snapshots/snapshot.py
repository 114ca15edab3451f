"""What there was after a step, and what keeps it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_lab.actor.reply import Reply
from accel_lab.blueprints.train.faults import is_fault
from accel_lab.errors import AccelError

Array: TypeAlias = npt.NDArray[Any]


class Snapshot(NamedTuple):
    """What there was after a step.

    Attributes:
        step: how many steps were done.
        arrays: parameters, slots, and the losses of all steps, by name.
        facts: numbers beside them.
    """

    step: int
    arrays: dict[str, Array]
    facts: dict[str, float]


class Asked(NamedTuple):
    """A snapshot whose arrays are on their way.

    Attributes:
        step: how many steps were done.
        arrays: those that are there.
        replies: those that were asked for, each in parts.
        facts: numbers beside them.
        joined: returns the whole of an array, by its name, of its parts.
    """

    step: int
    arrays: Mapping[str, Array]
    replies: Mapping[str, Sequence[Reply[Array]]]
    facts: dict[str, float]
    joined: Callable[[str, Sequence[Array]], Array]

    def arrived(self) -> Snapshot | None:
        """Wait for the arrays; None where a fault took one.

        Raises:
            AccelError: something else went wrong.
        """
        found = dict(self.arrays)
        try:
            for name, parts in self.replies.items():
                found[name] = self.joined(name, [np.asarray(one.result()) for one in parts])
        except AccelError as error:
            if not is_fault(error):
                raise
            return None
        return Snapshot(self.step, found, self.facts)


class Keeper(Protocol):
    """Keeps snapshots."""

    @property
    def last(self) -> int | None:
        """The step of the newest one that is whole."""

    def require_own(self, step: int) -> None:
        """Refuse who is at this step, where another run has kept later ones."""

    def take(self, asked: Asked) -> None:
        """Keep one; does not wait for its arrays."""

    def newest(self) -> Snapshot | None:
        """Return the last one that is whole; waits for those on their way."""

    def flush(self) -> None:
        """Wait until all that was taken is kept."""
