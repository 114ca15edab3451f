"""The function beside a message, made of its fields: `gemm = function(Gemm)`.

It is written as text and compiled, as a dataclass's `__init__`, so that it costs what one written
by hand costs, and `help`, IPython and profilers see an ordinary function.
"""

import inspect
import sys
from collections.abc import Callable
from types import GenericAlias
from typing import Any, ParamSpec, TypeVar, get_args, overload

import msgspec

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import (
    Operation,
    answered_handle,
    answers_buffer,
    operand_fields,
)
from accel_lab.compute.message.results import results_of
from accel_lab.libraries.authoring.operand import Scalar, plain
from accel_lab.libraries.authoring.options import Factor, factors_of, hints_of, options_of
from accel_lab.libraries.authoring.registration import function_name

P = ParamSpec("P")
R = TypeVar("R")
Made = TypeVar("Made", bound=Ref[Any])
T = TypeVar("T", bound=tuple[Ref[Any] | None, ...])


@overload
def function(kind: Callable[P, Operation[Made]]) -> Callable[P, Made]: ...
@overload
def function(  # type: ignore[overload-overlap]  # a tuple of buffers is answered at once
    kind: Callable[P, Operation[T]],
) -> Callable[P, T]: ...
@overload
def function(kind: Callable[P, Operation[R]]) -> Callable[P, Reply[R]]: ...


def function(kind: Any) -> Callable[..., Any]:
    """Return the function that sends a message to the device of its first operand.

    It takes the message's fields, those behind `_: Options` by keyword, and numbers of any kind.
    """
    name, fields = function_name(kind), msgspec.structs.fields(kind)
    options, numbers, hints = options_of(kind), factors_of(kind), hints_of(kind)
    first = operand_fields(kind)[0][0]
    space: dict[str, Any] = {"device_of": device_of, "plain": plain, "Message": kind}
    parameters, given = [], []
    for field in fields:
        default = field.default
        is_option = field.name in options
        if is_option and "*" not in parameters:
            parameters.append("*")
        if default is msgspec.NODEFAULT:
            parameters.append(field.name)
        else:
            space[f"_{field.name}"] = default
            parameters.append(f"{field.name}=_{field.name}")
        given.append(f"plain({field.name})" if field.name in numbers else field.name)
    # A function's own names must not hide those that its body uses.
    assert space.keys().isdisjoint(field.name for field in fields), kind
    text = (
        f"def {name}({', '.join(parameters)}): "
        f"return device_of({first}).ask(Message({', '.join(given)}))"
    )
    caller = sys._getframe(1)  # noqa: SLF001 - a traceback shows where the function was made
    code = compile("\n" * (caller.f_lineno - 1) + text, caller.f_code.co_filename, "exec")
    exec(code, space)  # noqa: S102 - the text above, of the names of fields
    made: Callable[..., Any] = space[name]
    made.__module__ = kind.__module__
    made.__doc__ = _help(kind)
    made.__annotations__ = {field.name: _shown(hints[field.name]) for field in fields}
    results = results_of(kind)
    answer: Any = Reply if results is None else results.kind
    if answers_buffer(kind):
        answer = AccelRef
    elif (of := answered_handle(kind)) is not None:
        answer = GenericAlias(Handle, (of,))
    made.__annotations__["return"] = answer
    return made


def _shown(hint: Any) -> Any:
    """Return the type of a field as a user reads it."""
    if hint == Factor:
        return Scalar
    return Scalar | None if Factor in get_args(hint) else hint


def _help(kind: type[Operation[Any]]) -> str:
    text = inspect.getdoc(kind) or ""
    return f"""{text}

Sends `{kind.__name__}` and does not block.

Raises:
    InvalidArgument: the operands or options do not fit.
    UnsupportedDtype: the backend does not have it for this dtype; cast first.
"""
