"""The libraries beside BLAS: one operation again and again, against the array library's own."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from accel_lab.bench.effort import Effort
from accel_lab.bench.rounds import compare, latencies
from accel_lab.bench.row import Budget, Row
from accel_lab.bench.rows.latency import Send, blocking, percentiles
from accel_lab.bench.rows.peer import Peer
from accel_lab.bench.rows.pipelined import SMALL, seconds_of, squares
from accel_lab.compute.device import Device
from accel_lab.libraries.fft import library as fft
from accel_lab.libraries.jit import library as jit
from accel_lab.libraries.rng import library as rng

FEWEST_CALLS = 3
THREADS = 256
SAXPY = """
extern "C" __global__ void saxpy(int n, float a, const float* x, const float* y, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a * x[i] + y[i];
}
"""


class Case(NamedTuple):
    """An operation and the call that does the same.

    Attributes:
        name: of its rows, behind the group's.
        title: for people.
        what: the call of the baseline, without its file.
        arguments: what the call is prepared with.
        prepare: puts the operands on a device and returns what sends one message.
        pipelined, ask: the budgets of `cuda`; None where there is none.
        torch: PyTorch's call, with its file; empty where it has none.
    """

    name: str
    title: str
    what: str
    arguments: tuple[Any, ...]
    prepare: Callable[[Device], Send]
    pipelined: float | None = None
    ask: float | None = None
    torch: str = ""


def c2c(*shape: int) -> Callable[[Device], Send]:
    """Prepare transforms of complex numbers into one buffer."""

    def prepare(device: Device) -> Send:
        pairs = np.random.default_rng(0).standard_normal((*shape, 2)).astype(np.float32)
        x = device.put(pairs.view(np.complex64)[..., 0])
        out = fft.c2c(x, axes=-1)
        return lambda: fft.c2c(x, axes=-1, out=out)

    return prepare


def r2c(*shape: int) -> Callable[[Device], Send]:
    """Prepare transforms of real numbers into one buffer."""

    def prepare(device: Device) -> Send:
        x = device.put(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
        out = fft.r2c(x, axes=-1)
        return lambda: fft.r2c(x, axes=-1, out=out)

    return prepare


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


def saxpy(size: int) -> Callable[[Device], Send]:
    """Prepare launches of a kernel that adds a matrix and a multiple of another into a third."""

    def prepare(device: Device) -> Send:
        x, y, out = squares(device, size)
        kernel = jit.compile(device, SAXPY, "saxpy").result()
        n = size * size
        return lambda: kernel(-(-n // THREADS), THREADS, (n, 2.0, x, y, out))

    return prepare


LINE, BATCH, DRAW = (4096,), (1024, 1024), 1 << 20
CASES = {
    "fft": (
        Case("c2c-4096", "C2C 4096", "c2c", LINE, c2c(*LINE), ask=1.7, torch="torch.c2c"),
        Case("r2c-1024x1024", "R2C 1024x1024", "r2c", BATCH, r2c(*BATCH), torch="torch.r2c"),
    ),
    "rng": (
        Case("words-1Mi", "Words 2^20", "words", (DRAW,), words(DRAW)),
        Case(
            "uniform-1Mi", "Uniform 2^20", "uniform", (DRAW,), uniform(DRAW), torch="torch.uniform"
        ),
    ),
    "jit": (
        Case(
            f"saxpy-{SMALL}",
            f"jit saxpy {SMALL}x{SMALL}",
            "saxpy",
            (SAXPY, SMALL),
            saxpy(SMALL),
            pipelined=0.8,
            ask=1.7,
        ),
    ),
}


def library(peer: Peer, effort: Effort, group: str) -> list[Row]:
    """Measure the cases of a library, named as its group: in a row, and one at a time.

    PyTorch is a second peer of the loops where a context can import it.
    """
    return [row for case in CASES[group] for row in _case(peer, effort, group, case)]


def _case(peer: Peer, effort: Effort, group: str, case: Case) -> list[Row]:
    limit = case.ask if peer.backend == "cuda" else None
    send = case.prepare(peer.device)
    what, name = f"{group}.{case.what}", f"{group}-{case.name}"
    count, call_s = _enough(peer, effort, what, case.arguments)
    calls = round(min(effort.calls, max(FEWEST_CALLS, effort.telling_s / call_s)))
    settling = effort.settling if calls == effort.calls else 1
    found = latencies(
        lambda: peer.each(what, case.arguments, settling + calls)[settling:],
        lambda: blocking(send, settling + calls)[settling:],
        effort.rounds,
    )
    rows = [
        loop(peer, effort, case, send, what, count=count, group=group, name=name),
        *percentiles(
            f"{name}-ask",
            found,
            group=group,
            title=f"{case.title} and .result()",
            peer=f"{peer.label(what, *case.arguments)} + sync",
            budget=None if limit is None else Budget(limit, "at most"),
        ),
    ]
    if case.torch and peer.label(case.torch, *case.arguments):
        pair = f"{name}-torch"
        rows.append(loop(peer, effort, case, send, case.torch, count=count, group=group, name=pair))
    return rows


def loop(
    peer: Peer,
    effort: Effort,
    case: Case,
    send: Send,
    what: str,
    *,
    count: int,
    group: str,
    name: str,
) -> Row:
    """Send `count` messages in a row, against as many calls of `what`."""
    found = compare(
        lambda: count / peer.many(what, case.arguments, count),
        lambda: count / seconds_of(send, count),
        effort.rounds,
    )
    limit = case.pipelined if peer.backend == "cuda" else None
    return Row(
        name=name,
        group=group,
        title=f"pipelined {case.title} with out",
        unit="messages/s",
        peer=f"{peer.label(what, *case.arguments)} loop",
        budget=None if limit is None else Budget(limit, "at least"),
        **found._asdict(),
    )


def _enough(peer: Peer, effort: Effort, what: str, arguments: tuple[Any, ...]) -> tuple[int, float]:
    """Find how many calls take long enough, and what one takes; the library is warm then."""
    count, most = 1, effort.messages[peer.backend]
    peer.many(what, arguments, count)
    while (seconds := peer.many(what, arguments, count)) < effort.telling_s and count < most:
        count = min(2 * count, most)
    return count, seconds / count
