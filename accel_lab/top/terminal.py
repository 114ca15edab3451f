"""The terminal: the systems, and of the chosen one its tree, kernels and faults."""

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Static

from accel_lab.errors import AccelError
from accel_lab.top import snapshot as seen
from accel_lab.top.looker import Looker
from accel_lab.top.stack import stacks
from accel_lab.views.timeline import duration

EVERY_S = 0.5
SYSTEM_COLUMNS = ("System", "Program", "PID", "Up", "State", "Not well")


class Stack(ModalScreen[None]):
    """The Python stacks of one context, above everything else."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss", "Back")]

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def compose(self) -> ComposeResult:
        """Show the text."""
        with VerticalScroll():
            yield Static(Text(self.text), id="stack")
        yield Footer()


class Top(App[None]):
    """Follows what a looker sees, twice a second; reads, and changes nothing."""

    TITLE = "accel-lab top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #headline { height: auto; text-style: bold; padding: 0 1; }
    DataTable { height: auto; max-height: 12; margin-bottom: 1; }
    #actors { max-height: 20; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("s", "stack", "Python stack of the chosen context"),
        Binding("n", "next", "Next system"),
    ]

    def __init__(self, looker: Looker) -> None:
        super().__init__()
        self._looker = looker
        self._shown: seen.Snapshot | None = None
        self.chosen = ""  # the key of the system that is shown

    def compose(self) -> ComposeResult:
        """Place the tables, which fill with the first look."""
        yield Static(id="headline")
        with VerticalScroll():
            for name in ("systems", "actors", "kernels", "faults"):
                table: DataTable[Text] = DataTable(id=name, cursor_type="row", zebra_stripes=True)
                yield table
        yield Footer()

    def on_mount(self) -> None:
        """Begin to look."""
        for name, columns in (
            ("systems", SYSTEM_COLUMNS),
            ("actors", seen.ACTOR_COLUMNS),
            ("kernels", seen.KERNEL_COLUMNS),
            ("faults", seen.FAULT_COLUMNS),
        ):
            self._table(name).add_columns(*columns)
        self.look()
        self.set_interval(EVERY_S, self.look)
        self._table("actors").focus()

    def look(self) -> None:
        """Show what is known now."""
        self._shown = found = self._looker.snapshot()
        self.query_one("#headline", Static).update(Text(seen.headline(found)))
        keys = [one.key for one in found.systems]
        if self.chosen not in keys:
            self.chosen = keys[0] if keys else ""
        self._fill("systems", _system_rows(found, self.chosen))
        one = self.system
        for name, rows in (
            ("actors", seen.actor_rows),
            ("kernels", seen.kernel_rows),
            ("faults", seen.fault_rows),
        ):
            self._fill(name, _rows(rows, one))

    @property
    def system(self) -> seen.Seen | None:
        """The system that is shown; None where there is none."""
        systems = () if self._shown is None else self._shown.systems
        return next((one for one in systems if one.key == self.chosen), None)

    def action_next(self) -> None:
        """Show the next system."""
        keys = [one.key for one in self._shown.systems] if self._shown else []
        if keys:
            self.chosen = keys[(keys.index(self.chosen) + 1) % len(keys)]
            self.look()

    def on_data_table_row_selected(self, chosen: DataTable.RowSelected) -> None:
        """Show the system whose row was chosen."""
        if chosen.data_table.id == "systems" and self._shown is not None:
            self.chosen = self._shown.systems[chosen.cursor_row].key
            self.look()

    def action_stack(self) -> None:
        """Show the Python stacks of the context of the device that the cursor is in."""
        one = self.system
        above = (
            [] if one is None else seen.shown_actors(one)[: self._table("actors").cursor_row + 1]
        )
        device = next((at.path for at in reversed(above) if at.kind == "device"), None)
        actors = () if one is None else one.actors
        pids = [at.pid for at in actors if at.pid and at.path.startswith(f"{device}/")]
        if pids:
            self._read(pids[0])
        else:
            self.notify("no context with a process is here: choose a device", severity="warning")

    @work(thread=True, exclusive=True)
    def _read(self, pid: int) -> None:
        """Have py-spy read a process, while the terminal goes on."""
        try:
            text = stacks(pid)
        except AccelError as error:
            self.call_from_thread(self.notify, str(error), severity="error", timeout=15)
        else:
            self.call_from_thread(self.push_screen, Stack(text))

    def _table(self, name: str) -> "DataTable[Text]":
        return self.query_one(f"#{name}", DataTable)

    def _fill(self, name: str, rows: Sequence[tuple[str, ...]]) -> None:
        """Make a table's rows these, and leave its cursor where it is."""
        table = self._table(name)
        table.display = bool(rows)
        row, top = table.cursor_row, table.scroll_y
        table.clear()
        for cells in rows:
            table.add_row(*map(Text, cells))
        table.move_cursor(row=min(row, max(0, len(rows) - 1)), scroll=False)
        table.scroll_to(y=top, animate=False)


def _rows(
    rows: Callable[[seen.Seen], Iterator[tuple[str, ...]]], of: seen.Seen | None
) -> list[tuple[str, ...]]:
    return [] if of is None else list(rows(of))


def _system_rows(found: seen.Snapshot, chosen: str) -> list[tuple[str, ...]]:
    return [
        (
            f"{'▸' if one.key == chosen else ' '} {one.name}",
            one.program,
            str(one.pid),
            duration(one.up_s),
            one.state,
            "; ".join(one.wrong),
        )
        for one in found.systems
    ]
