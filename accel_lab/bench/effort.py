"""How much is measured: enough for stable medians, or just enough to see that it works."""

import msgspec


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """The size of each benchmark.

    Attributes:
        rounds: interleaved rounds of each comparison.
        messages: small messages in a round.
        products: device-bound products in a round.
        calls: single calls, each waited for, in a round.
        nbytes: the size of a transfer, by backend.
        losses: contexts lost on purpose, of each kind.
        watched_s: seconds of a round with a view, and of one without.
    """

    rounds: int
    messages: int
    products: int
    calls: int
    nbytes: dict[str, int]
    losses: int
    watched_s: float


FULL = Effort(
    rounds=41,
    messages=1000,
    products=10,
    calls=50,
    nbytes={"host": 64 << 20, "cuda": 256 << 20},
    losses=20,
    watched_s=0.4,
)
QUICK = Effort(
    rounds=5,
    messages=300,
    products=2,
    calls=20,
    nbytes={"host": 4 << 20, "cuda": 64 << 20},
    losses=2,
    watched_s=0.1,
)
