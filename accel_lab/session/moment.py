"""The names of a session as they were after one of its cells, and how two such moments differ."""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple

import numpy as np

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.display.sizes import size
from accel_lab.display.sketch import Sketch, sketch, svg
from accel_lab.display.summary import as_html, as_text
from accel_lab.errors import AccelError
from accel_lab.libraries.jit.kernel import Kernel
from accel_lab.session.decoder import DEFINED, Decoder, NeedsCells, NeedsLeave
from accel_lab.session.plain.encoder import OWN, fields_of
from accel_lab.session.store.commit import Commit, names_of

SHOWN = 3
"""How many values of an array are told where it differs."""
FEW = 4
"""So many values are told of an array that has no more."""


class Moment(Mapping[str, Any]):
    """What names stood for at a commit: `lab.at(17)["loss"]`. Buffers are made when they are used.

    They are other buffers than today's: what is written to them changes nothing else.

    Attributes:
        commit: which.
    """

    def __init__(self, commit: Commit, decoder: Decoder) -> None:
        self.commit = commit
        self._decoder = decoder

    def __getitem__(self, name: str) -> Any:
        """Return what a name stood for.

        Raises:
            KeyError: there was none, or it cannot be had; says why.
            AccelError: something of the folder is damaged.
        """
        if name not in self.commit.names:
            raise KeyError(f"{name}: {self.commit.lost.get(name, 'there was no such name')}")
        try:
            value = self._decoder.value(name)
        except (NeedsLeave, NeedsCells) as error:
            raise KeyError(f"{name}: {error}") from None
        if value is DEFINED:
            raise KeyError(f"{name}: it was defined by the text of a cell")
        return value

    def __contains__(self, name: object) -> bool:
        """Whether there was such a name, though it may need leave to be had."""
        return name in self.commit.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.commit.names)

    def __len__(self) -> int:
        return len(self.commit.names)

    def said(self, name: str) -> Any:
        """Return what the commit says of a name, with all that it shares written out."""
        return _written_out(self.commit, self.commit.names.get(name), frozenset())

    def made_by(self, name: str) -> dict[tuple[str, str, int], str]:
        """Return the messages that make a buffer: session, device and number, with their names."""
        said = self.said(name)
        is_made = isinstance(said, list) and said and said[0] == "made"
        return self._decoder.messages(said[5]) if is_made else {}

    def __repr__(self) -> str:
        return repr(self.commit)


class Change(NamedTuple):
    """How a value has changed.

    Attributes:
        how: in words.
        before, after: what it was, in short.
        sketch: of both, where they have a picture.
    """

    how: str
    before: str = ""
    after: str = ""
    sketch: Sketch | None = None


@dataclass(frozen=True)
class Difference:
    """What differs between two moments; in a notebook it draws what the first message has changed.

    Attributes:
        before, after: the commits.
        new, gone: names of which there is one only after, or only before.
        changed: how each of the others has changed.
        first: the first message that one of them is made by after and not before, by the name of
            what it made different; empty where only bytes are kept.
        first_name: that name.
        changes: more of each that has changed.
    """

    before: int
    after: int
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    changed: dict[str, str] = field(default_factory=dict)
    first: str = ""
    first_name: str = ""
    changes: dict[str, Change] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.new or self.gone or self.changed)

    def lines(self) -> Iterator[tuple[str, str]]:
        """Give it as (what, which)."""
        if self.new:
            yield "new", names_of(dict.fromkeys(self.new))
        if self.gone:
            yield "gone", names_of(dict.fromkeys(self.gone))
        for name, how in self.changed.items():
            yield "changed", f"{name}: {how}"
        if self.first:
            yield "first message", self.first
        if not self:
            yield "equal", "every name stands for the same"

    def __repr__(self) -> str:
        return as_text(f"commits {self.before} and {self.after}", self.lines(), 14)

    def _repr_html_(self) -> str:
        table = as_html(f"commits {self.before} and {self.after}", self.lines())
        change = self.changes.get(self.first_name)
        if change is None or change.sketch is None:
            return table
        drawn = svg(change.sketch, f"commit {self.before}", f"commit {self.after}")
        data = b64encode(drawn.encode()).decode()
        what = escape(f"{self.first_name}: {change.how}", quote=True)
        return (
            f'{table}<figure><img alt="{what}" src="data:image/svg+xml;base64,{data}">'
            f"<figcaption>{what}</figcaption></figure>"
        )


def difference(before: Moment, after: Moment, most_bytes: int | None = None) -> Difference:
    """Compare two moments; what may differ of buffers is made and fetched for that. Blocks.

    Parameters:
        most_bytes: of larger buffers it is only said that other messages have made them, and of
            those that cannot be made why.
    """
    changes: dict[str, Change] = {}
    firsts: list[tuple[tuple[str, str, int], str, str]] = []
    for name in (one for one in before if one in after):
        if before.said(name) == after.said(name):
            continue
        try:
            change = _change(before, after, name, most_bytes)
        except AccelError as error:
            if most_bytes is None:
                raise
            change = Change(f"it cannot be made again: {error}")
        if change is not None:
            changes[name] = change
            known = before.made_by(name)
            added = [one for one in after.made_by(name).items() if one[0] not in known]
            firsts += [(place, text, name) for place, text in added[:1]]
    _, text, name = min(firsts, default=(None, "", ""))
    first = f"{text}, which makes {name} differ" if text else ""
    new = tuple(name for name in after if name not in before.commit.names)
    gone = tuple(name for name in before if name not in after.commit.names)
    numbers = before.commit.number, after.commit.number
    changed = {name: change.how for name, change in changes.items()}
    return Difference(*numbers, new, gone, changed, first, name, changes)


def _change(before: Moment, after: Moment, name: str, most_bytes: int | None) -> Change | None:
    """Return how a value has changed; None if it has not."""
    try:
        one, other = before[name], after[name]
    except KeyError:
        return Change("it is of another cell's text, or of other code")
    if isinstance(one, AccelRef) and isinstance(other, AccelRef):
        if most_bytes is not None and (nbytes := max(one.nbytes, other.nbytes)) > most_bytes:
            limit = f"{size(nbytes)}, and up to {size(most_bytes)} are compared here"
            return Change(f"other messages make it, of {limit}", what_of(one), what_of(other))
        one, other = (ref.device.get(ref).result() for ref in (one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        how = _arrays(one, other)
        return Change(how, what_of(one), what_of(other), sketch(one, other)) if how else None
    if _are_equal(one, other, most_bytes):
        return None
    short = _short(one), _short(other)
    return Change(" -> ".join(short), *short)


def what_of(value: Any) -> str:
    """Say in short what a value is; makes nothing."""
    if isinstance(value, np.ndarray) and value.size <= FEW:
        return np.array2string(value, separator=", ", threshold=FEW)
    if isinstance(value, np.ndarray | AccelRef):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    return _short(value)


def _arrays(one: Any, other: Any) -> str:
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return f"{one.dtype}{list(one.shape)} -> {other.dtype}{list(other.shape)}"
    if one.dtype.hasobject:
        pairs = zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)
        apart = np.array([not _are_equal(*pair) for pair in pairs], bool)
    else:
        apart = (one != other) & ~((one != one) & (other != other))  # noqa: PLR0124 - NaN
    if not (count := int(apart.sum())):
        return ""
    where = np.flatnonzero(apart)[:SHOWN]
    values = ", ".join(f"{one.flat[at]} -> {other.flat[at]}" for at in where)
    more = ", …" if count > SHOWN else ""
    return f"{count} of {one.size} elements: {values}{more}"


def _are_equal(one: Any, other: Any, most_bytes: int | None = None) -> bool:
    """Whether two values are, with the buffers in them; NaN is equal to NaN.

    Parameters:
        most_bytes: a larger buffer counts as another, if other messages have made it.

    Raises:
        AccelError: a buffer cannot be made again.
    """
    with suppress(RecursionError):  # of what holds itself
        if isinstance(one, AccelRef) and isinstance(other, AccelRef):
            return _are_equal_buffers(one, other, most_bytes)
        if type(one) is type(other):
            return _are_equal_values(_parts(one), _parts(other), most_bytes)
    return False


def _are_equal_buffers(one: AccelRef, other: AccelRef, most_bytes: int | None) -> bool:
    if one is other:
        return True
    if most_bytes is not None and max(one.nbytes, other.nbytes) > most_bytes:
        return False
    values = [ref.device.get(ref).result() for ref in (one, other)]
    return not _arrays(*values)


def _are_equal_values(one: Any, other: Any, most_bytes: int | None) -> bool:
    if isinstance(one, np.ndarray):
        return not _arrays(one, other)
    if isinstance(one, dict):
        pairs = [(value, other.get(key)) for key, value in one.items()]
        return one.keys() == other.keys() and all(_are_equal(*pair, most_bytes) for pair in pairs)
    if isinstance(one, list | tuple):
        found = (_are_equal(*pair, most_bytes) for pair in zip(one, other, strict=False))
        return len(one) == len(other) and all(found)
    with suppress(AccelError, ValueError, TypeError):
        return bool(one == other) or bool(one != one and other != other)  # noqa: PLR0124 - NaN
    return False


def _parts(value: Any) -> Any:
    """Return what a kernel, or a library's record, is told apart by; all else as it is."""
    if isinstance(value, Kernel):
        return [value.source, value.name, value.options, value.headers, dict(value.globals)]
    fields = fields_of(type(value)) if type(value).__module__.startswith(OWN) else None
    return value if fields is None else [getattr(value, field) for field in fields]


def _short(value: object) -> str:
    most = 60
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"


def _written_out(commit: Commit, node: Any, ahead: frozenset[int]) -> Any:
    """Return a node with the objects in place of their numbers; what holds itself has a number.

    What a cell has defined is told by the key of its text, too.
    """
    if not isinstance(node, list):
        return node
    if node and node[0] == "defined":
        return [*node, commit.definitions.get(node[1], "")]
    if node and node[0] == "o":
        if node[1] in ahead:
            return node
        return _written_out(commit, commit.objects[node[1]], ahead | {node[1]})
    return [_written_out(commit, part, ahead) for part in node]
