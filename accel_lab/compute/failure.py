"""How a failure crosses the wire and becomes the same error on the other side."""

import contextlib
import pickle
import traceback
from pathlib import Path
from typing import Any

import cloudpickle

import accel_lab.errors as tree
from accel_lab.compute import post_mortem
from accel_lab.compute.wire import Failure
from accel_lab.errors import AccelError, DependencyFailed, LibraryError, UserCodeError

_FIELDS = (
    "asked_bytes",
    "free_bytes",
    "owners",
    "others",
    "library",
    "code",
    "name",
    "generation",
    "log",
    "frames",
)
_CAUSE_LIMIT = 64 << 10
_TOLD = 200
"""How much of the first line of a failure is told again by what depends on it."""
_PACKAGE = f"{Path(tree.__file__).parent}/"


def pack(seq: int, what: str, error: AccelError, root: int) -> Failure:
    """Describe the failure of `what`; `root` is the buffer whose message failed first."""
    fields = {name: getattr(error, name) for name in _FIELDS if hasattr(error, name)}
    if isinstance(error, LibraryError):
        what += where(error.__cause__ or error)
    cause = b""
    if isinstance(error, UserCodeError) and error.__cause__ is not None:
        with contextlib.suppress(Exception):  # an exception that does not pickle stays text
            cause = cloudpickle.dumps(error.__cause__)
    if len(cause) > _CAUSE_LIMIT:
        cause = b""
    return Failure(seq, what, type(error).__name__, str(error), fields, root, cause)


def where(error: BaseException) -> str:
    """Return the last line of this project that an error passed, for whoever has to mend it."""
    lines = traceback.extract_tb(error.__traceback__)
    ours = [line for line in lines if line.filename.startswith(_PACKAGE)]
    if not ours:
        return ""
    return f", at accel_lab/{ours[-1].filename.removeprefix(_PACKAGE)}, line {ours[-1].lineno}"


def unpack(failure: Failure, root: AccelError | None) -> AccelError:
    """Return the error a failure describes, chained to its cause."""
    kind: type[AccelError] = getattr(tree, failure.kind, AccelError)
    fields: dict[str, Any] = dict(failure.fields)
    for name in fields.keys() & {"owners", "others"}:
        fields[name] = tuple((label, size) for label, size in fields[name])
    if "frames" in fields:
        fields["frames"] = tuple(
            (*frame, [(name, text) for name, text in known]) for *frame, known in fields["frames"]
        )
    if kind is DependencyFailed and root is not None:
        error: AccelError = depends_on(root, failure.text)
    else:
        error = kind(failure.text, **fields)
    error.add_note(f"in {failure.what}")
    if isinstance(error, DependencyFailed):
        return error
    if failure.cause:
        with contextlib.suppress(Exception):  # its class may exist only in the context
            error.__cause__ = pickle.loads(failure.cause)  # noqa: S301 - our own child wrote it
    return error


def depends_on(root: AccelError, text: str) -> DependencyFailed:
    """Return the failure of what needs something that failed with `root`; it says how that did."""
    said = str(root).partition("\n")[0]
    said = said if len(said) <= _TOLD else f"{said[: _TOLD - 1]}…"
    where = next((f" {note}" for note in getattr(root, "__notes__", ())), "")
    error = DependencyFailed(f"{text}: {type(root).__name__}{where}: {said}")
    error.remedy = f"This comes of the first failure: {root.remedy}"
    error.__cause__ = root
    return error


def user_code_error(error: BaseException) -> UserCodeError:
    """Wrap what a user's function raised, with the lines of the user's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith(_PACKAGE)] or frames
    where = "".join(traceback.format_list(own)).rstrip()
    frames_told = post_mortem.frames_of(error)
    wrapped = UserCodeError(f"{type(error).__name__}: {error}\n{where}", frames=frames_told)
    wrapped.__cause__ = error
    return wrapped
