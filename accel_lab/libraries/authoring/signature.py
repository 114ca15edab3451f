"""The shapes that a message takes and makes, as NumPy's gufuncs write them: `(m,k),(k,n)->(m,n)`.

Operands come in the order of their fields, without `out` and those that may be None. A name is an
extent, the same one wherever it stands; a number is that extent; `...`, which stands first, is
whatever axes come before. `(m,n)->(k); k=min(m,n)` makes an extent of others.
"""

import ast
import re
from typing import Any, NamedTuple

import numpy as np

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import describe, kind

BATCH = "..."
_ITEM = re.compile(r"\((?P<names>[^()]*)\)")
_WHOLE = re.compile(r"\([^()]*\)(,\([^()]*\))*")
_CALLS = frozenset({"min", "max"})


class Signature(NamedTuple):
    """A parsed signature.

    Attributes:
        takes, makes: the names of each operand's and each result's axes.
        defined: the extents that are made of others, and how.
        text: it as it was written, without what is defined.
    """

    takes: tuple[tuple[str, ...], ...]
    makes: tuple[tuple[str, ...], ...]
    defined: dict[str, str]
    text: str

    def refusal(
        self, message: Operation[Any], operands: tuple[str, ...], *, broadcasts: bool
    ) -> InvalidArgument:
        """Say which operand does not fit, and what would."""
        refs: list[AccelRef] = [getattr(message, name) for name in operands]
        reason = self._axes(operands, refs) or self._extents(operands, refs)
        reason = reason or _batches(operands, refs, self.takes, broadcasts=broadcasts)
        return InvalidArgument(f"{kind(message)}: {reason}; it takes {self.text}")

    def _axes(self, operands: tuple[str, ...], refs: list[AccelRef]) -> str:
        for name, ref, axes in zip(operands, refs, self.takes, strict=True):
            count = len(axes)
            fits = ref.ndim >= count - 1 if BATCH in axes else ref.ndim == count
            if not fits:
                return f"{name} is {describe(ref)}, not ({','.join(axes)})"
        return ""

    def _extents(self, operands: tuple[str, ...], refs: list[AccelRef]) -> str:
        seen: dict[str, tuple[int, str]] = {}
        for name, ref, axes in zip(operands, refs, self.takes, strict=True):
            inner = [axis for axis in axes if axis != BATCH]
            extents = ref.shape[len(ref.shape) - len(inner) :]
            for axis, extent in zip(inner, extents, strict=True):
                known = (int(axis), "") if axis.isdecimal() else (extent, name)
                before, where = seen.setdefault(axis, known)
                if before == extent:
                    continue
                if not where:
                    return f"{name} is {describe(ref)}, with {extent} in place of {axis}"
                if where == name:
                    return f"{axis} is {before} and {extent} in {name}"
                return f"{axis} is {before} in {where} and {extent} in {name}"
        return ""


def parse(text: str) -> Signature:
    """Read a signature.

    Raises:
        TypeError: it is none.
    """
    shapes, *definitions = re.sub(r"\s", "", text).split(";")
    left, arrow, right = shapes.partition("->")
    if not arrow or not _WHOLE.fullmatch(right) or not _WHOLE.fullmatch(left):
        raise TypeError(f"shapes = {text!r} is no signature, as (m,k),(k,n)->(m,n)")
    takes, makes = _items(left), _items(right)
    for axes in (*takes, *makes):
        for at, axis in enumerate(axes):
            if not (axis.isidentifier() or axis.isdecimal() or (axis == BATCH and at == 0)):
                raise TypeError(f"shapes = {text!r}: {axis!r} is no name of an axis")
    defined = dict(one.split("=", 1) for one in definitions if "=" in one)
    known = {axis for axes in takes for axis in axes}
    for name, made in defined.items():
        used = {one.id for one in ast.walk(ast.parse(made)) if isinstance(one, ast.Name)}
        if not used <= known | _CALLS:
            raise TypeError(f"shapes = {text!r}: {name} is made of what no operand has")
        known.add(name)
    unknown = {axis for axes in makes for axis in axes if not axis.isdecimal()} - known
    if unknown:
        raise TypeError(f"shapes = {text!r}: no operand has {', '.join(sorted(unknown))}")
    return Signature(takes, makes, defined, shapes)


def _items(text: str) -> tuple[tuple[str, ...], ...]:
    found = _ITEM.finditer(text)
    return tuple(tuple(filter(None, one["names"].split(","))) for one in found)


def _batches(
    operands: tuple[str, ...],
    refs: list[AccelRef],
    takes: tuple[tuple[str, ...], ...],
    *,
    broadcasts: bool,
) -> str:
    texts = [
        f"{name} is {describe(ref)}"
        for name, ref, axes in zip(operands, refs, takes, strict=True)
        if BATCH in axes
    ]
    fault = "do not broadcast" if broadcasts else "differ"
    return f"{' and '.join(texts)}, whose axes at ... {fault}"


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
