"""One line of the benchmark: what a peer does, what we do, and the budget between them."""

from typing import Literal

import msgspec

Unit = Literal["messages/s", "TFLOP/s", "µs", "GiB/s", "s", "%", "buffers"]


class Budget(msgspec.Struct, frozen=True):
    """A limit of the design (architecture.md, section 8).

    Attributes:
        limit: the number.
        sense: whether what is measured must be at least or at most that.
        of: what is held against it: our ratio to the peer, its inverse (of two times: how many
            times faster we are), or our own figure.
        unit: of our own figure.
    """

    limit: float
    sense: Literal["at least", "at most"]
    of: Literal["ratio", "speedup", "ours"] = "ratio"
    unit: Unit = "s"

    def met_by(self, value: float) -> bool:
        """Whether a value keeps it."""
        return value >= self.limit if self.sense == "at least" else value <= self.limit

    def __str__(self) -> str:
        sign = "≥" if self.sense == "at least" else "≤"
        unit = {"ratio": "", "speedup": "x faster", "ours": f" {self.unit}"}[self.of]
        return f"{sign} {self.limit:g}{unit}"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of ours beside its peer's.

    Attributes:
        name: what `--only` and programs call it, as `axpy-64`.
        group: the benchmark that measured it, as `axpy`.
        title: what was done, for people.
        unit: of `theirs` and `ours`.
        peer: what `theirs` is the figure of; empty where there is nothing to compare with.
        theirs, ours: medians of all rounds, or the percentile that the title names.
        ratio: ours to theirs: the median of the ratios of single rounds, so that a machine that
            is slow for a moment slows both sides; of percentiles, their quotient.
        low, high: the quartiles of the ratio over the rounds, None where it is one number.
        budget: what the design demands; None where it demands nothing of this backend.
        met: whether the budget is kept.
        rounds: how many rounds the medians are of.
    """

    name: str
    group: str
    title: str
    unit: Unit
    peer: str = ""
    theirs: float | None = None
    ours: float
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    budget: Budget | None = None
    met: bool | None = None
    rounds: int

    @property
    def held(self) -> float | None:
        """What is held against the budget; None where there is none."""
        if self.budget is None:
            return None
        speedup = None if self.ratio is None else 1 / self.ratio
        return {"ratio": self.ratio, "speedup": speedup, "ours": self.ours}[self.budget.of]

    @property
    def margin(self) -> float | None:
        """How many times better than its budget it is; below one it misses it."""
        if self.budget is None or self.held is None:
            return None
        times = self.held / self.budget.limit
        return times if self.budget.sense == "at least" else 1 / times


def judged(row: Row) -> Row:
    """Return the row with `met` filled in from its budget."""
    if row.budget is None or row.held is None:
        return row
    return msgspec.structs.replace(row, met=row.budget.met_by(row.held))
