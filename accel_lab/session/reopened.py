"""What came back when a session was opened."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from accel_lab.display.summary import as_html, as_text
from accel_lab.session.store.commit import names_of


@dataclass(frozen=True)
class Reopened:
    """Which names are there again, and which are not, with the reason.

    Attributes:
        path: of the folder.
        commit: the number of the commit that it was; 0 of a new folder.
        cell: the cell behind which that was made.
        bound: the names that are bound again.
        lost: why others are not.
        later: why some of the bound ones cannot be used.
        left: the names that this kernel had bound already, and that were left alone.
        cells: how many `%%gpu` cells have run again.
        failed: how the last of these failed that did; empty if none has.
    """

    path: str
    commit: int = 0
    cell: int | None = None
    bound: tuple[str, ...] = ()
    lost: dict[str, str] = field(default_factory=dict)
    later: dict[str, str] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    cells: int = 0
    failed: str = ""

    def lines(self) -> Iterator[tuple[str, str]]:
        """Give it as (what, which)."""
        where = "" if self.cell is None else f", after cell {self.cell}"
        yield "folder", self.path
        yield "commit", f"{self.commit}{where}" if self.commit else "none yet"
        if self.commit:
            yield "bound again", names_of(dict.fromkeys(self.bound))
        if self.cells:
            failed = f"; the last that failed: {self.failed}" if self.failed else ""
            yield "run again", f"{self.cells} %%gpu cells{failed}"
        if self.left:
            yield "bound already", f"{', '.join(self.left)}: left as this kernel has them"
        for name, why in self.lost.items():
            yield "not here", f"{name}: {why}"
        for name, why in self.later.items():
            yield "not usable", f"{name}: {why}"

    def __repr__(self) -> str:
        return as_text("session", self.lines(), 14)

    def _repr_html_(self) -> str:
        return as_html("session", self.lines())
