"""The contract of `libraries.fft` with its operands: untouched, in place, or refused."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, fft
from accel_lab.compute.arrays.dtypes import NAMES
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument, UnsupportedDtype
from tests.contract.samples import (
    LAYOUTS,
    Layout,
    assert_equal,
    assert_same,
    place,
    reals,
    refused,
    unanswered,
    value,
)
from tests.contract.tolerances import assert_transformed
from tests.contract.transforms import Case, cases, scipy_s

Support = Mapping[str, frozenset[str]]
Send = Callable[..., AccelRef]

FUNCTIONS: dict[str, Send] = {"fft.C2C": fft.c2c, "fft.R2C": fft.r2c, "fft.C2R": fft.c2r}


@pytest.mark.parametrize("operation", FUNCTIONS)
@pytest.mark.parametrize("dtype", NAMES)
def test_the_result_is_of_the_operand_s_precision(
    device: Device, support: Support, operation: str, dtype: str
) -> None:
    x = array.zeros(device, (2, 3), dtype)
    if dtype not in support[operation]:
        words = (operation, f"of {dtype};", *support[operation], "convert with array.cast")
        with refused(device, *words, error=UnsupportedDtype):
            FUNCTIONS[operation](x)
        return
    double = dtype in {"float64", "complex128"}
    expected = ("float64" if double else "float32", "complex128" if double else "complex64")
    got = FUNCTIONS[operation](x)
    assert got.dtype == expected[operation != "fft.C2R"]
    assert value(device, got).dtype == got.dtype


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(8,), (4, 6), (2, 3, 4), (3, 4, 2, 5)])
def test_operands_are_as_they_were(device: Device, layout: Layout, shape: tuple[int, ...]) -> None:
    """Also by `c2r`, though cuFFT and FFTW destroy what they transform to real numbers."""
    x, real = reals(0, shape, "complex128"), reals(1, shape, "float64")
    on_x, on_real = place(device, x, layout), place(device, real, layout)
    results = [
        fft.c2c(on_x),
        fft.c2c(on_x, inverse=True, s=[n + 1 for n in shape]),
        fft.c2r(on_x),
        fft.c2r(on_x, axes=0),
        fft.r2c(on_real),
    ]
    for result in results:
        result.result(timeout_s=30)
    assert len({ref.id for ref in (*results, on_x, on_real)}) == len(results) + 2
    assert_same(value(device, on_x), x)
    assert_same(value(device, on_real), real)


@settings(max_examples=40)
@given(case=cases(), inverse=st.booleans())
def test_out_of_c2c_may_be_its_operand(device: Device, case: Case, inverse: bool) -> None:  # noqa: FBT001
    x = reals(case.seed, case.shape, "complex128")
    on = place(device, x, case.layout)
    exact = scipy_s("ifftn" if inverse else "fftn", x, axes=case.axes, norm=case.norm)
    got = fft.c2c(on, axes=case.axes, norm=case.norm, inverse=inverse, out=on)
    assert got.id == on.id
    assert_transformed(value(device, on), exact, "complex128", points=case.points)


@pytest.mark.parametrize("name", ["fftn", "rfftn", "irfftn"])
@settings(max_examples=40)
@given(case=cases())
def test_out_may_be_a_part_and_the_rest_stays(device: Device, name: str, case: Case) -> None:
    s = case.s or tuple(case.shape[axis] for axis in case.axes)
    dtypes = {"fftn": "complex128", "rfftn": "float64", "irfftn": "complex128"}
    x = reals(case.seed, case.shape, dtypes[name])
    exact = scipy_s(name, x, s=s, axes=case.axes, norm=case.norm)
    around = np.full([2 * n + 1 for n in exact.shape], 9, exact.real.astype(float).dtype)
    around = around.astype(np.float64 if name == "irfftn" else np.complex128)
    base = device.put(around)
    odd = (slice(1, None, 2),) * exact.ndim
    send = {"fftn": fft.c2c, "rfftn": fft.r2c, "irfftn": fft.c2r}[name]
    on = place(device, x, case.layout)
    send(on, s=s, axes=case.axes, norm=case.norm, out=array.slice(base, odd))
    got = value(device, base)
    assert_transformed(got[odd], exact, "complex128", points=case.points)
    got[odd] = 9
    assert_equal(got, around)


def test_out_that_overlaps_the_operand_is_refused(device: Device) -> None:
    base = device.put(np.ones((4, 4), np.complex128))
    top, middle = array.slice(base, np.s_[:3]), array.slice(base, np.s_[1:])
    again = array.slice(base, np.s_[:3])
    for out in (middle, again):
        with pytest.raises(InvalidArgument, match="overlapping views of one buffer"):
            fft.c2c(top, out=out).result(timeout_s=30)
    assert_equal(value(device, base), np.ones((4, 4), np.complex128))


def test_a_chain_needs_no_answer_in_between(device: Device) -> None:
    x = reals(0, (6, 5), "float64")
    ref = device.put(x)
    for _ in range(20):
        ref = fft.irfft2(fft.rfft2(ref), (6, 5))
    np.testing.assert_allclose(value(device, ref), x, atol=1e-13)


def test_what_only_the_context_can_see_is_refused_there(device: Device) -> None:
    """The shape of an answer of `run` is unknown when the next message is sent."""
    x, four = (array.zeros(device, shape, "complex64") for shape in ((2, 3), 4))
    with unanswered(device):
        made = device.run(lambda a: a[0], x)
        assert isinstance(made, AccelRef)
        fits, axis = fft.fft(made), fft.fft(made, axis=1)
        out = fft.c2c(made, out=four)
        real = fft.rfft(made)
    with pytest.raises(InvalidArgument, match="axis 1 is none of its 1 axes"):
        axis.result(timeout_s=30)
    with pytest.raises(InvalidArgument, match=r"C2C results in complex64\[3\], but out is"):
        out.result(timeout_s=30)
    with pytest.raises(UnsupportedDtype, match=r"fft.R2C of complex64"):
        real.result(timeout_s=30)
    assert_equal(value(device, fits.result(timeout_s=30)), np.zeros(3, np.complex64))


REFUSED: dict[str, tuple[Callable[[Any], object], tuple[str, ...]]] = {
    "axis": (lambda b: fft.fft(b.x, axis=2), ("C2C", "axis 2", "2 axes", "x is complex64[3, 4]")),
    "axis from the end": (lambda b: fft.rfft(b.real, axis=-3), ("R2C", "axis -3", "float32[3, 4]")),
    "axis of a number": (lambda b: fft.fft(b.number), ("axis -1", "complex64[]")),
    "two axes of one": (lambda b: fft.fft2(b.vector), ("axis -2", "complex64[5]")),
    "axis twice": (lambda b: fft.fftn(b.x, axes=(0, -2)), ("[0, -2]", "twice")),
    "no axis": (lambda b: fft.rfftn(b.real, axes=()), ("at least one axis", "float32[3, 4]")),
    "no axis back": (lambda b: fft.irfftn(b.x, axes=()), ("C2R", "at least one axis")),
    "no axis of a number": (lambda b: fft.irfftn(b.number), ("at least one axis", "complex64[]")),
    "extents and axes": (
        lambda b: fft.fftn(b.x, (3,), axes=(0, 1)),
        ("s has 1 extents for 2 axes",),
    ),
    "more extents than axes": (lambda b: fft.fftn(b.x, (3, 3, 3)), ("3 extents", "only 2 axes")),
    "no points": (lambda b: fft.fft(b.empty), ("at least one point", "[0]", "complex64[2, 0]")),
    "no points asked for": (lambda b: fft.fft(b.x, 0), ("n is 0", "at least one point")),
    "minus one points": (lambda b: fft.irfft(b.x, -1), ("n is -1", "at least one point")),
    "no points of several": (lambda b: fft.fftn(b.x, (2, 0)), ("at least one point", "[2, 0]")),
    "one component back": (lambda b: fft.irfft(b.column), ("C2R", "[0]", "complex64[3, 1]")),
    "norm": (
        lambda b: fft.fft(b.x, norm=b.text),
        ("C2C: norm is '2'", "'backward', 'ortho' or 'forward'"),
    ),
    "n that is no integer": (lambda b: fft.fft(b.x, b.text), ("n must be one integer, not '2'",)),
    "n for two axes": (lambda b: fft.fft(b.x, b.two), ("n must be one integer, not (2, 2)",)),
    "two axes for one": (lambda b: fft.rfft(b.real, axis=b.two), ("axis must be one integer",)),
    "no axis for one": (lambda b: fft.ifft(b.x, axis=b.none), ("axis must be one integer",)),
    "axes that are no integers": (
        lambda b: fft.fftn(b.x, axes=b.text),
        ("axes must be integers, not '2'",),
    ),
    "true for an axis": (lambda b: b.ask(fft.C2C(b.x, None, (True,))), ("axes is a tuple",)),
    "list in a message": (
        lambda b: b.ask(fft.R2C(b.real, b.numbers)),
        ("R2C: s is a tuple", "[3]"),
    ),
    "out of another shape": (
        lambda b: fft.r2c(b.real, out=b.x),
        ("R2C results in complex64[3, 3]", "out is complex64[3, 4]"),
    ),
    "out of another dtype": (
        lambda b: fft.c2c(b.real, out=b.real),
        ("C2C results in complex64[3, 4]", "out is float32[3, 4]"),
    ),
    "larger than can be": (lambda b: fft.fft(b.x, 2**57), ("C2C would make complex64",)),
    "no buffer": (lambda b: fft.fft(b.text), ("AccelRef", "str", "put()")),
    "no buffer for out": (lambda b: fft.c2c(b.x, out=b.text), ("C2C.out", "str", "put()")),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_is_refused_with_what_and_what_was_expected(device: Device, mistake: str) -> None:
    send, words = REFUSED[mistake]
    buffers = SimpleNamespace(
        x=array.zeros(device, (3, 4), "complex64"),
        real=array.zeros(device, (3, 4)),
        vector=array.zeros(device, 5, "complex64"),
        column=array.zeros(device, (3, 1), "complex64"),
        empty=array.zeros(device, (2, 0), "complex64"),
        number=array.zeros(device, (), "complex64"),
        ask=device.ask,
        numbers=[3],
        two=(2, 2),
        none=None,
        text="2",
    )
    with refused(device, *words):
        send(buffers)
