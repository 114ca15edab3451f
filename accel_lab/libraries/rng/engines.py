"""Other generators of words, addressed as Philox is: any word of a stream is found at once.

XORWOW is linear over bits and MRG32k3a over two primes, so that a jump ahead is a product with a
power of the step's matrix. A matrix is held as the states that its step makes of each unit state.
"""

import secrets
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar, Literal, SupportsIndex, get_args

import numpy as np

from accel_lab.compute.device import Device, device_first
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.shape import Integers as Extents
from accel_lab.libraries.rng.messages import Draw
from accel_lab.libraries.rng.place import described, placed

Name = Literal["xorwow", "mrg32k3a", "mt19937"]
NAMES: tuple[Name, ...] = get_args(Name)
LEAP = 256
"""How many words in a row are made from one jump."""
TWISTER_LIMIT = 2**32

M1, M2 = 2**32 - 209, 2**32 - 22853
A12, A13, A21, A23 = 1403580, M1 - 810728, 527612, M2 - 1370589
TO_WORD = 1.000000048662
"""What cuRAND multiplies MRG32k3a's number by, to reach the largest word."""
WEYL = 362437


class Generate(Draw, frozen=True, array_like=True, eq=False, kw_only=True, tag=234):
    """Draw words of another generator: "xorwow", "mrg32k3a" or "mt19937"; floats as `Uniform` does.

    - "xorwow" (G. Marsaglia, "Xorshift RNGs", J. Stat. Software 8, 2003) and "mrg32k3a" (P.
      L'Ecuyer, Oper. Res. 47, 1999) are seeded as by cuRAND's `curand_init(seed, stream, offset)`:
      streams are 2**67 and 2**76 words apart. A word of MRG32k3a is made as by `curand`.
    - "mt19937" (M. Matsumoto and T. Nishimura, ACM TOMACS 8, 1998) is seeded as C++'s and NumPy's
      RandomState, by 32 bits. It has one stream, of which words up to 2**32 can be had: what comes
      before them is made too, and takes time. cuRAND's interleaves several.

    uint64 and float64 are of two words, the first one low.
    """

    dtypes: ClassVar = frozenset({"uint32", "uint64", "float32", "float64"})
    uncaptured: ClassVar = "each launch would draw the same words, as no launch moves them on"
    generator: Name

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        if self.generator not in NAMES:
            known = ", ".join(NAMES)
            raise InvalidArgument(f"Generate: generator is one of {known}, not {self.generator!r}")
        spec = super().infer()
        if self.generator == "mt19937":
            self._require_limits()
        return spec

    def _require_limits(self) -> None:
        if self.stream:
            raise InvalidArgument(f"Generate: mt19937 has stream 0 alone, not {self.stream}")
        if self.seed >= 2**32:
            raise InvalidArgument(f"Generate: mt19937 has seeds up to 2**32 - 1, not {self.seed}")
        if self.offset + self.consumes > TWISTER_LIMIT:
            raise InvalidArgument(
                f"Generate: {self.consumes} words from {self.offset} on are beyond the first 2**32 "
                "of mt19937; take another generator"
            )

    @property
    def start(self) -> Any:
        """The state of six words with which this draw begins, but for mt19937: its 624 words."""
        if self.generator == "mt19937":
            return np.random.RandomState(self.seed).get_state(legacy=False)["state"]["key"]
        return ENGINES[self.generator].start(self.seed, self.stream, self.offset)


def generate(
    device: Device,
    generator: Name,
    shape: Extents | None = None,
    dtype: object = None,
    *,
    seed: SupportsIndex | None = None,
    stream: SupportsIndex = 0,
    offset: SupportsIndex = 0,
    out: AccelRef | None = None,
) -> AccelRef:
    """Draw words of another generator, as `Generate` says; uint32 unless told otherwise.

    Does not block. Else as `words`; a seed that is made up is one of 32 bits.

    Raises:
        InvalidArgument: something does not fit.
    """
    what = described(shape, dtype, out, "uint32")
    place = placed(secrets.randbits(32) if seed is None else seed, stream, offset)
    return device_first(device).ask(Generate(*what, *place, out, generator=generator))


class Engine:
    """A generator whose state of six words is found anywhere in its sequence.

    Parameters:
        step: returns the states after the given ones, an array (n, 6).
        apply: returns states after what images, of each unit state, say.
        units: the unit states.
        apart: how many words streams are apart.
        seeded: returns the state of a seed.
    """

    def __init__(
        self,
        step: Callable[[Any], Any],
        apply: Callable[[Any, Any], Any],
        units: Any,
        apart: int,
        seeded: Callable[[int], list[int]],
    ) -> None:
        self.step, self.apply, self._apart, self._seeded = step, apply, apart, seeded
        self._powers = [step(units)]

    def power(self, exponent: int) -> Any:
        """Return the images after 2**exponent steps."""
        while len(self._powers) <= exponent:
            last = self._powers[-1]
            self._powers.append(self.apply(last, last))
        return self._powers[exponent]

    def start(self, seed: int, stream: int, offset: int) -> Any:
        """Return the state before a word."""
        state = np.array([self._seeded(seed)], np.uint32)
        ahead, exponent = stream * self._apart + offset, 0
        while ahead:
            if ahead & 1:
                state = self.apply(self.power(exponent), state)
            ahead, exponent = ahead >> 1, exponent + 1
        return state[0]

    def leaps(self, state: Any, count: int) -> Any:
        """Return a state and those that are one leap, two leaps and so on ahead of it."""
        states = state[None]
        exponent = LEAP.bit_length() - 1
        while len(states) < count:
            more = self.apply(self.power(exponent), states[: count - len(states)])
            states, exponent = np.concatenate([states, more]), exponent + 1
        return states

    @lru_cache(maxsize=2)  # noqa: B019 - engines are as many, and live as long as the module
    def table(self, powers: int) -> Any:
        """Return the images of one leap, two, four and so on."""
        first = LEAP.bit_length() - 1
        return np.stack([self.power(first + at) for at in range(powers)])


def _xorwow_seeded(seed: int) -> list[int]:
    """Return what cuRAND makes of a seed: five words and the sum."""
    low = (seed & 0xFFFFFFFF ^ 0xAAD26B49) * 1099087573
    high = (seed >> 32 ^ 0xF7DCEFDD) * 2591861531
    low, high = low & 0xFFFFFFFF, high & 0xFFFFFFFF
    words = [123456789 + low, 362436069 ^ low, 521288629 + high, 88675123 ^ high, 5783321 + low]
    return [word & 0xFFFFFFFF for word in (*words, 6615241 + low + high)]


def _xorwow_step(states: Any) -> Any:
    after = np.empty_like(states)
    after[:, :4] = states[:, 1:5]
    first, last = states[:, 0], states[:, 4]
    first = first ^ first >> np.uint32(2)
    after[:, 4] = last ^ last << np.uint32(4) ^ first ^ first << np.uint32(1)
    after[:, 5] = states[:, 5] + np.uint32(WEYL)
    return after


def _xorwow_apply(images: Any, states: Any) -> Any:
    """Join the images of a state's bits; the sum of the last unit, of none, is added."""
    bits = states[:, :5, None] >> np.arange(32, dtype=np.uint32) & np.uint32(1)
    after = np.empty_like(states)
    chosen = bits.reshape(-1, 160, 1) * images[:160, :5]
    after[:, :5] = np.bitwise_xor.reduce(chosen, axis=1)
    after[:, 5] = states[:, 5] + images[160, 5]
    return after


def _xorwow_units() -> Any:
    units = np.zeros((161, 6), np.uint32)
    for bit in range(160):
        units[bit, bit >> 5] = 1 << (bit & 31)
    return units


def _mrg_seeded(seed: int) -> list[int]:
    """Return what cuRAND makes of a seed: three numbers below each prime."""
    if seed == 0:
        return [12345] * 6
    low, high = seed & 0xFFFFFFFF ^ 0x55555555, seed >> 32 ^ 0xAAAAAAAA
    first = [12345 * word % M1 for word in (low, high, low)]
    return first + [12345 * word % M2 for word in (high, low, high)]


def _mrg_step(states: Any) -> Any:
    wide = states.astype(np.uint64)
    after = np.empty_like(states)
    after[:, :2], after[:, 3:5] = states[:, 1:3], states[:, 4:6]
    m1, m2 = np.uint64(M1), np.uint64(M2)
    after[:, 2] = (wide[:, 1] * np.uint64(A12) % m1 + wide[:, 0] * np.uint64(A13) % m1) % m1
    after[:, 5] = (wide[:, 5] * np.uint64(A21) % m2 + wide[:, 3] * np.uint64(A23) % m2) % m2
    return after


def _mrg_apply(images: Any, states: Any) -> Any:
    wide, images = states.astype(np.uint64), images.astype(np.uint64)
    after = np.zeros_like(wide)
    for half, prime in ((slice(0, 3), np.uint64(M1)), (slice(3, 6), np.uint64(M2))):
        for unit in range(half.start, half.stop):
            after[:, half] += wide[:, unit, None] * images[unit, half] % prime
        after[:, half] %= prime
    return after.astype(np.uint32)


ENGINES = {
    "xorwow": Engine(_xorwow_step, _xorwow_apply, _xorwow_units(), 2**67, _xorwow_seeded),
    "mrg32k3a": Engine(_mrg_step, _mrg_apply, np.eye(6, dtype=np.uint32), 2**76, _mrg_seeded),
}
"""Those that jump, by name."""


def words_of(name: str, states: Any) -> Any:
    """Return the word of each state, as it is after a step."""
    if name == "xorwow":
        return states[:, 5] + states[:, 4]
    first, second = states[:, 2].astype(np.uint64), states[:, 5].astype(np.uint64)
    number = np.where(first <= second, first + np.uint64(M1) - second, first - second)
    return (number.astype(np.float64) * TO_WORD).astype(np.uint32)
