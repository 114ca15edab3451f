"""The names of a session as they were after one of its cells, and how two such moments differ."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.display.summary import as_html, as_text
from accel_lab.session.decoder import DEFINED, Decoder, NeedsCells, NeedsLeave
from accel_lab.session.store.commit import Commit, names_of

SHOWN = 3
"""How many values of an array are told."""


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

    def __iter__(self) -> Iterator[str]:
        return iter(self.commit.names)

    def __len__(self) -> int:
        return len(self.commit.names)

    def said(self, name: str) -> Any:
        """Return what the commit says of a name, with all that it shares written out."""
        return _written_out(self.commit, self.commit.names.get(name), set())

    def made_by(self, name: str) -> dict[tuple[str, str, int], str]:
        """Return the messages that make a buffer: session, device and number, with their names."""
        said = self.said(name)
        is_made = isinstance(said, list) and said and said[0] == "made"
        return self._decoder.messages(said[5]) if is_made else {}

    def __repr__(self) -> str:
        return repr(self.commit)


@dataclass(frozen=True)
class Difference:
    """What differs between two moments.

    Attributes:
        before, after: the commits.
        new, gone: names of which there is one only after, or only before.
        changed: how each of the others has changed.
        first: the first message that one of them is made by after and not before, by the name of
            what it made different; empty where only bytes are kept.
    """

    before: int
    after: int
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    changed: dict[str, str] = field(default_factory=dict)
    first: str = ""

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
        return as_html(f"commits {self.before} and {self.after}", self.lines())


def difference(before: Moment, after: Moment) -> Difference:
    """Compare two moments; what may differ of buffers is made and fetched for that. Blocks."""
    changed: dict[str, str] = {}
    firsts: list[tuple[tuple[str, str, int], str]] = []
    for name in (one for one in before if one in after):
        if before.said(name) == after.said(name):
            continue
        how = _how(before, after, name)
        if how:
            changed[name] = how
            known = before.made_by(name)
            added = [one for one in after.made_by(name).items() if one[0] not in known]
            firsts += [(place, f"{text}, which makes {name} differ") for place, text in added[:1]]
    first = min(firsts, default=(None, ""))[1]
    new = tuple(name for name in after if name not in before.commit.names)
    gone = tuple(name for name in before if name not in after.commit.names)
    return Difference(before.commit.number, after.commit.number, new, gone, changed, first)


def _how(before: Moment, after: Moment, name: str) -> str:
    """Return how a value has changed; empty if it has not."""
    try:
        one, other = before[name], after[name]
    except KeyError:
        return "it is of another cell's text, or of other code"
    if isinstance(one, AccelRef) and isinstance(other, AccelRef):
        one, other = (ref.device.get(ref).result() for ref in (one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return _arrays(one, other)
    return "" if _are_equal(one, other) else f"{_short(one)} -> {_short(other)}"


def _arrays(one: Any, other: Any) -> str:
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return f"{one.dtype}{list(one.shape)} -> {other.dtype}{list(other.shape)}"
    apart = (one != other) & ~((one != one) & (other != other))  # noqa: PLR0124 - NaN
    if not (count := int(apart.sum())):
        return ""
    where = np.flatnonzero(apart)[:SHOWN]
    values = ", ".join(f"{one.flat[at]} -> {other.flat[at]}" for at in where)
    more = ", …" if count > SHOWN else ""
    return f"{count} of {one.size} elements: {values}{more}"


def _are_equal(one: Any, other: Any) -> bool:
    with suppress(Exception):
        return type(one) is type(other) and bool(one == other)
    return False


def _short(value: object) -> str:
    most = 60
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"


def _written_out(commit: Commit, node: Any, ahead: set[int]) -> Any:
    """Return a node with the objects in place of their numbers; what holds itself has a number."""
    if not isinstance(node, list):
        return node
    if node and node[0] == "o":
        if node[1] in ahead:
            return node
        return _written_out(commit, commit.objects[node[1]], ahead | {node[1]})
    return [_written_out(commit, part, ahead) for part in node]
