"""Random numbers, a million at a time."""

from collections.abc import Callable

from accel_lab.bench.case import Case, Send
from accel_lab.compute.device import Device
from accel_lab.libraries.rng import library as rng


def words(count: int) -> Callable[[Device], Send]:
    """Prepare draws of words into one buffer."""

    def prepare(device: Device) -> Send:
        generator = rng.Generator(device, 0)
        out = generator.words(count)
        return lambda: generator.words(out=out)

    return prepare


def uniform(count: int) -> Callable[[Device], Send]:
    """Prepare draws of float32 into one buffer."""

    def prepare(device: Device) -> Send:
        generator = rng.Generator(device, 0)
        out = generator.uniform(count)
        return lambda: generator.uniform(out=out)

    return prepare


DRAW = 1 << 20
CASES = (
    Case("words-1Mi", "Words 2^20", "words", (DRAW,), words(DRAW)),
    Case("uniform-1Mi", "Uniform 2^20", "uniform", (DRAW,), uniform(DRAW), torch="torch.uniform"),
)
