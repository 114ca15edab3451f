"""What a command prints, for a terminal, for a notebook's cell and for a program."""

from typing import Any, ClassVar

import msgspec
from rich.console import Console


class Printed:
    """A report that Rich draws; here it is plain text and JSON, too."""

    __slots__ = ()
    width: ClassVar[int] = 100
    """Of the plain text, in characters."""

    def to_json(self) -> str:
        """Give the whole report as one indented JSON object."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    def __str__(self) -> str:
        """Give what a terminal shows, without colours."""
        console = Console(
            width=self.width, color_system=None, force_terminal=False, force_jupyter=False
        )
        with console.capture() as capture:
            console.print(self, crop=False)
        return capture.get()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: FBT001 - IPython calls it
        """Show the same text in a notebook's cell."""
        del cycle
        printer.text(str(self))
