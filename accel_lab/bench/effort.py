"""How much is measured: enough for stable medians, or just enough to see that it works."""

import msgspec


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """The size of each benchmark.

    Attributes:
        rounds: interleaved rounds of each comparison.
        messages: small messages in a round, by backend: enough that starting and ending the
            round is no part of it.
        products: device-bound products in a round, by backend.
        settling: single calls before a round of them, until both sides expect quick answers.
        calls: single calls, each waited for, in a round.
        telling_s: how long the empty messages of a round take at least.
        nbytes: the size of a transfer, and of all buffers that come back, by backend.
        kernels: kernels compiled, each of them then in a new system.
        losses: contexts lost on purpose, of each kind.
        rebuilds: the same with buffers that come back.
        cells: how often a cell goes on computing after it has sent.
        busy_s: seconds for which it does.
        watched_s: seconds of a round with a view, and of one without.
        workloads: interleaved rounds of each workload of `libraries`.
        labs: interleaved rounds with the lab, each of `lab_s` seconds, and without one.
    """

    rounds: int
    messages: dict[str, int]
    products: dict[str, int]
    settling: int
    calls: int
    telling_s: float
    nbytes: dict[str, int]
    kernels: int
    losses: int
    rebuilds: int
    cells: int
    busy_s: float
    watched_s: float
    workloads: int
    labs: int
    lab_s: float


FULL = Effort(
    rounds=41,
    messages={"host": 1000, "cuda": 4000},
    products={"host": 10, "cuda": 3000},
    settling=40,
    calls=50,
    telling_s=0.05,
    nbytes={"host": 64 << 20, "cuda": 1 << 30},
    kernels=7,
    losses=20,
    rebuilds=7,
    cells=21,
    busy_s=1.0,
    watched_s=0.4,
    workloads=15,
    labs=24,
    lab_s=0.5,
)
QUICK = Effort(
    rounds=3,
    messages={"host": 300, "cuda": 1000},
    products={"host": 2, "cuda": 100},
    settling=40,
    calls=20,
    telling_s=0.01,
    nbytes={"host": 4 << 20, "cuda": 64 << 20},
    kernels=2,
    losses=2,
    rebuilds=2,
    cells=3,
    busy_s=0.1,
    watched_s=0.1,
    workloads=1,
    labs=1,
    lab_s=0.3,
)
