"""What the notebook knows of its namespace in one device's context, and of what a loss costs."""

import sys
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from accel_lab.compute.cells.cell_execution import Piece, Ran
from accel_lab.compute.cells.definitions import changed, definitions, globals_behind
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.notebook.names import bound_names
from accel_lab.notebook.object_ref import ObjectRef

_PAST = object()
"""In place of what the notebook has given, and has no more by that name."""
_NO_TENSOR = object(), ""


def _references(names: Mapping[str, Any], name: str) -> int:
    return sys.getrefcount(names[name])


_ALONE = _references({"x": object()}, "x") - 1
"""How many references are counted where nothing has any."""


@dataclass
class Space:
    """The namespace of one context."""

    generation: int
    bound: dict[str, Any] = field(default_factory=dict)
    """The handles that cells have left under the notebook's names."""
    tensors: dict[str, tuple[AccelRef, str]] = field(default_factory=dict)
    """Which of those handles are of PyTorch's tensors, and of what kind."""
    pieces: list[Piece] = field(default_factory=list)
    """What cells have defined that still stands, in the order in which they did."""
    changed: set[str] = field(default_factory=set)
    """What functions may change, wherever they are called."""
    private: set[str] = field(default_factory=set)
    """Names with an underscore that cells have bound: the notebook has no handles of these."""
    given: dict[str, Any] = field(default_factory=dict)
    """What cells have got of the notebook, by names that they have not bound themselves since."""
    lost: dict[str, Any] | None = None
    """What the names stood for in a context that was lost, until what can be is defined again."""
    lost_private: set[str] = field(default_factory=set)
    """Which private names were lost with it."""

    def note(self, source: str, filename: str, made: set[str]) -> None:
        """Take note of what a cell has defined, and of the names that it has bound otherwise."""
        changing = changed(source)
        self.changed |= changing
        self._note_private(source)
        found = definitions(source, self.changed)
        gone = bound_names(source) | made | found | changing
        pieces = [piece._replace(names=piece.names - gone) for piece in self.pieces]
        pieces.append(Piece(source, filename, frozenset(found)))
        self.pieces = [piece for piece in pieces if piece.names]

    def note_part(self, source: str, filename: str, made: set[str], gone: set[str]) -> None:
        """Take note of what a cell has bound and deleted that did not come to its end."""
        with suppress(SyntaxError):
            self._note_private(source)
        if not made and not gone:
            return  # perhaps it could not even be parsed
        self.changed |= changed(source)
        defined = definitions(source, self.changed)
        found = {name for name in defined if name.partition(".")[0] in made}
        pieces = [piece._replace(names=piece.names - made - gone) for piece in self.pieces]
        pieces.append(Piece(source, filename, frozenset(found)))
        self.pieces = [piece for piece in pieces if piece.names]

    def _note_private(self, source: str) -> None:
        named = {name for name in bound_names(source) if name.strip("_")}  # no `_` of a loop
        self.private |= {name for name in named if name.startswith("_")}

    def knows(self, name: str, value: Any) -> bool:
        """Whether a name of the notebook stands for what cells have bound it to."""
        return name in self.bound and self.bound[name] is value

    def handle(self, name: str) -> Any:
        """Return what the notebook has of what cells know by a name; None if it has nothing."""
        found = self.bound.get(name, self.given.get(name))
        return None if found is _PAST else found

    def let_go(self, names: Mapping[str, Any]) -> None:
        """Take note of what the notebook has deleted since: the next cell does not have it.

        An object stays at its name as long as anything in the notebook still holds its handle.

        Parameters:
            names: the notebook's.
        """
        given = self.given.items()
        self.given |= {name: _PAST for name, one in given if names.get(name, _PAST) is not one}
        deleted = {name for name in self.bound if name not in names}
        for name in deleted:
            handle = self.bound.pop(name)
            held = weakref.ref(handle)
            del handle
            if isinstance(known := held(), ObjectRef):
                self.bound[name] = known
            else:
                self.given[name] = _PAST
        self.pieces = [piece._replace(names=piece.names - deleted) for piece in self.pieces]

    def tell(self, given: dict[str, Any], gone: Iterable[str]) -> None:
        """Take note of what a cell gets, and of the names that are forgotten before it."""
        self.given |= given
        for name in gone:
            self.given.pop(name, None)
        for name in (*given, *gone):  # what cells have bound them to is not there any more
            self.bound.pop(name, None)
            self.tensors.pop(name, None)

    def only(self, names: Mapping[str, Any], *given: Mapping[str, Any]) -> list[str]:
        """Return the names of handles that nothing else in the notebook has.

        Parameters:
            names: the notebook's.
            given: what a cell gets, by name.
        """
        own = (names, self.bound, self.given, *given)
        found = []
        for name in sorted(self.bound.keys() | set[str]().union(*given)):
            if isinstance(names.get(name), Ref | ObjectRef):
                known = sum(one.get(name) is names[name] for one in own)
                known += self.tensors.get(name, _NO_TENSOR)[0] is names[name]
                if _references(names, name) - _ALONE == known:
                    found.append(name)
        return found

    def behind(self, names: Iterable[str]) -> set[str]:
        """Return the globals that functions and classes read which cells have defined so."""
        found: set[str] = set()
        ahead, seen = list(names), set[str]()
        while ahead:
            name = ahead.pop()
            if name in seen:
                continue
            seen.add(name)
            for piece in self.pieces:
                if name in piece.names:
                    read = globals_behind(piece.source, name)
                    found |= read
                    ahead += read
        return found

    def renew(self, ran: Ran) -> None:
        """Have the handles of objects that a cell has changed tell so."""
        for name, resident in ran.renewed.items():
            handle = self.bound.get(name)
            if isinstance(handle, ObjectRef):
                handle.renew(resident, ran.plain.get(name))

    def after_loss(self, generation: int) -> "Space":
        """Return what is known of the next one: the arrays come back."""
        arrays = {name: ref for name, ref in self.bound.items() if isinstance(ref, Ref)}
        return Space(
            generation,
            arrays,
            tensors=self.tensors,
            pieces=self.pieces,
            changed=self.changed,
            given=self.given,
            lost=(self.lost or {}) | self.bound,
            lost_private=self.lost_private | (self.private - self.bound.keys()),
        )
