"""The shapes that a message takes and makes, as NumPy's gufuncs write them: `(m,k),(k,n)->(m,n)`.

Operands come in the order of their fields, without `out`. A name is an extent, the same one
wherever it stands; a number is that extent; `...`, which stands first, is whatever axes come
before, and `...?` such as all operands have or not. `(m,n)->(k); k=min(m,n)` makes an extent of
others. `(m,n)?` is an operand that may be None. `trans(m,n)` is one whose last two axes are turned
if the option `trans` is "t" or "c", and not if it is "n". `->?` leaves the results to `makes`,
or to an `infer` of the message's own.
"""

import ast
import re
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import describe, kind

BATCH = "..."
_ITEM = re.compile(r"(?P<turned_by>\w*)\((?P<names>[^()]*)\)(?P<optional>\??)")
_LEFT = re.compile(r"\w*\([^()]*\)\??(,\w*\([^()]*\)\??)*")
_RIGHT = re.compile(r"\([^()]*\)(,\([^()]*\))*")
_CALLS = frozenset({"min", "max"})


class Taken(NamedTuple):
    """One operand.

    Attributes:
        axes: their names.
        turned_by: the option that turns the last two of them.
        optional: whether it may be None.
    """

    axes: tuple[str, ...]
    turned_by: str = ""
    optional: bool = False

    @property
    def inner(self) -> tuple[str, ...]:
        """The axes behind those at `...`."""
        return self.axes[BATCH in self.axes :]


class Signature(NamedTuple):
    """A parsed signature.

    Attributes:
        takes: the operands.
        makes: the names of each result's axes.
        defined: the extents that are made of others, and how.
        text: it as it was written, without what is defined.
        bare: whether an operand may lack what others have at `...`.
    """

    takes: tuple[Taken, ...]
    makes: tuple[tuple[str, ...], ...]
    defined: dict[str, str]
    text: str
    bare: bool = False

    def refusal(
        self, message: Operation[Any], operands: tuple[str, ...], *, broadcasts: bool
    ) -> InvalidArgument:
        """Say which operand does not fit, and what would."""
        given = [
            (name, getattr(message, name), taken)
            for name, taken in zip(operands, self.takes, strict=True)
            if getattr(message, name) is not None
        ]
        reason = _axes(message, given) or _extents(message, given)
        if not reason:
            texts = " and ".join(_is(*one[:2]) for one in given if BATCH in one[2].axes)
            reason = f"{texts}, whose axes at ... {'do not broadcast' if broadcasts else 'differ'}"
        return InvalidArgument(f"{kind(message)}: {reason}; it takes {self.text}")

    def no_turn(self, message: Operation[Any], option: str) -> InvalidArgument:
        """Say what an option may be that turns an operand."""
        said = getattr(message, option)
        return InvalidArgument(f"{kind(message)}: {option} is {said!r}; it may be 'n', 't' or 'c'")


def _axes(message: Any, given: list[tuple[str, AccelRef, Taken]]) -> str:
    for name, ref, taken in given:
        least = len(taken.inner)
        if ref.ndim < least or (ref.ndim > least and BATCH not in taken.axes):
            text = f"{_is(name, ref)}, not ({','.join(taken.axes)})"
            return f"{text}; {message.instead}" if message.instead else text
    return ""


def _extents(message: Any, given: list[tuple[str, AccelRef, Taken]]) -> str:
    seen: dict[str, tuple[int, str, str]] = {}
    for name, ref, taken in given:
        inner = taken.inner
        extents = ref.shape[len(ref.shape) - len(inner) :]
        shown = f"{name} {describe(ref)}"
        if taken.turned_by:
            turn = getattr(message, taken.turned_by)
            extents = extents if turn == "n" else extents[::-1]
            shown += f" with {taken.turned_by}={turn!r}"
        for axis, extent in zip(inner, extents, strict=True):
            known = (int(axis), "", "") if axis.isdecimal() else (extent, name, shown)
            before, where, what = seen.setdefault(axis, known)
            if before == extent:
                continue
            if not where:
                return f"{_is(name, ref)}, with {extent} in place of {axis}"
            if where == name:
                return f"{axis} is {before} and {extent} in {shown}"
            return f"{axis} is {before} in {what} and {extent} in {shown}"
    return ""


def _is(name: str, ref: AccelRef) -> str:
    return f"{name} is {describe(ref)}"


def parse(text: str) -> Signature:
    """Read a signature.

    Raises:
        TypeError: it is none.
    """
    shapes, *definitions = re.sub(r"\s", "", text).split(";")
    left, arrow, right = shapes.replace("...?", BATCH).partition("->")
    if not arrow or not _LEFT.fullmatch(left) or not (right == "?" or _RIGHT.fullmatch(right)):
        raise TypeError(f"shapes = {text!r} is no signature, as (m,k),(k,n)->(m,n)")
    takes = tuple(
        Taken(_names(one["names"]), one["turned_by"], bool(one["optional"]))
        for one in _ITEM.finditer(left)
    )
    makes = tuple(_names(one["names"]) for one in _ITEM.finditer(right))
    for axes in (*(taken.axes for taken in takes), *makes):
        for at, axis in enumerate(axes):
            if not (axis.isidentifier() or axis.isdecimal() or (axis == BATCH and at == 0)):
                raise TypeError(f"shapes = {text!r}: {axis!r} is no name of an axis")
    for taken in takes:
        if taken.turned_by and len(taken.inner) != len("mn"):
            raise TypeError(f"shapes = {text!r}: {taken.turned_by} turns two axes")
    defined = dict(one.split("=", 1) for one in definitions if "=" in one)
    required = [taken for taken in takes if not taken.optional]
    known = {axis for taken in required or takes for axis in taken.axes}
    for name, made in defined.items():
        used = {one.id for one in ast.walk(ast.parse(made)) if isinstance(one, ast.Name)}
        if not used <= known | _CALLS:
            raise TypeError(
                f"shapes = {text!r}: {name} is made of what no operand has; what depends on "
                "a field, the method `makes` says: let them end with ->?"
            )
        known.add(name)
    optional = [taken.axes for taken in takes if taken.optional]
    known |= _free(optional) if right == "?" else set()
    used_later = (*makes, *optional)
    unknown = {axis for axes in used_later for axis in axes if not axis.isdecimal()} - known
    if unknown:
        raise TypeError(f"shapes = {text!r}: no operand has {', '.join(sorted(unknown))}")
    return Signature(takes, makes, defined, shapes, "...?" in shapes)


def _free(optional: list[tuple[str, ...]]) -> set[str]:
    """Return the extents that only one of these operands has: `check` may say what they are."""
    counted = Counter(axis for axes in optional for axis in axes)
    return {axis for axis, times in counted.items() if times == 1}


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def broadcast_batch(
    message: Operation[Any],
    signature: Signature,
    operands: tuple[str, ...],
    *batches: tuple[int, ...],
) -> tuple[int, ...]:
    """Return the shape to which leading axes broadcast.

    Raises:
        InvalidArgument: there is none.
    """
    try:
        return np.broadcast_shapes(*batches)
    except ValueError:
        raise signature.refusal(message, operands, broadcasts=True) from None
