"""A real IPython in the test's process, as `get_ipython()` returns it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from accel_lab.compute.output import cell_origin


class Shell:
    """Runs cells, and keeps what they showed."""

    def __init__(self, shell: Any) -> None:
        self.ipython = shell
        self.published: list[dict[str, Any]] = []

    def __call__(self, source: str) -> Any:
        """Run a cell and return its value; what it raised is kept in `error`."""
        done = self.ipython.run_cell(source, store_history=True)
        self.error = done.error_in_exec or done.error_before_exec
        return done.result

    def complete(self, line: str) -> set[str]:
        """Return what a notebook offers at the end of a line."""
        with provisionalcompleter():
            return {found.text for found in self.ipython.Completer.completions(line, len(line))}


@contextmanager
def shell() -> Iterator[Shell]:
    """Open an IPython without a history file, a terminal or colours."""
    config = Config()
    config.HistoryManager.enabled = False
    ipython: Any = InteractiveShell.instance(config=config, colors="nocolor")
    made, program = Shell(ipython), cell_origin.current()
    ipython.display_pub.publish = lambda data, *_, **__: made.published.append(data)
    try:
        yield made
    finally:
        ipython.restore_sys_module_state()
        InteractiveShell.clear_instance()
        cell_origin._current = program
