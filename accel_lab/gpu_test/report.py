"""What was tried and what became of it, as a table for a terminal and as JSON for a program."""

from itertools import groupby

import msgspec
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from accel_lab.display.counts import counted
from accel_lab.display.printed import Printed
from accel_lab.gpu_test.outcome import Outcome

GLYPHS = {True: Text("✓", "green"), False: Text("✗", "red")}


class Report(Printed, msgspec.Struct, frozen=True, kw_only=True):
    """What `run` found.

    Attributes:
        schema: the version of this layout; it grows when a field changes its meaning or goes.
        version: accel_lab's own version.
        backend: what computed.
        devices: what each device is, by its name.
        outcomes: everything that was tried, in order.
        unchecked: libraries that the backend has, and of which nothing was tried.
    """

    schema: int = 1
    version: str
    backend: str
    devices: dict[str, str]
    outcomes: tuple[Outcome, ...]
    unchecked: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether something of every library ran, and all of it was right."""
        right = all(one.state == "right" for one in self.outcomes)
        return right and bool(self.outcomes) and not self.unchecked

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw one line an operation and device, and one for each dtype that is not right."""
        del console, options
        yield Text(f"accel_lab {self.version.partition('+')[0]}, {self.backend} backend", "bold")
        for name, model in self.devices.items():
            yield Text(f"{name}: {model}")
        table = Table(box=None, pad_edge=False)
        for heading in ("", "what", "where", "dtypes"):
            table.add_column(heading, overflow="fold")
        table.add_column("seconds", justify="right")
        for (name, device), group in groupby(self.outcomes, lambda one: (one.name, one.device)):
            same = list(group)
            seconds = f"{sum(one.seconds for one in same):.2f}"
            right = [one.dtype for one in same if one.state == "right"]
            if right:
                dtypes = Text(" ".join(right).strip())
                table.add_row(GLYPHS[True], Text(name), Text(device), dtypes, seconds)
            for one in same:
                if one.state != "right":
                    said = Text(f"{one.dtype} {one.state}: {one.said}".strip(), "red")
                    table.add_row(GLYPHS[False], Text(name), Text(device), said, seconds)
        yield table
        for library in self.unchecked:
            yield Text(f"✗ nothing of {library} was tried", "red")
        yield Text(f"\n{self.verdict}", "bold green" if self.ok else "bold red")

    @property
    def verdict(self) -> str:
        """What it comes to, in one line."""
        wrong = sum(one.state != "right" for one in self.outcomes)
        tried = counted(len(self.outcomes), "check")
        if not self.outcomes:
            return "nothing ran"
        on = "; no GPU was tested" if self.backend != "cuda" else ""
        if wrong:
            return f"{wrong} of {tried} not right{on}"
        if self.unchecked:
            return f"{tried} right, and some libraries were not tried{on}"
        return f"{tried}, all right{on}"
