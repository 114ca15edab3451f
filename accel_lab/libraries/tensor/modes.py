"""Axes by name, as Einstein's sums have them: "ij,jk->ik", with `...` for whatever axes come there.

A name is a letter. Whatever stands at `...` is counted from its end, and may broadcast; every other
name has one extent. Without `->` the names are left that stand once, in their order, behind `...`.
"""

from collections import Counter
from functools import lru_cache
from string import ascii_letters
from typing import NamedTuple

DOTS = "..."
_MORE = 0x4E00  # letters enough, none of which can be typed by mistake: NumPy counts 32 axes


class Modes(NamedTuple):
    """A text of names, with a name for each axis at `...`.

    Attributes:
        takes: the names of each operand's axes.
        makes: those of the result's.
        extents: of each name.
    """

    takes: tuple[str, ...]
    makes: str
    extents: dict[str, int]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return tuple([self.extents[name] for name in self.makes])


@lru_cache(maxsize=4096)
def modes_of(text: str, shapes: tuple[tuple[int, ...], ...]) -> Modes:
    """Return the names of all axes of operands of these shapes.

    Raises:
        ValueError: they do not fit, and how.
    """
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ValueError(f"{text!r} has {len(terms)} operands, and {len(shapes)} are given")
    takes = [_named(term, len(shape)) for term, shape in zip(terms, shapes, strict=True)]
    extents: dict[str, int] = {}
    for names, shape in zip(takes, shapes, strict=True):
        for name, extent in zip(names, shape, strict=True):
            known = extents.setdefault(name, extent)
            if known != extent and (name in ascii_letters or 1 not in (known, extent)):
                where = f"{name} is" if name in ascii_letters else "an extent at ... is"
                raise ValueError(f"{where} {known} and {extent} in {text!r} of {_listed(shapes)}")
            extents[name] = extent if known == 1 else known
    dots = max((sum(name not in ascii_letters for name in names) for names in takes), default=0)
    at_dots = "".join(chr(_MORE + at) for at in reversed(range(dots)))
    if arrow:
        _require_term(right)
        makes = right.replace(DOTS, at_dots)
    else:
        count = Counter(name for names in takes for name in names if name in ascii_letters)
        makes = at_dots + "".join(sorted(name for name, times in count.items() if times == 1))
    for name, times in Counter(makes).items():
        if times > 1:
            raise ValueError(f"the result of {text!r} has {name} twice")
        if name not in extents:
            raise ValueError(f"no operand of {text!r} has {name}, which its result has")
    return Modes(tuple(takes), makes, extents)


def _named(term: str, ndim: int) -> str:
    """Return a name for each axis; those at `...` are numbered from their end."""
    _require_term(term)
    before, dots, behind = term.partition(DOTS)
    more = ndim - len(before) - len(behind)
    if more < 0 or (more and not dots):
        raise ValueError(f"{term!r} names {len(before + behind)} axes of an operand with {ndim}")
    return before + "".join(chr(_MORE + at) for at in reversed(range(more))) + behind


def _require_term(term: str) -> None:
    rest = term.replace(DOTS, "", 1)
    if any(name not in ascii_letters for name in rest):
        wrong = next(name for name in rest if name not in ascii_letters)
        raise ValueError(f"names are letters, at most one '...' among them, and {wrong!r} is none")


def _listed(shapes: tuple[tuple[int, ...], ...]) -> str:
    return " and ".join(str(list(shape)) for shape in shapes)
