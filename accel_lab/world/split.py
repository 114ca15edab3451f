"""A world cut into others, in which each rank is once: rows or columns of a grid, or by colour."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import OWN_TIMEOUT
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.collective.messages import Reduction
from accel_lab.world.sharded import Sharded

if TYPE_CHECKING:
    from accel_lab.world.world import World


class Split:
    """Worlds that do the same operation at once, each on its own ranks.

    Its operations take and return arrays of all ranks of the whole world.

    Attributes:
        whole: the world that was cut.
        worlds: the parts.
    """

    def __init__(self, whole: "World", worlds: Sequence["World"]) -> None:
        self.whole = whole
        self.worlds = tuple(worlds)

    def all_reduce(
        self,
        x: Sharded | Sequence[AccelRef],
        op: Reduction = "sum",
        *,
        scale: float | None = None,
        timeout_s: float | None = OWN_TIMEOUT,
    ) -> Sharded:
        """Reduce within each part, as `World.all_reduce`."""
        return self._each(
            x, lambda world, mine: world.all_reduce(mine, op, scale=scale, timeout_s=timeout_s)
        )

    def all_gather(
        self, x: Sharded | Sequence[AccelRef], *, timeout_s: float | None = OWN_TIMEOUT
    ) -> Sharded:
        """Join within each part, as `World.all_gather`."""
        return self._each(x, lambda world, mine: world.all_gather(mine, timeout_s=timeout_s))

    def reduce_scatter(
        self,
        x: Sharded | Sequence[AccelRef],
        op: Reduction = "sum",
        *,
        scale: float | None = None,
        timeout_s: float | None = OWN_TIMEOUT,
    ) -> Sharded:
        """Reduce and cut within each part, as `World.reduce_scatter`."""
        return self._each(
            x, lambda world, mine: world.reduce_scatter(mine, op, scale=scale, timeout_s=timeout_s)
        )

    def all_to_all(
        self, x: Sharded | Sequence[AccelRef], *, timeout_s: float | None = OWN_TIMEOUT
    ) -> Sharded:
        """Exchange within each part, as `World.all_to_all`."""
        return self._each(x, lambda world, mine: world.all_to_all(mine, timeout_s=timeout_s))

    def close(self) -> None:
        """Close the parts; the whole world stays."""
        for world in self.worlds:
            world.close()

    def _each(
        self,
        x: Sharded | Sequence[AccelRef],
        call: Callable[["World", list[AccelRef]], Sharded],
    ) -> Sharded:
        """Send each part its call, and return the handles in the order of the whole."""
        refs = x.refs if isinstance(x, Sharded) else tuple(x)
        by_device = {ref.device: ref for ref in refs}
        missing = [one.name for one in self.whole.devices if one not in by_device]
        if missing:
            raise InvalidArgument(
                f"{self.whole.name} takes a handle on each rank; {missing[0]} has none"
            )
        made: dict[Any, AccelRef] = {}
        for world in self.worlds:
            found = call(world, [by_device[device] for device in world.devices])
            made |= zip(world.devices, found.refs, strict=True)
        return Sharded(self.whole, [made[device] for device in self.whole.devices], "own")

    def __iter__(self) -> "Iterator[World]":
        return iter(self.worlds)

    def __len__(self) -> int:
        return len(self.worlds)

    def __repr__(self) -> str:
        parts = "; ".join(", ".join(one.name for one in world.devices) for world in self.worlds)
        return f"Split({self.whole.name}: {parts})"


def grid(shape: Mapping[str, int], size: int) -> np.ndarray[Any, Any]:
    """Return the ranks in a grid of named dimensions, the last one the quickest.

    Raises:
        InvalidArgument: it has not a place for each rank.
    """
    if not shape or prod(shape.values()) != size or min(shape.values()) < 1:
        raise InvalidArgument(f"a grid of {dict(shape)} has not one place for each of {size} ranks")
    return np.arange(size).reshape(tuple(shape.values()))


def lines(shape: Mapping[str, int], size: int, dimension: str) -> list[list[int]]:
    """Return the ranks of each line of a grid along a dimension.

    Raises:
        InvalidArgument: there is no such dimension.
    """
    if dimension not in shape:
        raise InvalidArgument(f"the world has the dimensions {list(shape)}, and no {dimension!r}")
    axis = list(shape).index(dimension)
    moved = np.moveaxis(grid(shape, size), axis, -1)
    found: list[list[int]] = moved.reshape(-1, shape[dimension]).tolist()
    return found
