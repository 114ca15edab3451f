"""Open a session where no cell does: JupyterLab's extension asks a kernel for it."""

from pathlib import Path

from accel_lab.errors import SessionError
from accel_lab.session.notebook import shell
from accel_lab.session.opening import open as open_session


class Told(str):
    """A line that is written as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def reopen(folder: str, backend: str) -> Told:
    """Open a folder in the notebook, with the magics there; return in a line what came back.

    Raises:
        SessionError: there is no such folder any more, or as `open`.
        AccelError: as `open`.
    """
    if not Path(folder).is_dir():
        raise SessionError(f"{folder} is not there any more")
    if (ipython := shell()) is not None:
        ipython.extension_manager.load_extension("accel_lab")
    opened = open_session(folder, backend).opened
    count = len(opened.bound)
    name = Path(folder).name
    text = f"{name} is open again: {count} name{' is' if count == 1 else 's are'} back"
    if opened.lost:
        text += f"; not back: {', '.join(opened.lost)} (lab.opened says why)"
    return Told(text)
