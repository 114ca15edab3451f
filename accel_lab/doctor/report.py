"""All findings, as text for a terminal, as a table for a notebook, as JSON for a program."""

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
NAMED = 2
"""How many of the things that are missing the first line names."""
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
        """Say whether accel_lab can run, then what is there, then how each gap is closed."""
        del console, options
        # The commit that a version of development names makes the line too long for a terminal.
        title = f"accel_lab {self.version.partition('+')[0]}: {self.verdict}\n"
        yield Text(title, "bold", no_wrap=True, overflow="ignore")
        table = Table(box=None, pad_edge=False)
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
                f"Not available because of {', '.join(names)}: {text}"
                for text, names in gaps.items()
            ]
            yield Text("\n" + "\n".join(lines))
            if command:
                yield Text(f"  {command}", "bold", no_wrap=True, overflow="ignore")

    def _repr_html_(self) -> str:
        """Show a plain semantic table in a notebook."""
        title = f"accel_lab {self.version}: {self.verdict}"
        return as_html(title, COLUMNS, map(_cells, self.findings), head=1)

    def _gaps(self) -> dict[str, dict[str, list[str]]]:
        """File the names of what is not ok under the command that mends it and what they cost."""
        gaps: dict[str, dict[str, list[str]]] = {}
        for finding in self.findings:
            if finding.state != "ok":
                costs = gaps.setdefault(finding.command, {})
                costs.setdefault(finding.disables, []).append(finding.name)
        return gaps

    @property
    def verdict(self) -> str:
        """Whether accel_lab can run here, in one line; if not, what to do."""
        if self.cuda:
            return "ready"
        if self.host:
            return f"ready without a GPU (see {self._blockers('cuda')})"
        commands = [f.command for f in self.findings if "host" in f.blocks and f.command]
        what = f"run {commands[0]}" if commands else f"see {self._blockers('host')}"
        return f"not ready: {what}"

    def _blockers(self, backend: Backend) -> str:
        """Name the first things for which a backend cannot run, and count the rest."""
        names = [finding.name for finding in self.findings if backend in finding.blocks]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        return ", ".join(names[:NAMED]) + more


def _cells(finding: Finding) -> tuple[str, ...]:
    state = f"{GLYPHS[finding.state]} {finding.state}"
    command = within("code", finding.command) if finding.command else ""
    return state, finding.name, finding.found, finding.disables, command
