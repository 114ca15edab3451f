"""A table below a cell that stays as new as what it shows, for as long as that runs."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

REFRESH_S = 0.25


class LiveTables:
    """The outputs of a notebook in which somebody looks at a pipeline.

    Parameters:
        now: returns what is to be seen, which shows itself in a notebook.
    """

    def __init__(self, now: Callable[[], Any]) -> None:
        self._now = now
        self._handles: list[Any] = []

    def add(self) -> None:
        """Show it here; as text where there is no notebook."""
        interactive = sys.modules.get("IPython")
        if interactive is None or interactive.get_ipython() is None:
            sys.stdout.write(f"{self._now()!r}\n")
            return
        from IPython.display import display

        self._handles.append(display(self._now(), display_id=True))  # type: ignore[no-untyped-call]

    def refresh(self) -> None:
        """Have each output show what is to be seen now."""
        for handle in self._handles:
            handle.update(self._now())

    async def follow(self) -> None:
        """Refresh until this is cancelled."""
        while True:
            await asyncio.sleep(REFRESH_S)
            self.refresh()
