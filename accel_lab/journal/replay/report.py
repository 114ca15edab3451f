"""The report of a replay."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from accel_lab.display.counts import counted
from accel_lab.display.summary import as_html, as_text
from accel_lab.errors import AccelError, DependencyFailed
from accel_lab.journal.entries.entry import Entry, describe
from accel_lab.journal.replay.comparison import Comparison

LISTED = 10


@dataclass(eq=False)
class ReplayReport:
    """What was run, what was not and why, and how the results compare.

    Attributes:
        system: where it was replayed, as "lab2 (host)".
        run: messages that were sent again.
        before: of these, those before `from_` that made what the others need.
        skipped: messages that change nothing and were left out, by name.
        had_failed: messages that had failed when they were recorded, and were left out.
        not_run: messages that cannot be run again, or depend on one, each with the reason.
        failed: messages that failed now, each with the error.
        equal: results that are equal bit for bit.
        within: results within the tolerance of their operation and dtype.
        differing: results beyond it, or different where no values were recorded; without values.
        first_difference: the first that is not equal bit for bit, with both values.
        first_divergence: the first of `differing`, with both values.
        begun: those that are not equal although all of their operands were; without values.
        uncompared: results of which no digest was recorded.
        seconds: how long it took.
        damage: what ends the journal early, empty when it is whole.
    """

    system: str
    run: int = 0
    before: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    had_failed: int = 0
    not_run: list[tuple[Entry, str]] = field(default_factory=list)
    failed: list[tuple[Entry, AccelError]] = field(default_factory=list)
    equal: int = 0
    within: int = 0
    differing: list[Comparison] = field(default_factory=list)
    first_difference: Comparison | None = None
    first_divergence: Comparison | None = None
    begun: list[Comparison] = field(default_factory=list)
    uncompared: int = 0
    seconds: float = 0.0
    damage: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing failed and no result is beyond its tolerance."""
        return not self.failed and not self.differing

    @property
    def compared(self) -> int:
        """How many results were compared."""
        return self.equal + self.within + len(self.differing)

    def add(self, comparison: Comparison) -> None:
        """Count one comparison."""
        if comparison.verdict == "equal":
            self.equal += 1
            return
        if self.first_difference is None:
            self.first_difference = comparison
        if comparison.verdict == "within tolerance":
            self.within += 1
        else:
            if self.first_divergence is None:
                self.first_divergence = comparison
            self.differing.append(comparison.without_values())
        if not comparison.inherited:
            self.begun.append(comparison.without_values())

    def lines(self) -> Iterator[tuple[str, str]]:
        """Give the report as (what, how much or which)."""
        before = f", {self.before} of them before the part to be replayed" if self.before else ""
        yield "run", f"{counted(self.run, 'message')} in {self.seconds:.2f} s{before}"
        if self.damage:
            yield "damaged", f"{self.damage}; what stands before that was replayed"
        if self.skipped:
            names = ", ".join(f"{count} {name}" for name, count in sorted(self.skipped.items()))
            yield "left out", f"{names}: they change nothing"
        if self.had_failed:
            yield "left out", f"{counted(self.had_failed, 'message')} that had failed when recorded"
        yield from _listed("not replayable", [(e, why) for e, why in self.not_run])
        roots = [(e, error) for e, error in self.failed if not isinstance(error, DependencyFailed)]
        yield from _listed("failed now", [(e, f"{type(x).__name__}: {x}") for e, x in roots])
        if others := len(self.failed) - len(roots):
            yield "failed now", f"{counted(others, 'message')} that depend on those"
        if self.compared:
            text = (
                f"{self.compared} results: {self.equal} equal bit for bit, {self.within} within "
                f"tolerance, {len(self.differing)} beyond it or without values"
            )
            yield "compared", text
        if self.uncompared:
            yield "not compared", f"{self.uncompared} results of which no digest was recorded"
        if self.first_difference is not None:
            yield "first difference", str(self.first_difference)
        if self.first_divergence not in (None, self.first_difference):
            yield "first beyond tolerance", str(self.first_divergence)
        if len(self.begun) > 1:
            numbers = ", ".join(str(c.entry.number) for c in self.begun[:LISTED])
            more = ", ..." if len(self.begun) > LISTED else ""
            yield "differences began at", f"{len(self.begun)} entries: {numbers}{more}"

    def __str__(self) -> str:
        return as_text(f"replayed on {self.system}", self.lines(), 24)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return as_html(f"replayed on {self.system}", self.lines())


def _listed(what: str, found: list[tuple[Entry, str]]) -> Iterator[tuple[str, str]]:
    for entry, why in found[:LISTED]:
        yield what, f"entry {entry.number}, {describe(entry)}: {why}"
    if len(found) > LISTED:
        yield what, f"{len(found) - LISTED} more"
