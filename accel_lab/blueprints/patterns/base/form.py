"""How requests become what a function gets: as a list, stacked, or padded and stacked."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_lab.errors import InvalidArgument
from accel_lab.pipeline.stage import require_count


@dataclass(frozen=True, kw_only=True)
class Form:
    """How the values of a batch are put together, and which ones may be.

    Parameters:
        stack: whether a function gets one array of all values; those of a batch have one shape.
        pad_to: lengths to which the first axis is padded, the least that fits; the function then
            gets `(array, lengths)`.
        pad_value: what is padded with.
        cut: whether to cut the padding off the first axis of each answer, too.
        bucket: returns a value's bucket: only values of one bucket share a batch.
    """

    stack: bool = False
    pad_to: tuple[int, ...] = ()
    pad_value: float = 0
    cut: bool = False
    bucket: Callable[[Any], Hashable] | None = None

    def __post_init__(self) -> None:
        for one in self.pad_to:
            require_count(one, "a length of pad_to", 1)
        if self.cut and not self.pad_to:
            raise InvalidArgument("cut= cuts padding off, and pad_to= says there is none")

    def taken(self, value: Any) -> tuple[Hashable, Any]:
        """Return a value's bucket, and the value as it goes into the batch.

        Raises:
            InvalidArgument: it is no array, or longer than the greatest length of `pad_to`.
        """
        own = None if self.bucket is None else self.bucket(value)
        if not self.stack and not self.pad_to:
            return own, value
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise InvalidArgument(f"a value is an array, or becomes one, and not {value!r}")
        if not self.pad_to:
            return (own, array.shape, array.dtype.str), array
        if not array.ndim:
            raise InvalidArgument("a value that is padded has an axis to pad, and this is a scalar")
        fitting = [length for length in self.pad_to if length >= array.shape[0]]
        if not fitting:
            most = max(self.pad_to)
            text = f"a value's first axis has at most {most} (pad_to), and not {array.shape[0]}"
            raise InvalidArgument(text)
        return (own, min(fitting), array.shape[1:], array.dtype.str), array

    def joined(self, key: Any, values: Sequence[Any]) -> Any:
        """Return what the function gets for values of one bucket."""
        if self.pad_to:
            _, length, *_ = key
            padded = np.full((len(values), length, *values[0].shape[1:]), self.pad_value)
            padded = padded.astype(values[0].dtype)
            for row, value in zip(padded, values, strict=True):
                row[: len(value)] = value
            return padded, np.array([len(value) for value in values])
        return np.stack(values) if self.stack else list(values)

    def parted(self, answer: Any, values: Sequence[Any]) -> list[Any] | None:
        """Return the answer of each value; None where the function's has another length."""
        plain = not isinstance(answer, str | bytes | dict) and hasattr(answer, "__getitem__")
        if not plain or not hasattr(answer, "__len__") or getattr(answer, "shape", None) == ():
            return None
        if len(answer) != len(values):
            return None
        parts = [answer[place] for place in range(len(values))]
        if not self.cut:
            return parts
        return [part[: len(value)] for part, value in zip(parts, values, strict=True)]
