"""All findings, as text for a terminal, as a table for a notebook, as JSON for a program."""

from collections.abc import Iterator
from itertools import groupby

import msgspec
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from accel_lab.display.printed import Printed
from accel_lab.display.table import as_html, within
from accel_lab.doctor.finding import Backend, Finding, State

GLYPHS: dict[State, str] = {"ok": "✓", "limited": "!", "missing": "✗"}
COLUMNS = ("state", "what", "found", "disables", "command")
STYLES: dict[State, str] = {"ok": "green", "limited": "yellow", "missing": "red"}


class Report(Printed, msgspec.Struct, frozen=True, kw_only=True):
    """What `examine` found.

    Attributes:
        schema: the version of this layout; it grows when a field changes its meaning or goes.
        version: accel_lab's own version.
        host: whether the host backend can run.
        cuda: whether the cuda backend can run, as far as packages, driver and cards tell.
        findings: every finding, in the order of the topics.
    """

    schema: int = 1
    version: str
    host: bool
    cuda: bool
    findings: tuple[Finding, ...]

    def __getitem__(self, name: str) -> Finding:
        """Look a finding up by its name.

        Raises:
            KeyError: nothing of this name was looked at.
        """
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(name)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw a table of what is there, then each gap with the command that closes it."""
        del console, options
        table = Table(title=f"accel_lab {self.version}", box=None, title_justify="left")
        for heading in ("", "what", "found"):
            table.add_column(heading, overflow="fold")
        for _, group in groupby(self.findings, key=lambda finding: finding.topic):
            for finding in group:
                glyph = Text(GLYPHS[finding.state], STYLES[finding.state])
                table.add_row(glyph, Text(finding.name), Text(finding.found))
            table.add_section()
        yield table
        for command, gaps in self._gaps().items():
            lines = [
                f"{', '.join(names)}: what does not work is {text}" for text, names in gaps.items()
            ]
            yield Text("\n" + "\n".join(lines))
            if command:
                yield Text(f"  {command}", "bold", no_wrap=True, overflow="ignore")
        yield Text("\n" + "; ".join(self._verdicts()))

    def _repr_html_(self) -> str:
        """Show a plain semantic table in a notebook."""
        title = f"accel_lab {self.version}: {'; '.join(self._verdicts())}"
        return as_html(title, COLUMNS, map(_cells, self.findings), head=1)

    def _gaps(self) -> dict[str, dict[str, list[str]]]:
        """File the names of what is not ok under the command that mends it and what they cost."""
        gaps: dict[str, dict[str, list[str]]] = {}
        for finding in self.findings:
            if finding.state != "ok":
                costs = gaps.setdefault(finding.command, {})
                costs.setdefault(finding.disables, []).append(finding.name)
        return gaps

    def _verdicts(self) -> Iterator[str]:
        """Say of each backend whether it can run, and if not, why not."""
        backends: tuple[tuple[Backend, bool], ...] = (("host", self.host), ("cuda", self.cuda))
        for backend, runs in backends:
            blockers = ", ".join(f.name for f in self.findings if backend in f.blocks)
            yield f"{backend}: can run" if runs else f"{backend}: cannot run (see {blockers})"


def _cells(finding: Finding) -> tuple[str, ...]:
    state = f"{GLYPHS[finding.state]} {finding.state}"
    command = within("code", finding.command) if finding.command else ""
    return state, finding.name, finding.found, finding.disables, command
