"""Open a session's folder, a new one or one that another process has left."""

import os
import time
from typing import Any

from accel_lab.compute.output import cell_origin
from accel_lab.compute.residency.notebook_names import names as names_here
from accel_lab.compute.residency.notebook_names import notebook
from accel_lab.errors import InvalidArgument, SessionError
from accel_lab.session.notebook import shell
from accel_lab.session.session import Session, refuse, running
from accel_lab.session.store.commit import Commit
from accel_lab.session.store.folder import Folder, is_being_left
from accel_lab.system import System

CLOSING_S = 5.0
"""So long the end of a session takes at most, beyond what it waits for."""
LOOK_S = 0.02


def open(  # noqa: A001 - as of files
    folder: str | os.PathLike[str],
    backend: str = "auto",
    devices: int | list[int] | None = None,
    *,
    run_code: bool | None = None,
    commit: int | None = None,
    names: dict[str, Any] | None = None,
    **options: Any,
) -> Session:
    """Open a folder as a session: its names are bound again, and each cell is committed to it.

    A folder that is not there is made. Buffers are made again when they are first used, by their
    messages, on whatever backend and devices this system has; plain data is there at once. What
    does not come back is in the answer's `opened`, with the reason. A folder that this process has
    open already is that very session. One whose session nobody has any more is waited for.

    Parameters:
        backend, devices, options: as of `System`; there is no `journal` and no `recover`.
        run_code: whether code in the folder may run: functions, kernels, cells' definitions,
            imports. What this user has committed may where nothing is said. True also runs all
            `%%gpu` cells again where a name stood for an object of theirs. Give leave only to a
            folder that you trust, as to a pickle.
        commit: the number of an earlier commit to come back to; the last one when not given.
        names: the namespace whose names are kept; the notebook's, or the program's, when not given.
            Names that are bound there already are left alone, but for those of a closed system.

    Raises:
        SessionError: it is open elsewhere, of a later version, no session's, or unusable; or open
            here at another commit, or with other leave.
        SessionDamaged: a file of it is damaged or missing; the text names it.
        InvalidArgument: an option does not fit.
        AccelError: as `System`.
    """
    refuse(options)
    if not isinstance(folder, str | os.PathLike):
        raise InvalidArgument(f"open() takes the path of a folder, not {folder!r}")
    real = os.path.realpath(folder)
    taken = _taken(folder, real)
    if isinstance(taken, Session):
        taken.require(commit=commit, run_code=run_code)
        return taken
    space, found = names_here() if names is None else names, taken
    try:
        before = _commit(found, commit)
        session = Session(found, space, backend, devices, **options)
    except BaseException:
        found.close()
        raise
    session.leave = run_code
    try:
        if before is not None:
            session.restore(before[0], is_ours=before[1])
    except BaseException:
        session.close()
        raise
    running[real] = session
    if space is notebook():
        session.follow(shell())
        tell(session)
    return session


def _taken(folder: str | os.PathLike[str], real: str) -> Folder | Session:
    """Lock a folder, or return the session that this process has of it.

    One that was dropped and not closed is closed by a thread of its own, which is waited for.

    Raises:
        SessionError: as `open`.
    """
    until = time.monotonic() + System.finish_s + CLOSING_S
    while True:
        before = running.get(real)
        if before is not None and not before.is_closed and not before.is_dropped:
            return before
        try:
            return Folder(folder)
        except SessionError:
            if not is_being_left(folder) or time.monotonic() > until:
                raise
        time.sleep(LOOK_S)


def _commit(folder: Folder, number: int | None) -> tuple[Commit, bool] | None:
    """Return a commit and whether this user has written it; None where there is none yet.

    Raises:
        SessionError: there is no such commit.
        SessionDamaged: it, or what it names, is damaged or missing.
    """
    numbers = folder.numbers
    if not numbers and number is None:
        return None
    if number is not None and number not in numbers:
        known = f"{numbers[0]} to {numbers[-1]}" if numbers else "none"
        raise SessionError(f"{folder.path} has no commit {number}; it has {known}")
    found = folder.read(numbers[-1] if number is None else number)
    for key in sorted(found[0].contents):
        folder.require(key)
    return found


def tell(session: Session) -> None:
    """Say below the cell what has come back, and what has not."""
    opened = session.opened
    if opened.commit:
        lines = [f"  {what}: {text}" for what, text in opened.lines() if what != "folder"]
        cell_origin.current().say("\n".join([f"{session.path} is open again", *lines]))
