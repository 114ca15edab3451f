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

import accel_lab.errors as tree
from accel_lab.compute.wire import main_classes
from accel_lab.compute.wire.codec import FRAME_LIMIT, Failure
from accel_lab.compute.wire.error_fields import dumps, pack_fields, travelling, unpack_fields
from accel_lab.compute.wire.text import NAME_LIMIT, fitting, repr_of, text_of
from accel_lab.display.failure import place_of
from accel_lab.errors import (
    AccelError,
    DependencyFailed,
    LibraryError,
    OutOfMemory,
    UserCodeError,
)
from accel_lab.errors.declared_fields import rebuilt

_CAUSE_LIMIT = 64 << 10
_CLASS_LIMIT = 64 << 10
_FIELDS_LIMIT = FRAME_LIMIT // 2
"""How many bytes causes, a class and all fields may take."""
_LINKS = 8
"""How many exceptions of a chain are told and carried over."""
_PLACE = re.compile(r'^  File "([^"\n]+)", line (\d+), in (.+)$', re.MULTILINE)
_CELL = re.compile(r"^(gpu cell \d+) (#\d+)")
_TOLD = 200
"""How much of the first line of a failure is told again by what depends on it."""
_PACKAGE = f"{Path(tree.__file__).parent.parent}/"


def pack(
    seq: int, what: str, error: AccelError, root: int, withheld: tuple[int, ...] = ()
) -> Failure:
    """Describe the failure of `what`; `root` is the buffer whose message failed first.

    All of it fits into a frame, whatever the user's code has put into it.

    Parameters:
        withheld: the buffers that it should have written.
    """
    fields, notes = pack_fields(error, _FIELDS_LIMIT)
    if isinstance(error, LibraryError):
        what += where(error.__cause__ or error)
    cause = b""
    if isinstance(error, UserCodeError | OutOfMemory) and error.__cause__ is not None:
        cause = _packed(error.__cause__)
    kind, text = fitting(type(error).__name__, NAME_LIMIT), fitting(text_of(error))
    base, kind_data = _known_base(type(error)), b""
    if base is not type(error):
        try:
            kind_data = dumps(type(error), _CLASS_LIMIT)
        except BaseException as why:  # noqa: BLE001 - it arrives as its base
            notes.append(f"it is a {kind}, whose class does not pickle: {repr_of(why)}")
    return Failure(
        seq,
        fitting(what, NAME_LIMIT),
        kind,
        text,
        fields,
        root,
        cause,
        withheld,
        base.__name__,
        kind_data,
        notes,
    )


def _known_base(kind: type[AccelError]) -> type[AccelError]:
    """Return the class itself if every process has it, else the nearest base that they have."""
    for base in kind.__mro__:
        known: object = vars(tree).get(base.__name__)
        if known is base and issubclass(base, AccelError):
            return base
    return AccelError


def where(error: BaseException) -> str:
    """Return the last line of this project that an error passed, for whoever has to mend it."""
    lines = traceback.extract_tb(error.__traceback__)
    ours = [line for line in lines if line.filename.startswith(_PACKAGE)]
    if not ours:
        return ""
    return f", at accel_lab/{ours[-1].filename.removeprefix(_PACKAGE)}, line {ours[-1].lineno}"


def unpack(failure: Failure, root: AccelError | None) -> AccelError:
    """Return the error a failure describes, chained to its cause."""
    kind, notes = _class_of(failure)
    fields, lost = unpack_fields(failure.fields)
    text, first = _with_lines(failure.text), None
    if root is not None and issubclass(kind, DependencyFailed):
        first = _first(root)
        text = _told_of(first, failure.text)
    error: AccelError = rebuilt(kind, (text,))
    vars(error).update(fields)
    error.add_note("in " + _CELL.sub(r"\1, message \2", failure.what))
    for note in (*failure.notes, *notes, *lost):
        error.add_note(note)
    if first is not None:
        _chain(error, first)
    elif failure.cause:
        error.__cause__ = _unpacked(failure.cause)
    return error


def _class_of(failure: Failure) -> tuple[type[AccelError], list[str]]:
    """Return the class of a failure, or a base of it that is known here, and why."""
    base: type[AccelError] = getattr(tree, failure.base, AccelError)
    if not failure.kind_data:
        return base, []
    try:
        kind: type[AccelError] = main_classes.loads(failure.kind_data)
    except Exception as why:  # noqa: BLE001 - a module of the user's may do anything
        return base, [f"it is a {failure.kind}, which cannot be loaded here: {repr_of(why)}"]
    return kind, []


def depends_on(root: AccelError, text: str) -> DependencyFailed:
    """Return the failure of what needs something that failed with `root`; it says how that did.

    Where that needed something itself, it says how that failed, so that chains stay short.
    """
    root = _first(root)
    error = DependencyFailed(_told_of(root, text))
    _chain(error, root)
    return error


def _first(root: AccelError) -> AccelError:
    if isinstance(root, DependencyFailed) and isinstance(root.__cause__, AccelError):
        return root.__cause__
    return root


def _told_of(root: AccelError, text: str) -> str:
    said = str(root).partition("\n")[0]
    said = said if len(said) <= _TOLD else f"{said[: _TOLD - 1]}…"
    where = next((f" {note}" for note in getattr(root, "__notes__", ())), "")
    return f"{text}: {type(root).__name__}{where}: {said}"


def _chain(error: AccelError, root: AccelError) -> None:
    error.remedy = f"Fix the first failure: {root.remedy}"
    error.__cause__ = root


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
            links.append((dumps(travelling(one, _CAUSE_LIMIT), _CAUSE_LIMIT), caused))
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
