"""A function that is made of a message is one like any other, and sends what it always sent."""

import inspect
import sys
import traceback
from collections.abc import Callable
from typing import Any, ClassVar, Literal, cast, get_type_hints

import msgspec
import numpy as np
import pytest

from accel_lab import array, blas, fft
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.function import function, named
from accel_lab.libraries.authoring.operand import Scalar
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.authoring.shape import Integers

MADE: dict[str, Callable[..., Any]] = {
    "(a, b, c=None, *, alpha=1.0, beta=None, trans_a='n', trans_b='n', out=None, "
    "compute='')": blas.gemm,
    "(a, x, y=None, *, alpha=1.0, beta=None, trans='n', out=None)": blas.gemv,
    "(x, y, *, alpha=1.0, out=None)": blas.axpy,
    "(x, alpha, *, out=None)": blas.scal,
    "(x, y, *, conjugate=False)": blas.dot,
    "(x)": blas.nrm2,
    "(x, *, out=None)": array.copy,
    "(x, shape, *, view=False)": array.reshape,
    "(x, axes=None)": array.transpose,
    "(op, x, axis=None, *, keepdims=False, ddof=0, dtype=None, out=None)": array.reduce,
    "(x, *, s=None, axes=None, norm=None, out=None, inverse=False)": fft.c2c,
}
"""What each is called with."""


@pytest.mark.parametrize("parameters", MADE)
def test_a_function_is_called_as_before(parameters: str) -> None:
    made = inspect.signature(MADE[parameters])
    bare = [one.replace(annotation=one.empty) for one in made.parameters.values()]
    assert str(inspect.Signature(bare)) == parameters
    assert made.return_annotation is AccelRef


@pytest.mark.parametrize("one", MADE.values(), ids=lambda one: one.__name__)
def test_a_function_has_its_name_its_help_and_its_place(one: Callable[..., Any]) -> None:
    assert one.__name__ == one.__qualname__ == one.__code__.co_name
    assert getattr(sys.modules[one.__module__], one.__name__) is one  # so it is pickled by its name
    kind = getattr(inspect.getmodule(one), one.__name__.title().replace("_", ""))
    shown = inspect.getdoc(one) or ""
    assert shown.startswith(inspect.getdoc(kind) or "-")
    assert f"Sends `{kind.__name__}` and does not block." in shown


def test_fields_are_shown_as_what_may_be_given() -> None:
    hints = get_type_hints(blas.gemm)
    factor = Scalar | AccelRef
    assert (hints["alpha"], hints["beta"], hints["c"]) == (factor, factor | None, AccelRef | None)
    assert get_type_hints(array.reduce)["axis"] == Integers | None
    assert get_type_hints(array.zeros)["shape"] == Integers


def test_integers_dtypes_and_truths_of_any_kind_are_sent_as_they_can_travel() -> None:
    device = Sent()
    x, true, three = Held(1, device), cast("Any", np.True_), cast("Any", np.int8(3))
    array.reduce("std", x, np.int64(1), keepdims=true, ddof=three, dtype=np.dtype(">f8"))
    array.reduce("sum", x, [0, three])
    sent = [msgspec.structs.astuple(one)[2:] for one in device.messages]
    assert sent == [((1,), True, 3, "float64", None), ((0, 3), False, 0, None, None)]
    assert [type(one) for one in sent[0]] == [tuple, bool, int, str, type(None)]
    for wrong, said in (
        ({"axis": "x"}, "axis must be integers, not 'x'"),
        ({"keepdims": np.ones(2)}, "keepdims is to be True or False"),
        ({"dtype": "float31"}, "dtype 'float31' is not one of"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            array.reduce("sum", x, **wrong)


def test_one_that_makes_a_buffer_of_nothing_is_given_a_device_first() -> None:
    made = inspect.signature(array.full)
    assert list(made.parameters) == ["device", "shape", "value", "dtype"]
    assert made.parameters["dtype"].default == "float32"
    with pytest.raises(InvalidArgument, match="a device comes first"):
        array.full(3, 2, 1.0)  # type: ignore[arg-type]


def scaled(name: Literal["twice", "thrice"], x: int, *, by: int = 1) -> tuple[str, int]:
    return name, x * by


_scale = named(scaled, "Return {text}, called {name}.")
twice = _scale("twice", "it two times")


def test_a_named_function_is_one_like_any_other() -> None:
    with pytest.raises(TypeError):
        twice("x", 2)  # type: ignore[call-arg, arg-type]
    assert twice(3, by=2) == ("twice", 6)
    assert str(inspect.signature(twice)) == "(x: int, *, by: int = 1) -> tuple[str, int]"
    assert twice.__name__ == twice.__qualname__ == twice.__code__.co_name == "twice"
    assert twice.__doc__ == "Return it two times, called twice."
    assert (twice.__code__.co_filename, twice.__module__) == (__file__, __name__)


class Sent:
    """A device that notes what it is asked."""

    def __init__(self) -> None:
        self.messages: list[Operation[Any]] = []

    def ask(self, message: Operation[Any]) -> Operation[Any]:
        self.messages.append(message)
        return message


class Held(AccelRef):
    """A buffer of such a device."""

    def __init__(self, number: int, device: Any = None) -> None:
        self.id = number
        self.device = device


class Mix(Operation[AccelRef], frozen=True, tag=990):
    """Mix two."""

    library: ClassVar[str] = "made_up"
    x: AccelRef
    by: Factor
    y: AccelRef | None = None
    _: Options
    beta: Factor | None = None
    out: AccelRef | None = None


def test_numbers_are_sent_as_they_can_travel() -> None:
    device = Sent()
    x = Held(1, device)
    mix = function(Mix)
    mix(x, np.float32(0.5), beta=2**70)
    mix(x, 3)
    first, second = device.messages
    assert isinstance(first, Mix)
    assert (type(first.by), type(first.beta)) == (float, float)
    assert msgspec.structs.astuple(second) == (x, 3, None, None, None)


class Turn(Operation[AccelRef], frozen=True, tag=991):
    """Turn one, or not, or as it likes."""

    library: ClassVar[str] = "made_up"
    x: AccelRef
    left: bool | None = None


def test_a_truth_that_may_be_left_out_stays_out() -> None:
    device = Sent()
    x, turn = Held(1, device), function(Turn)
    for given in (None, True, False, cast("Any", np.True_)):
        turn(x, given)
    turn(x)
    sent = [msgspec.structs.astuple(one)[1] for one in device.messages]
    assert sent == [None, True, False, True, None]


def test_the_device_is_that_of_the_first_operand() -> None:
    here, there = Sent(), Sent()
    blas.axpy(Held(1, here), Held(2, there))
    assert (len(here.messages), len(there.messages)) == (1, 0)
    with pytest.raises(InvalidArgument, match=r"an operand must be an AccelRef, not a ndarray"):
        blas.axpy(np.ones(2), Held(2, there))  # type: ignore[arg-type]


def test_options_are_given_by_keyword() -> None:
    x = Held(1, Sent())
    with pytest.raises(TypeError, match="positional"):
        blas.axpy(x, x, 2.0)  # type: ignore[call-arg]


def test_a_traceback_shows_where_the_function_was_made() -> None:
    with pytest.raises(InvalidArgument) as failed:
        blas.scal(None, 2.0)  # type: ignore[arg-type]
    frames = traceback.extract_tb(failed.value.__traceback__)
    (frame,) = [one for one in frames if one.name == "scal"]
    assert frame.filename == blas.__file__
    assert "function(Scal, by=ScalBy)" in (frame.line or "")


A, B, C, OUT = map(Held, (1, 2, 3, 4))
WIRE: dict[str, Operation[Any]] = {
    "9acc8c010203cb4000000000000000cb3ff0000000000000a174a16e04a0": blas.Gemm(
        A, B, C, alpha=2.0, beta=1.0, trans_a="t", out=OUT
    ),
    "9acc8d0102c0cb3ff0000000000000c0a16ea16304a0": blas.GemmStridedBatched(
        A, B, trans_b="c", out=OUT
    ),
    "98cc8e010203cb4000000000000000cb3ff0000000000000a17404": blas.Gemv(
        A, B, C, alpha=2.0, beta=1.0, trans="t", out=OUT
    ),
    "95cc8f0102cb3fe000000000000004": blas.Axpy(A, B, alpha=0.5, out=OUT),
    "94cc90010304": blas.Scal(A, 3, out=OUT),
    "94cc910102c3": blas.Dot(A, B, conjugate=True),
    "92cc9201": blas.Nrm2(A),
    "93660104": array.Copy(A, out=OUT),
    "97ccb40191039100a86261636b7761726404c3": fft.C2C(
        A, s=(3,), axes=(0,), norm="backward", out=OUT, inverse=True
    ),
    "986ea373756d019100c301a004": array.Reduce(
        "sum", A, (0,), keepdims=True, ddof=1, dtype="", out=OUT
    ),
    "946ba36578700104": array.Unary("exp", A, out=OUT),
    "94659102cb3ff8000000000000a7666c6f61743634": array.Full((2,), 1.5, "float64"),
    "936a01920100": array.Transpose(A, (1, 0)),
}
"""Bytes that older journals hold."""


def test_a_field_that_came_later_has_its_default_in_older_journals() -> None:
    written = bytes.fromhex("99cc8c010203cb4000000000000000cb3ff0000000000000a174a16e04")
    held = {one.id: one for one in (A, B, C, OUT)}
    read = msgspec.msgpack.decode(written, type=blas.Gemm, dec_hook=lambda _, number: held[number])
    assert (read.out, read.compute) == (OUT, "")


@pytest.mark.parametrize("written", WIRE)
def test_messages_are_read_from_older_journals(written: str) -> None:
    message = WIRE[written]
    kind = type(message)
    data = msgspec.msgpack.encode(message, enc_hook=lambda ref: ref.id)
    assert data.hex() == written
    held = {one.id: one for one in (A, B, C, OUT)}
    read = msgspec.msgpack.decode(data, type=kind, dec_hook=lambda _, number: held[number])
    assert msgspec.structs.astuple(read) == msgspec.structs.astuple(message)
