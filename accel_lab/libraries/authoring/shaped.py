"""Messages that say in one line which shapes they take and make; `infer` follows from it.

It is written as text and compiled when the class is made, so that it costs what one written by
hand costs.
"""

import ast
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias, TypeVar

from accel_lab.compute.arrays.dtypes import complex_of, real_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec, operand_fields
from accel_lab.compute.message.results import tuple_of
from accel_lab.libraries.authoring.operand import (
    coefficient,
    one_dtype,
    require_out,
    require_scaled,
    result,
)
from accel_lab.libraries.authoring.options import Factor
from accel_lab.libraries.authoring.signature import (
    BATCH,
    Signature,
    Taken,
    broadcast_batch,
    parse,
)

R = TypeVar("R")
DtypeRule: TypeAlias = str | Callable[[str], str]
"""A dtype, or what makes a result's of the operands'."""


def same(dtype: str) -> str:
    """Return the dtype of the operands."""
    return dtype


class Shaped(Operation[R], frozen=True, array_like=True, eq=False):
    """A message whose `infer` follows from `shapes`, unless it has one of its own.

    Its operands have one dtype, and each `Factor` is a number of it. What more there is to refuse,
    as an axis that is none, a method `check` does. A result in `asked_by` is there if it is asked
    for. Where `shapes` end with `->?`, a method `makes` returns the specs of the results; it is
    called when all else was checked.

    Attributes:
        shapes: as `signature` says.
        broadcasts: whether `...` stands for shapes that broadcast; else they are equal.
        results: the dtype of each result, `same`, `real_of`, `complex_of`, or always this one.
        in_place: the operands that `out` may be.
        scaled_by: of operands that may be None the factor of each, given with it and not without
            it; where it is 0 the operand is not read.
        instead: what to send for operands of another number of axes.
    """

    shapes: ClassVar[str] = ""
    broadcasts: ClassVar[bool] = False
    results: ClassVar[tuple[DtypeRule, ...]] = (same,)
    in_place: ClassVar[tuple[str, ...]] = ()
    scaled_by: ClassVar[Mapping[str, str]] = {}
    instead: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "infer" in vars(cls) and (unused := [n for n in ("check", "makes") if n in vars(cls)]):
            raise TypeError(
                f"{cls.__name__} has an `infer` of its own, and nobody calls its `{unused[0]}`: "
                "let `shapes` end with ->? and write `makes` instead of `infer`"
            )
        if "shapes" in vars(cls) and "infer" not in vars(cls):
            made = infer_of(cls, parse(cls.shapes))
            setattr(cls, made.__name__, made)


def operands_in(kind: type[Operation[Any]]) -> tuple[str, ...]:
    """Return the fields that a message reads, in their order: all buffers but `out`."""
    required, optional, _ = operand_fields(kind)
    hints = typing.get_type_hints(kind)
    return tuple(name for name in hints if name in {*required, *optional} - {"out"})


def infer_of(kind: type[Shaped[Any]], signature: Signature) -> Callable[[Any], Any]:
    """Return the `infer` of a message: it gives one Spec, or a tuple of several.

    Raises:
        TypeError: the message has more operands than its signature, or fewer; or results; or it
            has no `makes` where the signature leaves the results to it.
    """
    hints = typing.get_type_hints(kind, include_extras=True)
    operands = operands_in(kind)
    optional = operand_fields(kind)[1]
    of_text = [taken.optional for taken in signature.takes]
    if [name in optional for name in operands] != of_text:
        raise TypeError(
            f"{kind.__name__} has the operands {', '.join(operands) or 'none'}, and its shapes "
            f"are {signature.text}"
        )
    if not signature.makes and not hasattr(kind, "makes"):
        raise TypeError(
            f"the shapes of {kind.__name__} do not say what it makes: give it a method `makes` "
            "that returns the Spec of its result, or a tuple of them"
        )
    if signature.makes and len(kind.results) != len(signature.makes):
        raise TypeError(
            f"{kind.__name__} has {len(kind.results)} results, and its shapes are {signature.text}"
        )
    space: dict[str, Any] = {
        "AccelRef": AccelRef,
        "Spec": Spec,
        "broadcast_batch": broadcast_batch,
        "coefficient": coefficient,
        "one_dtype": one_dtype,
        "operands": operands,
        "require_out": require_out,
        "require_scaled": require_scaled,
        "result": result,
        "signature": signature,
    }
    refs = ", ".join(f"ref{at}" for at in range(len(operands)))
    first = of_text.index(False)
    lines = [f"ref{at} = self.{name}" for at, name in enumerate(operands)]
    lines += [f"dtype = ref{first}.dtype"]
    for at, may_be_none in enumerate(of_text):
        if at != first:
            given = f"ref{at} is not None and " * may_be_none
            # Nearly always it is the same object, which costs less than to compare two.
            lines += [
                f"if {given}ref{at}.dtype is not dtype and ref{at}.dtype != dtype:",
                f"    one_dtype(self, ref{first}, {refs})",
            ]
    taken, batch = _taken(signature, broadcasts=kind.broadcasts)
    lines += taken
    lines += _factors(kind, hints, operands)
    if hasattr(kind, "check"):
        lines += ["self.check()"]
    lines += _made(signature, kind, batch, space) if signature.makes else ["spec0 = self.makes()"]
    if "out" in hints:
        apart = [at for at, name in enumerate(operands) if name not in kind.in_place]
        lines += ["out = self.out", "if out is not None:"]
        lines += [f"    require_out(self, out, spec0{''.join(f', ref{at}' for at in apart)})"]
    lines += [f"return {', '.join(_returned(signature, kind))}"]
    text = "def infer(self):\n" + "".join(f"    {line}\n" for line in lines)
    exec(compile(text, f"<infer of {kind.__name__}>", "exec"), space)  # noqa: S102 - of names alone
    made: Callable[[Any], Any] = space["infer"]
    made.__module__, made.__qualname__ = kind.__module__, f"{kind.__qualname__}.infer"
    made.__doc__ = f"Return what {signature.text} makes of the operands' shapes."
    return made


def _factors(
    kind: type[Shaped[Any]], hints: dict[str, Any], operands: tuple[str, ...]
) -> list[str]:
    """Return what refuses a number that the operands' dtype does not have."""
    lines: list[str] = []
    scales = {factor: name for name, factor in kind.scaled_by.items()}
    for name, hint in hints.items():
        if name in scales:
            ref = f"ref{operands.index(scales[name])}"
            lines += [f"if {ref} is not None or self.{name} is not None:"]
            lines += [f"    require_scaled(self, {scales[name]!r}, {ref}, {name!r}, dtype)"]
        elif hint == Factor:
            lines += [f"coefficient(self, {name!r}, self.{name}, dtype)"]
        elif Factor in typing.get_args(hint):
            lines += [f"if self.{name} is not None:"]
            lines += [f"    coefficient(self, {name!r}, self.{name}, dtype)"]
    return lines


def _taken(signature: Signature, *, broadcasts: bool) -> tuple[list[str], str]:
    """Return what binds each extent to `n_…`, and the name of the leading axes."""
    refuse = f"    raise signature.refusal(self, operands, broadcasts={broadcasts})"
    lines: list[str] = []
    names: dict[str, str] = {}
    batches: list[str] = []
    for at, taken in enumerate(signature.takes):
        if not taken.optional:
            lines += _bound(at, taken, names, refuse)
            batches += [_batch(at, taken)] if BATCH in taken.axes else []
    leading = batches[0] if batches else ""
    if len(batches) > 1 and signature.bare:
        lines += [f"batch = {' or '.join(batches)}"]
        leading = "batch"
        for one in batches:
            lines += [f"if {one} and {one} != batch:", refuse]
    elif len(batches) > 1:
        lines += [f"if not {' == '.join(batches)}:"]
        together = f"broadcast_batch(self, signature, operands, {', '.join(batches)})"
        lines += [f"    {leading} = {together}" if broadcasts else refuse]
    for name, made in signature.defined.items():
        lines += [f"n_{name} = {_renamed(made, names)}"]
        names[name] = f"n_{name}"
    for at, taken in enumerate(signature.takes):
        if taken.optional:
            inside = _bound(at, taken, names, refuse)
            if BATCH in taken.axes:
                one = _batch(at, taken)
                inside += [f"if {f'{one} and ' * signature.bare}{one} != {leading}:", refuse]
            lines += [f"if ref{at} is not None:", *(f"    {line}" for line in inside)]
    return lines, leading


def _batch(at: int, taken: Taken) -> str:
    return f"batch{at}" if taken.inner else f"shape{at}"


def _bound(at: int, taken: Taken, names: dict[str, str], refuse: str) -> list[str]:
    """Return what binds the extents of one operand, or compares those that are bound."""
    inner = taken.inner
    lines = [f"shape{at} = ref{at}.shape"]
    if BATCH not in taken.axes:
        lines += [f"if len(shape{at}) != {len(inner)}:", refuse]
    elif inner:
        lines += [f"if len(shape{at}) < {len(inner)}:", refuse]
        lines += [f"batch{at} = shape{at}[:-{len(inner)}]"]
    compared: list[tuple[str, str]] = []
    places = [f"shape{at}[{place}]" for place in range(-len(inner), 0)]
    if taken.turned_by:
        places = [f"row{at}", f"column{at}"]
    for place, axis in enumerate(inner):
        known = axis if axis.isdecimal() else names.get(axis)
        if known is not None:
            compared += [(places[place], known)]
            continue
        names[axis] = f"n_{axis}"
        if taken.turned_by:
            places[place] = names[axis]
        else:
            lines += [f"{names[axis]} = {places[place]}"]
    if taken.turned_by:
        last = f"shape{at}[-2:]" if BATCH in taken.axes else f"shape{at}"
        lines += [
            f"turn = self.{taken.turned_by}",
            'if turn == "n":',
            f"    {', '.join(places)} = {last}",
            'elif turn == "t" or turn == "c":',
            f"    {', '.join(places[::-1])} = {last}",
            "else:",
            f"    raise signature.no_turn(self, {taken.turned_by!r})",
        ]
    for one, other in compared:
        lines += [f"if {one} != {other}:", refuse]
    return lines


def _renamed(text: str, names: dict[str, str]) -> str:
    """Return an expression with the names of extents as the function has them."""
    tree = ast.parse(text, mode="eval")
    for one in ast.walk(tree):
        if isinstance(one, ast.Name):
            one.id = names.get(one.id, one.id)
    return ast.unparse(tree)


def _made(
    signature: Signature, kind: type[Shaped[Any]], batch: str, space: dict[str, Any]
) -> list[str]:
    """Return what makes `spec0`, `spec1` and so on."""
    lines: list[str] = []
    taken = [one.axes for one in signature.takes if not one.optional]
    for at, (axes, rule) in enumerate(zip(signature.makes, kind.results, strict=True)):
        space[f"rule{at}"] = rule
        dtype = "dtype" if rule is same else f"rule{at}(dtype)" if callable(rule) else f"rule{at}"
        inner = "".join(
            f"{axis}, " if axis.isdecimal() else f"n_{axis}, " for axis in axes if axis != BATCH
        )
        shape = f"(*{batch}, {inner})" if BATCH in axes and inner else f"({inner})"
        if axes == (BATCH,):
            shape = batch
        # What an operand has, or has nothing of, is never too large.
        grows = axes and (axes not in taken or kind.broadcasts or signature.bare)
        make = "result(self, " if grows else "Spec("
        lines += [f"spec{at} = {make}{shape}, {dtype})"]
    return lines


def _returned(signature: Signature, kind: type[Shaped[Any]]) -> list[str]:
    """Return the spec of each result; None if the option that asks for it does not."""
    if not signature.makes:
        return ["spec0"]
    specs = [f"spec{at}" for at in range(len(signature.makes))]
    if kind.asked_by:
        for at, name in enumerate(tuple_of(kind)._fields):
            if by := kind.asked_by.get(name):
                specs[at] += f" if self.{by} else None"
    return specs


__all__ = ["DtypeRule", "Shaped", "complex_of", "infer_of", "real_of", "same"]
