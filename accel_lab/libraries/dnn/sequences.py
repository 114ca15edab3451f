"""The sequences of a batch: how long each is, and where its steps lie in an array.

What a network computes with is (time, batch, features) with the longest sequence first, so that
those which go on at a step are the first ones. Behind the end of each it has zeros.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.authoring.operand import named
from accel_lab.libraries.dnn.message import of_ints, refusal, require_choice

SequenceLayout: TypeAlias = Literal["time_first", "batch_first", "packed"]
SEQUENCE_LAYOUTS: tuple[str, ...] = get_args(SequenceLayout)


class Sequences(NamedTuple):
    """The sequences of a batch.

    Attributes:
        layout: how an array of their steps is laid out.
        time: how many steps the array has; of a packed one, those of the longest sequence.
        lengths: how many steps each sequence has.
    """

    layout: str
    time: int
    lengths: tuple[int, ...]

    @property
    def order(self) -> list[int]:
        """Which sequence is the longest, the next, and so on; of equals the first comes first."""
        return sorted(range(len(self.lengths)), key=lambda at: -self.lengths[at])

    @property
    def sizes(self) -> list[int]:
        """How many sequences go on at each step."""
        lengths = sorted(self.lengths)
        steps = range(max(lengths, default=self.time))
        return [len(lengths) - bisect_right(lengths, t) for t in steps]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an array of their steps, without its features."""
        if self.layout == "packed":
            return (sum(self.lengths),)
        batch = len(self.lengths)
        return (self.time, batch) if self.layout == "time_first" else (batch, self.time)

    def entered(self, xp: Any, x: Any) -> Any:
        """Return an array of their steps as it is computed with."""
        if self._is_even:
            return self._turned(x)
        made = xp.zeros((len(self.sizes), len(self.lengths), x.shape[-1]), x.dtype)
        for outside, inside in self._places():
            made[inside] = self._turned(x)[outside]
        return made

    def left(self, xp: Any, x: Any) -> Any:
        """Return what was computed, laid out as that array; where no step is, it is 0."""
        if self._is_even:
            return self._turned(x)
        made = xp.zeros((*self.shape, x.shape[-1]), x.dtype)
        for outside, inside in self._places():
            self._turned(made)[outside] = x[inside]
        return made

    def longest_first(self, xp: Any, states: Any) -> Any:
        """Return a copy of states (any, batch, hidden) in the order of what is computed with."""
        if self._is_even:
            return states.copy()
        made = xp.empty_like(states)
        for to, at in enumerate(self.order):
            made[:, to] = states[:, at]
        return made

    def in_order(self, xp: Any, states: Any) -> Any:
        """Return such states in the order of the batch."""
        if self._is_even:
            return states
        made = xp.empty_like(states)
        for of, at in enumerate(self.order):
            made[:, at] = states[:, of]
        return made

    @property
    def _is_even(self) -> bool:
        """Whether all sequences are as long as their array, and so lie as they are to."""
        return self.layout != "packed" and min(self.lengths, default=self.time) == self.time

    def _turned(self, x: Any) -> Any:
        """Return a view with time first of what has the batch first, and back."""
        return x.transpose(1, 0, 2) if self.layout == "batch_first" else x

    def _places(self) -> Iterator[tuple[Any, Any]]:
        """Return where parts of them lie in their array, and where in what is computed with."""
        if self.layout == "packed":
            begin = 0
            for t, size in enumerate(self.sizes):
                yield slice(begin, begin + size), (t, slice(size))
                begin += size
            return
        for rank, at in enumerate(self.order):
            steps = slice(self.lengths[at])
            yield (steps, at), (steps, rank)


def sequences(message: Any, ref: AccelRef) -> Sequences:
    """Return the sequences of a message, whose steps an operand has.

    Raises:
        InvalidArgument: they do not fit.
    """
    require_choice(message, "layout", SEQUENCE_LAYOUTS)
    layout, lengths = message.layout, of_ints(message, "lengths")
    is_packed = layout == "packed"
    if ref.ndim != (2 if is_packed else 3):
        axes = "a row for each step" if is_packed else "time, batch and features"
        raise refusal(message, f"{named(message, ref)}; {layout} it is to have {axes}")
    if is_packed:
        time = max(lengths, default=0)
    else:
        time, batch = ref.shape[:2] if layout == "time_first" else ref.shape[1::-1]
        lengths = lengths or (time,) * batch
    if time < 1 or any(not 1 <= n <= time for n in lengths):
        text = f"{named(message, ref)}, and lengths are {lengths}"
        raise refusal(message, f"{text}; each sequence has a step, and none more than there are")
    found = Sequences(layout, time, lengths)
    if found.shape != ref.shape[:-1]:
        text = f"{named(message, ref)}, and lengths {lengths}"
        raise refusal(message, f"{text} are those of {[*found.shape, ref.shape[-1]]}")
    return found
