"""The notebook's side of random numbers: counts the words that have been drawn."""

import secrets
import threading
from typing import Any, SupportsIndex, TypedDict

import numpy as np

from accel_lab.compute.device import Device, device_first
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import Scalar, plain
from accel_lab.libraries.authoring.shape import Integers as Extents
from accel_lab.libraries.rng.draws import Draws
from accel_lab.libraries.rng.messages import (
    OFFSETS,
    SEEDS,
    STREAMS,
    Draw,
    Integers,
    Normal,
    Uniform,
    Words,
)
from accel_lab.libraries.rng.place import described, integer_range, whole
from accel_lab.uncopied import Uncopied

_LIMITS = {"seed": SEEDS, "stream": STREAMS, "offset": OFFSETS + 1, "spawned": OFFSETS}


class State(TypedDict):
    """All that a generator is, as plain data.

    Attributes:
        seed: the key of its words.
        stream: which of the seed's streams.
        offset: how many words it has taken.
        spawned: how many children it has made.
    """

    seed: int
    stream: int
    offset: int
    spawned: int


class Generator(Draws, Uncopied):
    """Draws random numbers on a device, each from the words after those of the draw before.

    It follows NumPy's Generator. What it draws depends on its state and the arguments alone, not
    on the device: two generators of one state draw the same, and two draws of 3 and 5 words are
    the one of 8 in two parts. A draw that is refused takes no words. Any thread may call; none
    of the methods waits for the device.

    Parameters:
        seed: from 0 to 2**64 - 1; a secret one is made up when it is None.
        stream: which of the seed's 2**48 streams.

    Raises:
        InvalidArgument: no device, or no such seed or stream.
    """

    _instead = (
        "keep its state, which is plain data, and assign that to the state of a generator where "
        "you need it"
    )

    def __init__(
        self, device: Device, seed: SupportsIndex | None = None, *, stream: SupportsIndex = 0
    ) -> None:
        self.device = device_first(device)
        self._lock = threading.RLock()  # a finalizer of the user's may draw in the middle
        key = secrets.randbits(64) if seed is None else seed
        self.state = State(seed=whole(key), stream=whole(stream), offset=0, spawned=0)

    @property
    def seed(self) -> int:
        """The key of its words, which is in every message."""
        return self._state["seed"]

    @property
    def stream(self) -> int:
        """Which of the seed's streams."""
        return self._state["stream"]

    @property
    def offset(self) -> int:
        """How many words have been taken."""
        return self._state["offset"]

    @property
    def state(self) -> State:
        """A copy of the state; assigning one goes back, or ahead, to it.

        Raises:
            InvalidArgument: what is assigned is no state.
        """
        return self._state.copy()

    @state.setter
    def state(self, state: State) -> None:
        require_state(state)
        with self._lock:
            self._state = state.copy()

    def words(
        self,
        shape: Extents | None = None,
        dtype: object = None,
        *,
        out: AccelRef | None = None,
    ) -> AccelRef:
        """Draw words as `Words` says, uint32 unless told otherwise.

        Shape and dtype are those of `out` where there is one, else the shape is ().

        Raises:
            InvalidArgument: something does not fit.
        """
        return self._draw(Words, described(shape, dtype, out, "uint32"), out)

    def integers(
        self,
        low: SupportsIndex,
        high: SupportsIndex | None = None,
        shape: Extents | None = None,
        dtype: object = None,
        *,
        out: AccelRef | None = None,
    ) -> AccelRef:
        """Draw integers from `low` to `high - 1`, or below `low` from 0, as `Integers` says.

        int64 unless told otherwise; else as `words`.

        Raises:
            InvalidArgument: something does not fit.
        """
        first, last = integer_range(low, high)
        what = described(shape, dtype, out, "int64")
        return self._draw(Integers, what, out, low=first, last=last)

    def uniform(
        self,
        shape: Extents | None = None,
        dtype: object = None,
        low: Scalar = 0.0,
        high: Scalar = 1.0,
        *,
        out: AccelRef | None = None,
    ) -> AccelRef:
        """Draw real numbers in (low, high] as `Uniform` says.

        float32 unless told otherwise; else as `words`.

        Raises:
            InvalidArgument: something does not fit.
        """
        what = described(shape, dtype, out, "float32")
        return self._draw(Uniform, what, out, low=plain(low), high=plain(high))

    def normal(
        self,
        shape: Extents | None = None,
        dtype: object = None,
        mean: Scalar = 0.0,
        std: Scalar = 1.0,
        *,
        out: AccelRef | None = None,
    ) -> AccelRef:
        """Draw from the normal distribution as `Normal` says.

        float32 unless told otherwise; else as `words`.

        Raises:
            InvalidArgument: something does not fit.
        """
        what = described(shape, dtype, out, "float32")
        return self._draw(Normal, what, out, mean=plain(mean), std=plain(std))

    def spawn(self, n: SupportsIndex) -> list["Generator"]:
        """Make `n` generators whose numbers have nothing to do with each other's or this one's.

        Child i has a seed and a stream of its own, 112 bits that NumPy's SeedSequence makes of
        this generator's seed and stream, with the spawn key (i,). It is never stream 0, the one
        of a generator that a user seeds. The same generator has the same children in the same
        order, however much it has drawn.

        Raises:
            InvalidArgument: `n` is negative or no integer.
        """
        count = whole(n)
        if count < 0:
            raise InvalidArgument(f"spawn: n is {count}, and must not be negative")
        with self._lock:
            first = self._state["spawned"]
            self._state["spawned"] = first + count
        return [self._child(first + i) for i in range(count)]

    def _child(self, index: int) -> "Generator":
        entropy = [self.seed, self.stream]
        seed, rest = np.random.SeedSequence(entropy, spawn_key=(index,)).generate_state(2, "u8")
        return Generator(self.device, int(seed), stream=1 + int(rest) % (STREAMS - 1))

    def _draw(
        self,
        kind: type[Draw],
        what: tuple[tuple[int, ...], str],
        out: AccelRef | None,
        **options: Any,
    ) -> AccelRef:
        # The lock is held while the message is sent, so that one that is refused takes no words.
        with self._lock:
            state, offset = self._state, -1
            while offset != state["offset"]:  # a finalizer may draw meanwhile
                offset = state["offset"]
                message = kind(*what, state["seed"], state["stream"], offset, out, **options)
                after = offset + message.consumes
            state["offset"] = after
            try:
                drawn = self.device.ask(message)
                if (recording := self.device.recording) is not None:
                    recording.counts("offset", self, offset)
            except BaseException:
                if state["offset"] == after:
                    state["offset"] = offset
                raise
            return drawn

    def take(self, count: int) -> int:
        """Take the next words for a graph that draws them; return how many came before.

        Raises:
            InvalidArgument: the stream has no more.
        """
        with self._lock:
            offset = self._state["offset"]
            if offset + count > OFFSETS:
                text = f"the graph takes {count} words from offset {offset} on, and a stream has"
                raise InvalidArgument(f"{text} {OFFSETS}; take another stream")
            self._state["offset"] = offset + count
            return offset

    def give_back(self, offset: int) -> None:
        """Go back to where so many words were taken: they were for nothing."""
        with self._lock:
            self._state["offset"] = offset

    def __copy__(self) -> "Generator":
        """Return one on the same device that draws from here on what this one does."""
        with self._lock:
            state = self._state.copy()
        twin = Generator(self.device, state["seed"], stream=state["stream"])
        twin.state = state
        return twin

    def __deepcopy__(self, memo: object) -> "Generator":
        return self.__copy__()

    def __repr__(self) -> str:
        name = self.device.name
        return f"<Generator on {name}, seed {self.seed}, stream {self.stream}, at {self.offset}>"


def require_state(state: Any) -> None:
    """Refuse what is no state of a generator.

    Raises:
        InvalidArgument: it is none.
    """
    if not isinstance(state, dict) or state.keys() != _LIMITS.keys():
        raise InvalidArgument(f"a generator's state has {', '.join(_LIMITS)}, not {state!r}")
    for name, limit in _LIMITS.items():
        value = state[name]
        if type(value) is not int or not 0 <= value < limit:
            raise InvalidArgument(
                f"Generator: {name} must be an integer from 0 to {limit - 1}, not {value!r}"
            )
