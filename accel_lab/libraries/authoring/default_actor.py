"""The handler that most messages have: read the operands, make the output, call the backend.

The backend's method has the message's name in lower case and is given the message, the array of
each operand, None where there is none, the array to write, and each `Factor` as a number of the
operands' dtype: `solve(self, m, a, b, out, alpha)`. An operand is None, too, where its factor is 0.
Of several results `out` is their NamedTuple, with None for what is not asked for. Where the message
has a method `judge`, the backend's returns a status on the device for it, see `Launch.check`.
For a message whose result shares memory (`aliased`) it is given `m` and the operand's array, and
returns the view.

If the backend has `solve_again` with the same parameters, that returns what enqueues the same once
more, or None. It is asked when a message that writes in place comes a second time.

A library's own actor has methods for what needs more; one without an actor has none to write.
"""

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from accel_lab.compute.execution.launch import Launch, LibraryActor, handled_by, handles
from accel_lab.compute.message.operation import Operation, operand_fields
from accel_lab.compute.message.results import results_of
from accel_lab.libraries.authoring.operand import array_of, element, output
from accel_lab.libraries.authoring.options import Factor, factors_of, hints_of
from accel_lab.libraries.authoring.registration import Kind, actors_in, function_name, messages
from accel_lab.libraries.authoring.shaped import operands_in
from accel_lab.library_modules import class_name


class DefaultActor(LibraryActor):
    """Owns the stream of a library in one context, and what the backend keeps for it."""

    def statistics(self) -> Mapping[str, int]:
        """Return what the backend counts, if it does."""
        counted = getattr(self.lib, "statistics", None)
        return counted() if counted else super().statistics()


def actor_of(library: str, module: ModuleType) -> type[LibraryActor]:
    """Return a library's actor, with the default handler of each message that it has none for."""
    kinds = [kind for kind in messages() if kind.library == library]
    own = actors_in(module)
    if own:
        (actor,) = own
    else:
        name = class_name(library, "") + "Actor"
        actor = type(name, (DefaultActor,), {"library": library, "__module__": module.__name__})
    complete(actor, kinds)
    return actor


def complete(actor: type[LibraryActor], kinds: Iterable[Kind]) -> None:
    """Give an actor the default handler of each message for which it has none."""
    for kind in set(kinds) - handled_by(actor).keys():
        setattr(actor, function_name(kind), handles(kind)(default_handler(kind)))


def parameters(kind: Kind) -> list[str]:
    """Return what a backend's method for a message takes, `self` and `m` before all."""
    operands = [*operands_in(kind)]
    return operands if kind.aliased else [*operands, "out", *factors_of(kind)]


def default_handler(kind: Kind) -> Callable[[Any, Operation[Any], Launch], None]:
    """Return the handler of a message of this type.

    It is written as text and compiled, so that it costs what one written by hand costs.
    """
    name, operands = function_name(kind), operands_in(kind)
    space: dict[str, Any] = {"output": output, "element": element, "array_of": array_of}
    text = f"def {name}(self, m, launch):\n" + "".join(
        f"    {line}\n" for line in (_view if kind.aliased else _call)(kind, name, operands)
    )
    exec(compile(text, f"<handler of {kind.__name__}>", "exec"), space)  # noqa: S102 - of names alone
    handle: Callable[[Any, Operation[Any], Launch], None] = space[name]
    handle.__module__, handle.__doc__ = __name__, f"Enqueue one {kind.__name__}."
    return handle


def _view(kind: Kind, name: str, operands: tuple[str, ...]) -> list[str]:
    (of,) = operands
    assert kind.aliased == of, kind
    return [
        "spec = m.infer()",  # refuses what is out of range, where the notebook could not
        f"launch.view(m.{of}, self.lib.{name}(m, array_of(m.{of})), *spec)",
    ]


def _call(kind: Kind, name: str, operands: tuple[str, ...]) -> list[str]:
    required, optional, _ = operand_fields(kind)
    scaled_by: Mapping[str, str] = getattr(kind, "scaled_by", {})
    factors, hints = factors_of(kind), hints_of(kind)
    has_out = "out" in optional
    named = "".join(f", {one!r}" for one in operands)
    lines = [f"out = output(launch{named})" if has_out else "out = launch.empty()"]
    if results_of(kind) is not None:
        lines = ["out = launch.empties()"]
    lines += [f"r_{one} = m.{one}" for one in operands]
    if factors:
        lines += [f"dtype = r_{required[0]}.dtype" if required else "dtype = m.dtype_key"]
    scales = {factor: one for one, factor in scaled_by.items()}
    for factor in factors:
        made = f"element(m, {factor!r}, m.{factor}, dtype)"
        if factor in scales:
            made = f"0 if r_{scales[factor]} is None else {made}"
        elif hints[factor] != Factor:
            made = f"None if m.{factor} is None else {made}"
        lines += [f"f_{factor} = {made}"]
    for one in operands:
        read = f"launch.read(r_{one})"
        if one in scaled_by:
            read = f"{read} if f_{scaled_by[one]} else None"
        elif one in optional:
            read = f"None if r_{one} is None else {read}"
        lines += [f"a_{one} = {read}"]
    given = ", ".join(["m", *(f"a_{one}" for one in operands), "out", *(f"f_{f}" for f in factors)])
    call = f"self.lib.{name}({given})"
    lines += [f"launch.check({call}, m.judge)" if hasattr(kind, "judge") else call]
    if has_out:
        reads = "".join(f"m.{one}, " for one in operands)
        lines += [
            "if launch.comes_again and m.out is not None:",
            f'    again = getattr(self.lib, "{name}_again", None)',
            "    if again is not None:",
            f"        reads = tuple([one for one in ({reads}) if one is not None])",
            f"        launch.prepare(again({given}), reads=reads, writes=(m.out,))",
        ]
    return lines
