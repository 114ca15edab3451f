"""The function beside a message, made of its fields: `gemm = function(Gemm)`.

A message that makes a buffer of none is sent to a device that comes first: `zeros = maker(Zeros)`.
Of a function whose first argument says what is computed, `named` makes one for each.

They are written as text and compiled, as a dataclass's `__init__`, so that each costs what one
written by hand costs, and `help`, IPython and profilers see an ordinary function.
"""

import inspect
import sys
from collections.abc import Callable
from types import FrameType, GenericAlias
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

import msgspec
import numpy as np

from accel_lab.actor.reply import Reply
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import Device, device_first, device_of
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import (
    Operation,
    answered_handle,
    answers_buffer,
    operand_fields,
)
from accel_lab.compute.message.results import results_of
from accel_lab.libraries.authoring.operand import element, plain
from accel_lab.libraries.authoring.options import (
    factors_of,
    hints_of,
    options_of,
    shown,
    travelling,
)
from accel_lab.libraries.authoring.registration import function_name

P = ParamSpec("P")
R = TypeVar("R")
Made = TypeVar("Made", bound=Ref[Any])
N = TypeVar("N", bound=str)
T = TypeVar("T", bound=tuple[Ref[Any] | None, ...])


@overload
def function(kind: Callable[P, Operation[Made]], by: Any = None) -> Callable[P, Made]: ...
@overload
def function(  # type: ignore[overload-overlap]  # a tuple of buffers is answered at once
    kind: Callable[P, Operation[T]],
) -> Callable[P, T]: ...
@overload
def function(kind: Callable[P, Operation[R]]) -> Callable[P, Reply[R]]: ...


def function(kind: Any, by: Any = None) -> Callable[..., Any]:
    """Return the function that sends a message to the device of its first operand.

    It takes the message's fields, those behind `_: Options` by keyword: numbers, shapes and dtypes
    of any kind. `by` is the message that is sent instead where one of the numbers is a buffer: it
    has the same fields, and each number, which is a `Scale` there, is an operand of it.
    """
    first = operand_fields(kind)[0][0]
    return _sender(kind, f"device_of({first})", sys._getframe(1), by)  # noqa: SLF001 - for tracebacks


def maker(kind: Callable[P, Operation[AccelRef]]) -> Callable[Concatenate[Device, P], AccelRef]:
    """Return the function that sends a message without operands to a device, which comes first."""
    return _sender(kind, "device_first(device)", sys._getframe(1))  # noqa: SLF001 - as above


def named(send: Callable[Concatenate[N, P], R], help_: str) -> Callable[[N, str], Callable[P, R]]:
    """Return what makes a function of a name and a text: it calls `send` with its name first.

    It takes what `send` takes behind that. Its help has the name and the text in their places.
    """
    (_, *given), hints = inspect.signature(send).parameters.values(), inspect.get_annotations(send)
    space: dict[str, Any] = {f"_{one.name}": one.default for one in given}
    parameters, arguments = [], []
    for one in given:
        if one.kind is one.KEYWORD_ONLY and "*" not in parameters:
            parameters.append("*")
        arguments.append(f"{one.name}={one.name}" if "*" in parameters else one.name)
        parameters.append(one.name if one.default is one.empty else f"{one.name}=_{one.name}")

    def make(name: N, text: str) -> Callable[P, R]:
        body = f"return send({name!r}, {', '.join(arguments)})"
        code = f"def {name}({', '.join(parameters)}): {body}"
        made = _compiled(str(name), code, {**space, "send": send}, sys._getframe(1))  # noqa: SLF001
        made.__doc__ = help_.format(name=name, text=text)
        made.__annotations__ = {one: hints[one] for one in (*(p.name for p in given), "return")}
        return made

    return make


def _sender(kind: Any, device: str, caller: FrameType, by: Any = None) -> Callable[..., Any]:
    name, fields = function_name(kind), msgspec.structs.fields(kind)
    options, hints = options_of(kind), hints_of(kind)
    space: dict[str, Any] = {"device_of": device_of, "device_first": device_first, "Message": kind}
    parameters, given = ["device"] if "(device)" in device else [], []
    for field in fields:
        if field.name in options and "*" not in parameters:
            parameters.append("*")
        if field.default is msgspec.NODEFAULT:
            parameters.append(field.name)
        else:
            space[f"_{field.name}"] = field.default
            parameters.append(f"{field.name}=_{field.name}")
        text, called = travelling(field.name, hints[field.name])
        given.append(text)
        space |= called
    # A function's own names must not hide those that its body uses.
    assert space.keys().isdisjoint(field.name for field in fields), kind
    unless = "" if by is None else _by_buffers(kind, by, device, space)
    send = f"return {unless}{device}.ask(Message({', '.join(given)}))"
    text = f"def {name}({', '.join(parameters)}): {send}"
    made = _compiled(name, text, space, caller)
    made.__doc__ = _help(kind)
    made.__annotations__ = {"device": Device} if "device" in parameters else {}
    made.__annotations__ |= {field.name: shown(hints[field.name]) for field in fields}
    for factor in () if by is None else factors_of(kind):
        made.__annotations__[factor] |= AccelRef
    results = results_of(kind)
    answer: Any = Reply if results is None else results.kind
    if answers_buffer(kind):
        answer = AccelRef
    elif (of := answered_handle(kind)) is not None:
        answer = GenericAlias(Handle, (of,))
    made.__annotations__["return"] = answer
    return made


def _by_buffers(kind: Any, by: Any, device: str, space: dict[str, Any]) -> str:
    """Return what sends the other message if a number is a buffer."""
    factors = factors_of(kind)
    is_one = " or ".join(f"isinstance({factor}, Ref)" for factor in factors)
    first = device.removeprefix("device_of(").removesuffix(")")
    given = ", ".join(
        f"{one}=as_buffer({by.__name__!r}, {one!r}, {one}, {first})"
        if one in factors
        else f"{one}={one}"
        for one in by.__struct_fields__
    )
    space |= {"Ref": Ref, "By": by, "as_buffer": _as_buffer}
    return f"{device}.ask(By({given})) if {is_one} else "


def _as_buffer(message: str, name: str, value: Any, like: AccelRef) -> Any:
    """Return a number as a 0-d buffer; a buffer, and what is not given, as it is.

    Raises:
        InvalidArgument: it is no number of the dtype.
    """
    if value is None or isinstance(value, Ref):
        return value
    number = element(message, name, plain(value), like.dtype)
    with np.errstate(all="ignore"):
        return device_of(like).put(np.array(number).astype(numpy_dtype(like.dtype)))


def _compiled(name: str, text: str, space: dict[str, Any], caller: FrameType) -> Callable[..., Any]:
    """Return the function of a text; a traceback shows where it was made."""
    code = compile("\n" * (caller.f_lineno - 1) + text, caller.f_code.co_filename, "exec")
    exec(code, space)  # noqa: S102 - texts of the names of fields and parameters
    made: Callable[..., Any] = space[name]
    made.__module__ = caller.f_globals["__name__"]
    return made


def _help(kind: type[Operation[Any]]) -> str:
    text = inspect.getdoc(kind) or ""
    return f"""{text}

Sends `{kind.__name__}` and does not block.

Raises:
    InvalidArgument: the operands or options do not fit.
    UnsupportedDtype: the backend does not have it for this dtype; cast first.
"""
