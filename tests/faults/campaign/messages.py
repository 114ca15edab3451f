"""The campaign's messages: for each family several ways to send one, each with its twin.

All buffers of the pool are float64 of 8 x 8 or 64 x 64, so that each fits with each of its size;
what has another shape is read once and dropped.
"""

import operator
import random
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from accel_lab import array, blas, fft, jit, rng
from accel_lab.compute.message.builtin import Ping
from accel_lab.libraries.array.library import Copy
from tests.contract import philox
from tests.faults.campaign.gate import halve
from tests.faults.campaign.libraries import WAYS
from tests.faults.campaign.plan import Message
from tests.faults.campaign.twin import Array, Cell, Sent, Twin, leaf, made

SMALL, LARGE = (8, 8), (64, 64)
SOURCE = """
__global__ void mend(double* x, double v, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * v + 1.0;
}
"""

OWN = {"array": 5, "blas": 5, "fft": 2, "rng": 1}
"""How many ways a family has that are written here; those of `libraries` follow."""
GATED = {
    "put": ["Put", "Allocate"],
    "get": ["Download"],
    "array": ["Copy", "Transpose", "Full", "Cast"],
    "blas": ["Gemm", "Axpy", "Scal", "Nrm2"],
    "fft": ["R2C", "C2R"],
    "rng": ["Uniform"],
    "jit": ["Compile", "LaunchKernel"],
    "run": ["Run"],
    "ping": ["Ping"],
    "tell": ["Ping", "Copy"],
}


def ways(family: str) -> int:
    """Return in how many ways a family's messages can be sent, as the plan deals them."""
    return OWN.get(family, 1) + len(WAYS.get(family, ()))


def gated(message: Message) -> list[str]:
    """Return the types of which one stops at a gate when this message is sent."""
    way = message.turn % ways(message.family) - OWN.get(message.family, 1)
    return GATED[message.family] if way < 0 else [WAYS[message.family][way].kind]


@cache
def uniform(seed: int) -> Array:
    """Return what 8 x 8 uniform numbers of a seed are by definition."""
    words = philox.words(seed, 0, 0, 128)
    flat = [philox.unit64(words[2 * i], words[2 * i + 1]) for i in range(64)]
    return np.array(flat).reshape(SMALL)


class Senders:
    """Sends messages; `lab` is where arrays in lab memory come from."""

    def __init__(self, lab: Any) -> None:
        self.lab = lab
        self._kernels: dict[str, jit.Kernel] = {}

    def send(self, twin: Twin, message: Message) -> Sent:
        """Send one message of a family and enter what it makes."""
        family, dice = message.family, random.Random(message.seed)
        if family not in OWN:
            sent: Sent = getattr(self, f"_{family}")(twin, dice)
            return sent
        way = message.turn % ways(family)
        if way >= OWN[family]:
            x, y = _pair(twin, dice)
            return WAYS[family][way - OWN[family]].send(twin, x, y, dice.randrange(8))
        own: Sent = getattr(self, f"_{family}")(twin, dice, way)
        return own

    def put(self, twin: Twin, value: Array) -> Sent:
        """Put an array."""
        return made("put", twin, twin.device.put(value), lambda: value)

    def upload(self, twin: Twin, dice: random.Random) -> Sent:
        """Put an array that goes by the arena, half of the time from lab memory."""
        value = np.random.default_rng(dice.randrange(1 << 30)).standard_normal(LARGE)
        source: Array = value
        if dice.randrange(2):
            source = self.lab.empty(LARGE, "float64")
            source[...] = value
        return self.put(twin, source)

    def download(self, twin: Twin, dice: random.Random) -> Sent:
        """Get an array by the arena."""
        x = _pick(twin, dice)
        return Sent("get", twin.device.get(x.ref), np.copy, (x,))

    def kernel(self, twin: Twin) -> jit.Kernel:
        """Return the device's kernel, compiled for whichever generation."""
        found = self._kernels.get(twin.device.name)
        if found is None:
            found = self._kernels[twin.device.name] = jit.compile(twin.device, SOURCE, "mend")
        return found

    def warm(self, twin: Twin) -> None:
        """See that the device's kernel is compiled in this generation."""
        if not self.kernel(twin).ref.is_valid:
            self.drop(twin)
        self.kernel(twin).result(30.0)

    def drop(self, twin: Twin) -> None:
        """Drop the device's kernel."""
        self._kernels.pop(twin.device.name, None)

    def _put(self, twin: Twin, dice: random.Random) -> Sent:
        numbers = np.random.default_rng(dice.randrange(1 << 30))
        way = dice.randrange(4)
        value = numbers.standard_normal(SMALL if way < 2 else LARGE)
        source: Array = value
        if way == 1:
            source = value.T.copy().T
        elif way == 3:
            source = self.lab.empty(LARGE, "float64")
            source[...] = value
        ref = twin.device.put(source)
        return made("put", twin, ref, lambda: value)

    def _get(self, twin: Twin, dice: random.Random) -> Sent:
        x = _pick(twin, dice)
        return Sent("get", twin.device.get(x.ref), np.copy, (x,))

    def _array(self, twin: Twin, dice: random.Random, way: int) -> Sent:
        x, y = _pair(twin, dice)
        match way:
            case 0:
                return made("array", twin, array.copy(x.ref), np.copy, x)
            case 1:
                return made("array", twin, array.transpose(x.ref), np.transpose, x, base=x)
            case 2:
                number = dice.uniform(-1, 1)
                ref = array.full(twin.device, SMALL, number, dtype="float64")
                return made("array", twin, ref, lambda: np.full(SMALL, number))
            case 3:
                return leaf("array", twin, array.cast(x.ref, "float32"), lambda a: a.astype("f"), x)
            case _:
                reply = array.copy(x.ref, out=y.ref)
                return Sent("array", reply, np.copy, (x,), writes=y)

    def _blas(self, twin: Twin, dice: random.Random, way: int) -> Sent:
        x, y = _pair(twin, dice)
        match way:
            case 0:
                ref = blas.gemm(x.ref, y.ref, alpha=1 / 64)
                return made("blas", twin, ref, lambda a, b: a @ b / 64, x, y)
            case 1:
                ref = blas.axpy(x.ref, y.ref, alpha=-0.5)
                return made("blas", twin, ref, lambda a, b: -0.5 * a + b, x, y)
            case 2:
                reply = blas.scal(x.ref, 0.5, out=x.ref)
                return Sent("blas", reply, lambda a: 0.5 * a, (x,), writes=x)
            case 3:
                norm = blas.nrm2(array.slice(x.ref, 0))
                return leaf("blas", twin, norm, lambda a: np.asarray(np.linalg.norm(a[0])), x)
            case _:
                twice = blas.scal(x.ref, 2.0)
                half = blas.scal(twice, 0.25)
                return made("blas", twin, half, lambda a: 0.5 * a, x, via=(twice,))

    def _fft(self, twin: Twin, dice: random.Random, way: int) -> Sent:
        x = _pick(twin, dice)
        if way:
            return leaf("fft", twin, fft.rfft(x.ref), np.fft.rfft, x)
        half = fft.rfft(x.ref)
        return made("fft", twin, fft.irfft(half), np.copy, x, via=(half,))

    def _rng(self, twin: Twin, dice: random.Random, _: int) -> Sent:
        seed = dice.randrange(8)
        ref = rng.uniform(twin.device, SMALL, "float64", seed=seed)
        return made("rng", twin, ref, lambda: uniform(seed).copy())

    def _jit(self, twin: Twin, dice: random.Random) -> Sent:
        x, way = _pick(twin, dice, views=False), dice.randrange(3)
        kernel = self.kernel(twin) if way else jit.compile(twin.device, SOURCE, "mend")
        n = x.ref.size
        reply = kernel((n + 63) // 64, 64, (x.ref, 0.25, np.int32(n)))
        via = (kernel.ref,)
        return Sent("jit", reply, lambda a: a * 0.25 + 1.0, (x,), writes=x, via=via)

    def _run(self, twin: Twin, dice: random.Random) -> Sent:
        x, run = _pick(twin, dice, twin.decided), partial(twin.device.run, timeout_s=600.0)
        match dice.randrange(5):
            case 0:
                return made("run", twin, run(np.tanh, x.ref, pure=True), np.tanh, x)
            case 1:
                return Sent("run", run(halve, x.ref), _half, (x,), writes=x)
            case 2:
                a, b = dice.randrange(99), dice.randrange(99)
                return Sent("run", run(operator.mul, a, b), lambda: a * b)
            case 3:
                return Sent("run", run(len, bytes(600_000)), lambda: 600_000)
            case _:
                ran = run(np.negative, x.ref, pure=True)
                return made("run", twin, array.copy(ran), np.negative, x, via=(ran,))

    def _ping(self, twin: Twin, _: random.Random) -> Sent:
        return Sent("ping", twin.device.ping(), _nothing)

    def _tell(self, twin: Twin, dice: random.Random) -> Sent:
        if dice.randrange(2):
            twin.device.tell(Ping())
        else:
            twin.device.tell(Copy(_pick(twin, dice).ref))
        return Sent("tell", None, _nothing)


def _nothing() -> None:
    return None


def _half(a: Array) -> Array:
    return 0.5 * a


def _pick(
    twin: Twin, dice: random.Random, among: Sequence[Cell] = (), *, views: bool = True
) -> Cell:
    cells = [c for c in among or twin.usable() or twin.cells if views or c.root is c]
    return cells[int(dice.random() * len(cells))]


def _pair(twin: Twin, dice: random.Random) -> tuple[Cell, Cell]:
    """Pick two of one shape that share no memory."""
    cells = twin.usable() or twin.cells
    pairs = [
        (x, y) for x in cells for y in cells if x.root is not y.root and x.ref.shape == y.ref.shape
    ]
    return pairs[int(dice.random() * len(pairs))]
