"""How a failure crosses the wire and becomes the same error on the other side."""

import contextlib
import linecache
import pickle
import re
import traceback
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from textwrap import indent
from typing import Any

import cloudpickle

import accel_lab.errors as tree
from accel_lab.compute.wire import main_classes
from accel_lab.compute.wire.codec import FRAME_LIMIT, Failure
from accel_lab.display.failure import place_of
from accel_lab.errors import (
    AccelError,
    DependencyFailed,
    LibraryError,
    OutOfMemory,
    UserCodeError,
)

_OF_TUPLES = frozenset(
    ("owners", "others", "owner_ids", "kept_by", "unwritten", "libraries", "library_names")
)
_FIELDS = (
    "asked_bytes",
    "free_bytes",
    "largest_free_bytes",
    "owners",
    "owner_ids",
    "kept_by",
    "others",
    "libraries",
    "library_names",
    "library",
    "code",
    "name",
    "generation",
    "log",
    "frames",
    "unwritten",
    "buffer",
)
_CAUSE_LIMIT = 64 << 10
_TEXT_LIMIT = FRAME_LIMIT // 8
_NAME_LIMIT = 1 << 10
_FRAMES_LIMIT = FRAME_LIMIT // 2
"""How many bytes a text may take, one that is a name or a value, and all frames together."""
_LINKS = 8
"""How many exceptions of a chain are told and carried over."""
_PLACE = re.compile(r'^  File "([^"\n]+)", line (\d+), in (.+)$', re.MULTILINE)
_CELL = re.compile(r"^(gpu cell \d+) (#\d+)")
_TOLD = 200
"""How much of the first line of a failure is told again by what depends on it."""
_PACKAGE = f"{Path(tree.__file__).parent}/"


def pack(
    seq: int, what: str, error: AccelError, root: int, withheld: tuple[int, ...] = ()
) -> Failure:
    """Describe the failure of `what`; `root` is the buffer whose message failed first.

    All of it fits into a frame, whatever the user's code has put into it.

    Parameters:
        withheld: the buffers that it should have written.
    """
    fields = {
        name: _sendable(getattr(error, name), _TEXT_LIMIT if name == "log" else _NAME_LIMIT)
        for name in _FIELDS
        if hasattr(error, name)
    }
    if "frames" in fields:
        fields["frames"] = _innermost(fields["frames"])
    if isinstance(error, LibraryError):
        what += where(error.__cause__ or error)
    cause = b""
    if isinstance(error, UserCodeError | OutOfMemory) and error.__cause__ is not None:
        cause = _packed(error.__cause__)
    kind, text = fitting(type(error).__name__, _NAME_LIMIT), fitting(text_of(error))
    return Failure(seq, fitting(what, _NAME_LIMIT), kind, text, fields, root, cause, withheld)


def fitting(text: str, most: int = _TEXT_LIMIT) -> str:
    """Return text that can be encoded, without its middle where it takes more than `most` bytes."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) > most:
        cut, half = f" … {len(data) - most:,} bytes … ".encode(), most // 2
        data = data[:half] + cut + data[-half:]
    return data.decode("utf-8", "ignore")


def text_of(error: BaseException) -> str:
    """Return what an exception says; never raises, though a class of the user's may."""
    try:
        return str(error)
    except BaseException as raised:  # noqa: BLE001 - even an exit is no reason not to tell it
        return f"<its str raised {type(raised).__name__}>"


def _sendable(value: Any, most: int) -> Any:
    """Return a field whose texts fit."""
    if isinstance(value, str):
        return fitting(value, most)
    if isinstance(value, list | tuple):
        return [_sendable(one, most) for one in value]
    return value


def _innermost(frames: list[Any]) -> list[Any]:
    """Return as many frames as fit."""
    left, fit = _FRAMES_LIMIT, len(frames)
    while fit and left > 0:
        fit -= 1
        left -= len(pickle.dumps(frames[fit]))
    return frames[fit + (left < 0) :]


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
    for name in fields.keys() & _OF_TUPLES:
        fields[name] = tuple(map(tuple, fields[name]))
    if "frames" in fields:
        fields["frames"] = tuple(
            (*frame, [(name, text) for name, text in known]) for *frame, known in fields["frames"]
        )
    if kind is DependencyFailed and root is not None:
        error: AccelError = depends_on(root, failure.text, **fields)
    else:
        error = kind(_with_lines(failure.text), **fields)
    error.add_note("in " + _CELL.sub(r"\1, message \2", failure.what))
    if isinstance(error, DependencyFailed):
        return error
    if failure.cause:
        error.__cause__ = _unpacked(failure.cause)
    return error


def depends_on(root: AccelError, text: str, unwritten: tuple[Any, ...] = ()) -> DependencyFailed:
    """Return the failure of what needs something that failed with `root`; it says how that did.

    Where that needed something itself, it says how that failed, so that chains stay short.
    """
    if isinstance(root, DependencyFailed) and isinstance(root.__cause__, AccelError):
        root = root.__cause__
    said = str(root).partition("\n")[0]
    said = said if len(said) <= _TOLD else f"{said[: _TOLD - 1]}…"
    where = next((f" {note}" for note in getattr(root, "__notes__", ())), "")
    told = f"{text}: {type(root).__name__}{where}: {said}"
    error = DependencyFailed(told, unwritten=unwritten)
    error.remedy = f"This comes of the first failure: {root.remedy}"
    error.__cause__ = root
    return error


def user_code_error(
    error: BaseException, frames: tuple[tuple[Any, ...], ...] = ()
) -> UserCodeError:
    """Wrap what a user's function raised, with the lines of the user's own code and what led to it.

    The exception comes first, and below it what it was raised from or while handling what.

    Parameters:
        frames: what the frames knew that it has passed, as `UserCodeError` has them.
    """
    wrapped = UserCodeError(told_with_lines(error), frames=frames)
    wrapped.__cause__ = error
    return wrapped


def told_with_lines(error: BaseException) -> str:
    """Return an exception and what led to it, each with the lines of the user's own code."""
    return "\n".join(
        f"{_RAISED[caused] if n else ''}{_told(one)}"
        for n, (one, caused) in enumerate(_links(error))
    )


_RAISED = {True: "caused by ", False: "while handling "}


def _links(error: BaseException) -> Iterator[tuple[BaseException, bool]]:
    """Yield an exception and what led to it, each with whether the one before was raised from it.

    Nearest first; not all of a long chain.
    """
    one: BaseException | None = error
    caused, seen = True, set[int]()
    while one is not None and id(one) not in seen and len(seen) < _LINKS:
        yield one, caused
        seen.add(id(one))
        caused = one.__cause__ is not None
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def _told(error: BaseException) -> str:
    """Return an exception with the lines of the user's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith(_PACKAGE)]
    if isinstance(error, SyntaxError):  # where it stands is no frame
        if error.text is None and error.filename and error.lineno:
            error.text = linecache.getline(error.filename, error.lineno) or None
        written = traceback.format_exception_only(error)
        where = [*traceback.format_list(own), *takewhile(lambda line: line[:1] == " ", written)]
    else:
        where = traceback.format_list(own or frames)
    told = f"{type(error).__name__}: {text_of(error)}\n{''.join(where)}".rstrip()
    if isinstance(error, BaseExceptionGroup):
        told += _told_of_group(error.exceptions)
    return told


def _told_of_group(errors: tuple[BaseException, ...]) -> str:
    """Return what a group holds, each below a line of its own; not all of a large one."""
    told = "".join(f"\n{indent(_told(one), '  ')}" for one in errors[:_LINKS])
    more = len(errors) - _LINKS
    return f"{told}\n  and {more} more" if more > 0 else told


def _packed(error: BaseException) -> bytes:
    """Pickle an exception and what led to it, as far as that pickles and is small.

    Each by itself, for a class may exist only in the context.
    """
    links: list[tuple[bytes, bool]] = []
    with contextlib.suppress(BaseException):  # an exception that does not pickle stays text
        for one, caused in _links(error):
            links.append((cloudpickle.dumps(one), caused))
    while links and sum(len(data) for data, _ in links) > _CAUSE_LIMIT:
        links.pop()
    return pickle.dumps(links) if links else b""


def _unpacked(data: bytes) -> BaseException | None:
    """Rebuild an exception and what led to it, as far as their classes are known here."""
    first: BaseException | None = None
    last: BaseException | None = None
    with contextlib.suppress(Exception):
        for packed, caused in pickle.loads(data):  # noqa: S301 - our own child wrote it
            one: BaseException = main_classes.loads(packed)
            if last is None:
                first = one
            elif caused:
                last.__cause__ = one
            else:
                last.__context__ = one
            last = one
    return first


def _with_lines(text: str) -> str:
    """Put a notebook's cells and their lines into a traceback that a context has written.

    A context knows the files of cells, and not what is in them.
    """

    def told(found: re.Match[str]) -> str:
        file, number, function = found.groups()
        place = place_of(file)
        if not place:
            return found[0]
        line = linecache.getline(file, int(number)).strip()
        known = not line or text.startswith("\n    ", found.end())
        where = f"  {place}, line {number}, in {function}"
        return where if known else f"{where}\n    {line}"

    return _PLACE.sub(told, text)
