"""Which weights are cut among ranks, and along which axis."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from accel_lab.blueprints.train.optimizers.optimizer import SEPARATOR
from accel_lab.blueprints.train.snapshots.snapshot import Array
from accel_lab.errors import InvalidArgument


class Cuts:
    """Cuts parameters and their slots into equal parts, and joins them."""

    def __init__(self, axes: Mapping[str, int], parameters: Mapping[str, npt.ArrayLike]) -> None:
        self._axes = dict(axes)
        self._shapes = {name: np.shape(x) for name, x in parameters.items()}

    def __contains__(self, name: str) -> bool:
        """Whether a parameter, or the parameter of a slot, is cut."""
        return name.partition(SEPARATOR)[0] in self._axes

    def part(self, name: str, whole: Array, place: int, parts: int) -> Array:
        """Return one of so many parts; all of what is not cut."""
        if name not in self:
            return whole
        made: Array = np.split(whole, parts, self._axis(name))[place]
        return made

    def joined(self, name: str, parts: Sequence[Array]) -> Array:
        """Return the whole."""
        if name not in self:
            return parts[0]
        made: Array = np.concatenate(parts, self._axis(name))
        return made

    def require_even(self, trainer: str, parts: int) -> None:
        """Refuse what cannot be cut into so many equal parts.

        Raises:
            InvalidArgument: it cannot be, or there is no parameter of this name.
        """
        for name, axis in self._axes.items():
            shape = self._shapes.get(name)
            if shape is None:
                text = f"cuts names {name!r}, and the parameters are {list(self._shapes)}"
                raise InvalidArgument(f"{trainer}: {text}")
            if type(axis) is not int or not 0 <= axis < len(shape) or shape[axis] % parts:
                text = f"parameter {name!r} has the shape {list(shape)}"
                text += f"; it cannot be cut along axis {axis!r} into {parts} equal parts"
                raise InvalidArgument(f"{trainer}: {text}")

    def _axis(self, name: str) -> int:
        return self._axes[name.partition(SEPARATOR)[0]]
