"""What a view's buttons do: a message from the front end becomes a call, on a thread of its own.

A handler of a kernel's comms must return at once, in whichever thread it runs; a call may wait for
a device. So commands queue, and one thread carries them out in their order.
"""

import queue
import sys
import threading
import traceback
from typing import Any, Protocol

from accel_lab.errors import InvalidArgument


class Commanded(Protocol):
    """What has commands: its methods `do_NAME`."""

    @property
    def name(self) -> str:
        """Of the front end."""


_waiting: queue.SimpleQueue[tuple[Commanded, dict[str, Any]]] = queue.SimpleQueue()
_starting = threading.Lock()
_thread: threading.Thread | None = None


def take(view: Commanded, content: Any) -> None:
    """Queue a command of the front end, `{"do": NAME, …}`; any thread, does not block."""
    global _thread  # noqa: PLW0603 - one thread a process, started by the first command
    if not isinstance(content, dict) or "do" not in content:
        return
    _waiting.put((view, content))
    with _starting:
        if _thread is None or not _thread.is_alive():
            _thread = threading.Thread(target=_run, name="accel_lab commands", daemon=True)
            _thread.start()


def take_anywhere(comm: Any) -> None:
    """Have what the page sends taken in the subshell that it names, also while a cell runs.

    From 7.4 on ipykernel has it wait for the shell that last sent something, which is the cells'.
    """
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = lambda _, named: named  # noqa: SLF001  (there is no other way)


def _run() -> None:
    while True:
        view, content = _waiting.get()
        try:
            obey(view, **content)
        except Exception as error:  # noqa: BLE001 - said, and the next command is carried out
            sys.stderr.write(f"{content.get('do')}: {error}\n")
            if not isinstance(error, InvalidArgument):
                traceback.print_exception(error)
        del view, content


def obey(view: Commanded, /, do: str, **fields: Any) -> None:
    """Carry out one command of a view; blocks as the call does that it stands for.

    Raises:
        InvalidArgument: the view has no such command.
    """
    deed = getattr(view, f"do_{do}", None)
    if deed is None:
        raise InvalidArgument(f"the view {view.name!r} has no command {do!r}")
    deed(**fields)
