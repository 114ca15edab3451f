"""The contract of every message that declares its shapes and dtypes, on every backend.

What each computes its library's own tests say. Here the oracle is its answer of
contiguous operands.
"""

from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest

from accel_lab import array
from accel_lab.compute.arrays.dtypes import NAMES, is_float
from accel_lab.compute.device import Device
from accel_lab.compute.message.operation import Spec
from accel_lab.compute.message.results import results_of
from accel_lab.errors import InvalidArgument, UnsupportedDtype
from accel_lab.libraries.authoring.signature import BATCH
from tests.contract.declared import (
    DECLARED,
    NEED_POINTS,
    WAIT_S,
    Sample,
    Support,
    alike,
    answer,
    assert_close,
    different,
    drawn,
    dtypes_of,
    handles,
    none_of,
    of_each,
    one_of,
    sample,
    told,
    turned,
)
from tests.contract.samples import LAYOUTS, Layout, assert_same, refused, value

of_each_with_out = pytest.mark.parametrize(
    "name", [name for name, one in DECLARED.items() if one.has_out]
)
of_each_that_turns = pytest.mark.parametrize(
    "name", [n for n, one in DECLARED.items() if any(t.turned_by for t in one.takes.values())]
)
of_each_that_scales = pytest.mark.parametrize(
    "name", [name for name, one in DECLARED.items() if one.whole and one.kind.scaled_by]
)


@of_each
def test_strides_change_nothing_and_operands_stay(
    device: Device, support: Support, name: str
) -> None:
    for dtype in sorted(dtypes_of(support, name)):
        one = sample(DECLARED[name], dtype, different)
        expected = answer(device, one.message(one.placed(device)))
        for layout in LAYOUTS:
            with told(f"{layout} {dtype}"):
                operands = one.placed(device, layout)
                assert_close(answer(device, one.message(operands)), expected)
                for operand, x in one.arrays().items():
                    assert_same(value(device, operands[operand]), x)


@of_each
def test_a_dtype_is_taken_or_refused_by_name(device: Device, support: Support, name: str) -> None:
    taken = dtypes_of(support, name)
    for dtype in NAMES:
        with told(dtype):
            one = sample(DECLARED[name], dtype, different)
            operands = one.placed(device)
            if dtype in taken:
                for ref in handles(device.ask(one.message(operands))):
                    ref.result(WAIT_S)
                continue
            words = (DECLARED[name].row, f"of {dtype}", *taken, "array.cast")
            with refused(device, *words, error=UnsupportedDtype):
                device.ask(one.message(operands))


@of_each
def test_an_extent_may_be_zero(device: Device, support: Support, name: str) -> None:
    dtype, declared = one_of(support, name), DECLARED[name]
    for empty in (*declared.axes, "first", "second"):
        one = sample(declared, dtype, partial(none_of, empty))
        message = one.message(one.placed(device))
        nothing = any(x.size == 0 for x in one.arrays().values())
        if nothing and declared.row in NEED_POINTS:
            with refused(device, one.name, NEED_POINTS[declared.row]):
                device.ask(message)
        else:
            answer(device, message)


@of_each
def test_no_axes_and_many_stand_for_dots(device: Device, support: Support, name: str) -> None:
    declared = DECLARED[name]
    if not declared.has_dots:
        pytest.skip("its operands have all their axes")
    bare = [] if declared.needs_an_axis else [()]
    for batch in (*bare, (2,), (2, 1, 3, 2)):
        one = drawn(support, name).with_batch(*batch)
        whole = answer(device, one.message(one.placed(device)))
        operands = one.placed(device, "transposed")
        assert_close(answer(device, one.message(operands)), whole)
        for operand, x in one.arrays().items():
            assert_same(value(device, operands[operand]), x)


@of_each
def test_an_operand_without_the_dots_serves_all(
    device: Device, support: Support, name: str
) -> None:
    declared = DECLARED[name]
    if not declared.signature.bare:
        pytest.skip("all its operands have the same axes there")
    one = drawn(support, name)
    for operand, taken in declared.takes.items():
        if BATCH not in taken.axes:
            continue
        operands = one.placed(device)
        single = operands[operand][0, 0]
        every = np.broadcast_to(value(device, single), operands[operand].shape)
        expected = answer(device, one.message({**operands, operand: device.put(every.copy())}))
        assert_close(answer(device, one.message({**operands, operand: single})), expected)


@of_each_that_turns
def test_an_operand_that_is_turned_is_its_transpose(
    device: Device, support: Support, name: str
) -> None:
    for dtype in sorted({"float32", "complex64"} & dtypes_of(support, name)):
        for layout in LAYOUTS:
            with told(f"{layout} {dtype}"):
                answer_turned(device, sample(DECLARED[name], dtype, different), layout)


def answer_turned(device: Device, one: Sample, layout: Layout) -> None:
    for operand, taken in one.declared.takes.items():
        if not taken.turned_by:
            continue
        there, back = one.arrays()[operand], one.declared.options.get(taken.turned_by, "n")
        straight = one.turned_by(taken.turned_by, "n")
        expected = answer(
            device,
            straight.message({**one.placed(device), operand: device.put(turned(there, back))}),
        )
        assert_close(answer(device, one.message(one.placed(device, layout))), expected)
        said = msgspec.structs.replace(one.message(one.placed(device)), **{taken.turned_by: "T"})
        with refused(device, one.name, f"{taken.turned_by} is 'T'", "'n', 't' or 'c'"):
            device.ask(said)


@of_each_that_scales
def test_an_operand_is_not_read_where_its_factor_is_zero(
    device: Device, support: Support, name: str
) -> None:
    one = drawn(support, name)
    dtype = one.dtype
    assert is_float(dtype)
    for operand, factor in one.declared.kind.scaled_by.items():
        operands = one.placed(device)
        without = {other: ref for other, ref in operands.items() if other != operand}
        expected = answer(device, one.message(without))
        nans = array.full(device, operands[operand].shape, float("nan"), dtype)
        message = msgspec.structs.replace(one.message({**operands, operand: nans}), **{factor: 0.0})
        assert_close(answer(device, message), expected)
        assert_close(answer(device, msgspec.structs.replace(message, out=nans)), expected)


@of_each_that_scales
def test_an_operand_and_its_factor_come_together(
    device: Device, support: Support, name: str
) -> None:
    one = drawn(support, name)
    for operand, factor in one.declared.kind.scaled_by.items():
        message = one.message(one.placed(device))
        words = (f"{operand} is {one.dtype}", f"without {factor}", "not be read")
        with refused(device, one.name, *words):
            device.ask(msgspec.structs.replace(message, **{factor: None}))
        with refused(device, one.name, f"{factor} is 2", f"no {operand}"):
            device.ask(msgspec.structs.replace(message, **{operand: None}))


@of_each
def test_what_is_not_asked_for_is_none_and_changes_no_other(
    device: Device, support: Support, name: str
) -> None:
    one = drawn(support, name)
    results = results_of(one.declared.kind)
    if results is None or not any(results.asked_by):
        pytest.skip("all its results are made always")
    message = one.message(one.placed(device))
    options = sorted({*results.asked_by} - {""})
    everything = msgspec.structs.replace(message, **dict.fromkeys(options, True))
    whole = answer(device, everything)
    for option in options:
        part = msgspec.structs.replace(everything, **{option: False})
        asked = results.made(part)
        assert len(asked) < len(whole)
        assert_close(answer(device, part), tuple([whole[at] for at in asked]))


@of_each
def test_an_axis_more_or_less_is_refused(device: Device, support: Support, name: str) -> None:
    one = drawn(support, name)
    if not one.declared.derived:
        pytest.skip("it has an infer of its own")
    for operand, taken in one.declared.takes.items():
        operands = one.placed(device)
        ref = operands[operand]
        wrong = [] if BATCH in taken.axes else [ref[None]]
        if taken.inner:
            wrong += [ref[(0,) * (ref.ndim - len(taken.inner) + 1)]]
        for other in wrong:
            with refused(device, one.name, f"{operand} is {one.dtype}", "it takes"):
                device.ask(one.message({**operands, operand: other}))


@of_each
def test_an_extent_that_differs_is_refused(device: Device, support: Support, name: str) -> None:
    one = drawn(support, name)
    shared, operands = one.declared.shared, one.placed(device)
    if not shared:
        pytest.skip("no two of its operands have an axis in common")
    words = ("it takes", one.declared.signature.text) if one.declared.derived else ()
    for operand, taken in one.declared.takes.items():
        ref = operands[operand]
        dots = [BATCH] * (ref.ndim - len(taken.inner))
        for axis, called in enumerate((*dots, *one.in_memory(taken))):
            if called not in shared:
                continue
            part = ref[(slice(None),) * axis + (slice(1, None),)]
            with refused(device, one.name, *words, operand):
                device.ask(one.message({**operands, operand: part}))


@of_each
def test_operands_of_two_dtypes_are_refused(device: Device, support: Support, name: str) -> None:
    one = drawn(support, name)
    operands = one.placed(device)
    if len(operands) == 1 or not one.declared.derived:
        pytest.skip("it has one operand, or converts them")
    for operand, ref in operands.items():
        other = array.cast(ref, "float32" if ref.dtype != "float32" else "float64")
        with refused(device, one.name, "of one dtype", operand, "array.cast"):
            device.ask(one.message({**operands, operand: other}))


@of_each_with_out
def test_out_may_be_a_part_and_the_rest_stays(device: Device, support: Support, name: str) -> None:
    one = drawn(support, name)
    expected = answer(device, one.message(one.placed(device)))
    for layout in LAYOUTS:
        with told(layout):
            answer_into_a_part(device, one, layout, expected)


def answer_into_a_part(device: Device, one: Sample, layout: Layout, expected: Any) -> None:
    around = np.full([2 * n + 3 for n in expected.shape], 1, expected.dtype)
    inside = tuple(slice(1, 2 * n + 1, 2) for n in expected.shape)
    base = device.put(around)
    part = array.slice(base, inside)
    got = device.ask(one.message(one.placed(device, layout), part))
    assert got.id == part.id
    around[inside] = value(device, got)
    assert_close(around[inside], expected)
    assert_same(value(device, base), around)


@of_each_with_out
def test_out_may_be_an_operand_if_the_message_says_so(
    device: Device, support: Support, name: str
) -> None:
    for dtype in sorted(dtypes_of(support, name)):
        whole = sample(DECLARED[name], dtype, alike)
        # Of a number what is made of all elements has the shape, too.
        bare = [] if DECLARED[name].needs_an_axis else [whole.with_batch()]
        for one in (whole, *bare):
            with told(dtype):
                answer_in_place(device, one)


def answer_in_place(device: Device, one: Sample) -> None:
    expected, dtype = answer(device, one.message(one.placed(device))), one.dtype
    for operand in one.arrays():
        for layout in LAYOUTS:
            operands = one.placed(device, layout)
            message = one.message(operands, operands[operand])
            fits = (operands[operand].shape, dtype) == (expected.shape, str(expected.dtype))
            if operand in one.declared.kind.in_place and fits:
                assert_close(answer(device, message), expected)
                assert_close(value(device, operands[operand]), expected)
            else:
                words = ("reads", operand, "out is the same") if fits else ("but out is ",)
                with refused(device, one.name, *words):
                    device.ask(message)


@of_each_with_out
def test_out_that_overlaps_an_operand_is_refused(
    device: Device, support: Support, name: str
) -> None:
    one = sample(DECLARED[name], one_of(support, name), alike)
    made = one.message(one.placed(device)).infer()
    assert isinstance(made, Spec)
    for operand, x in one.arrays().items():
        if made.dtype != one.dtype:
            continue  # then no array can be both
        size = int(np.prod(made.shape))
        begun = np.ones(size + x.size, x.dtype)
        begun[: x.size] = x.ravel()
        base, operands = device.put(begun), one.placed(device)
        operands[operand] = base[: x.size].reshape(x.shape)
        for begin in {0, min(1, x.size - 1)}:  # a 0-d one has no second element
            out = base[begin : begin + size].reshape(made.shape)
            with pytest.raises(InvalidArgument, match=f"{operand} .* overlapping views of one"):
                device.ask(one.message(operands, out)).result(WAIT_S)
        assert_same(value(device, base), begun)
        expected = answer(device, one.message(operands))
        apart = base[x.size :].reshape(made.shape)
        assert_close(answer(device, one.message(operands, apart)), expected)
        begun = np.ones(2 * max(size, x.size), x.dtype)
        begun[::2][: x.size] = x.ravel()
        base = device.put(begun)
        operands[operand] = base[::2][: x.size].reshape(x.shape)
        between = base[1::2][:size].reshape(made.shape)
        assert_close(answer(device, one.message(operands, between)), expected)


@of_each_with_out
def test_out_that_is_none_of_its_shape_or_dtype_is_refused(
    device: Device, support: Support, name: str
) -> None:
    one = drawn(support, name)
    operands = one.placed(device)
    made = one.message(operands).infer()
    assert isinstance(made, Spec)
    other = "float32" if made.dtype != "float32" else "float64"
    for shape, dtype in (((*made.shape, 1), made.dtype), (made.shape, other)):
        out = array.zeros(device, shape, dtype)
        with refused(device, f"{one.name} results in {made.dtype}", "but out is"):
            device.ask(one.message(operands, out))
