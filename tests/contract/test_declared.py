"""The contract of every message that declares its shapes and dtypes, on every backend.

What each computes its library's own tests say. Here the oracle is its answer of
contiguous operands.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest

from accel_lab import array
from accel_lab.compute.arrays.dtypes import NAMES, is_complex, numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.compute.message.results import results_of
from accel_lab.errors import DependencyFailed, InvalidArgument, StaleRef, UnsupportedDtype
from accel_lab.libraries.authoring.options import factors_of
from accel_lab.libraries.authoring.shaped import Shaped
from accel_lab.libraries.authoring.signature import BATCH, parse
from accel_lab.system import System
from tests.contract.declared import DECLARED, Sample, has_out, sample
from tests.contract.samples import LAYOUTS, Layout, assert_same, refused, unanswered, value

Kind = type[Shaped[Any]]
Support = Mapping[str, frozenset[str]]
WITH_OUT = {name: kind for name, kind in DECLARED.items() if has_out(kind)}
WAIT_S = 30.0

of_each = pytest.mark.parametrize("name", DECLARED)
of_each_with_out = pytest.mark.parametrize("name", WITH_OUT)


def one_of(support: Support, name: str) -> str:
    """Return the dtype to try a message with where any will do."""
    return "float64" if "float64" in support[name] else min(support[name])


def different(axis: str) -> int:
    """Return another extent for each axis, so that two in each other's place are seen."""
    return 3 + sum(map(ord, axis)) % 5


def none_of(empty: str, axis: str) -> int:
    """Return the extents where one axis has none."""
    return 0 if axis == empty else 3


def drawn(support: Support, name: str) -> Sample:
    return sample(DECLARED[name], one_of(support, name), different)


def answer(device: Device, message: Shaped[Any]) -> Any:
    """Return what a message answers, which is what it announces: an array, or a tuple of several.

    What it does not ask for is not in the tuple.
    """
    inferred: Any = message.infer()
    answered: Any = device.ask(message)
    is_one = type(inferred) is Spec
    specs: tuple[Spec | None, ...] = (inferred,) if is_one else inferred
    several = (answered,) if is_one else answered
    assert [ref is None for ref in several] == [spec is None for spec in specs]
    refs, announced = handles(answered), [spec for spec in specs if spec is not None]
    for ref, spec in zip(refs, announced, strict=True):
        assert (ref.shape, ref.dtype) == (spec.shape, spec.dtype)
    got = [value(device, ref) for ref in refs]
    for x, spec in zip(got, announced, strict=True):
        assert (x.shape, x.dtype) == (spec.shape, numpy_dtype(spec.dtype))
    return got[0] if is_one else tuple(got)


def handles(answered: Any) -> list[AccelRef]:
    """Return each handle that a message is answered with."""
    several = (answered,) if isinstance(answered, AccelRef) else answered
    return [ref for ref in several if ref is not None]


def assert_close(got: Any, expected: Any) -> None:
    """Compare sums that were formed in another order; of several results each."""
    if isinstance(expected, tuple):
        for one, other in zip(got, expected, strict=True):
            assert_close(one, other)
        return
    wide = "complex128" if got.dtype.kind == "c" else "float64"
    np.testing.assert_allclose(got.astype(wide), expected.astype(wide), rtol=1e-6)


@of_each
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", NAMES)
def test_strides_change_nothing_and_operands_stay(
    device: Device, support: Support, name: str, layout: Layout, dtype: str
) -> None:
    if dtype not in support[name]:
        pytest.skip(f"there is no {name} of {dtype}")
    one = sample(DECLARED[name], dtype, different)
    expected = answer(device, one.message(one.placed(device)))
    operands = one.placed(device, layout)
    assert_close(answer(device, one.message(operands)), expected)
    for operand, x in one.arrays().items():
        assert_same(value(device, operands[operand]), x)


@of_each
@pytest.mark.parametrize("dtype", NAMES)
def test_a_dtype_is_taken_or_refused_by_name(
    device: Device, support: Support, name: str, dtype: str
) -> None:
    one = sample(DECLARED[name], dtype, different)
    operands = one.placed(device)
    if dtype in support[name]:
        for ref in handles(device.ask(one.message(operands))):
            ref.result(WAIT_S)
        return
    with refused(device, name, dtype, error=UnsupportedDtype):
        device.ask(one.message(operands))


@of_each
def test_an_extent_may_be_zero(device: Device, support: Support, name: str) -> None:
    dtype, kind = one_of(support, name), DECLARED[name]
    axes = {axis for operand in parse(kind.shapes).takes for axis in operand} - {BATCH}
    for empty in (*axes, "first", "second"):
        one = sample(kind, dtype, partial(none_of, empty))
        answer(device, one.message(one.placed(device)))


@of_each
def test_no_axes_and_many_stand_for_dots(device: Device, support: Support, name: str) -> None:
    kind = DECLARED[name]
    if not any(BATCH in operand for operand in parse(kind.shapes).takes):
        pytest.skip("its operands have all their axes")
    bare = [] if hasattr(kind, "check") else [()]  # it may ask for an axis
    for batch in (*bare, (2,), (2, 1, 3, 2)):
        one = with_batch(drawn(support, name), batch)
        whole = answer(device, one.message(one.placed(device)))
        assert_close(answer(device, one.message(one.placed(device, "transposed"))), whole)


def with_batch(one: Sample, batch: tuple[int, ...]) -> Sample:
    return Sample(one.kind, one.dtype, one.extents, batch)


@of_each
def test_what_is_not_asked_for_is_none_and_changes_no_other(
    device: Device, support: Support, name: str
) -> None:
    one = drawn(support, name)
    results = results_of(one.kind)
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
    for operand, axes in zip(one.arrays(), parse(one.kind.shapes).takes, strict=True):
        operands = one.placed(device)
        if BATCH not in axes:
            operands[operand] = operands[operand][None]
            with refused(device, one.kind.__name__, f"{operand} is ", "it takes"):
                device.ask(one.message(operands))


@of_each
def test_an_extent_that_differs_is_refused(device: Device, support: Support, name: str) -> None:
    one = drawn(support, name)
    operands = one.placed(device)
    if len(operands) == 1:
        pytest.skip("it has one operand")
    for operand, ref in one.placed(device).items():
        for axis in range(ref.ndim):
            part = ref[(slice(None),) * axis + (slice(1, None),)]
            with refused(device, one.kind.__name__, "it takes", one.kind.shapes.split(";")[0]):
                device.ask(one.message({**operands, operand: part}))


@of_each
def test_operands_of_two_dtypes_are_refused(device: Device, support: Support, name: str) -> None:
    one = drawn(support, name)
    operands = one.placed(device)
    if len(operands) == 1:
        pytest.skip("it has one operand")
    for operand, ref in operands.items():
        other = array.cast(ref, "float32" if ref.dtype != "float32" else "float64")
        with refused(device, one.kind.__name__, "of one dtype", operand, "array.cast"):
            device.ask(one.message({**operands, operand: other}))


@of_each_with_out
@pytest.mark.parametrize("layout", LAYOUTS)
def test_out_may_be_a_part_and_the_rest_stays(
    device: Device, support: Support, name: str, layout: Layout
) -> None:
    one = drawn(support, name)
    expected = answer(device, one.message(one.placed(device)))
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
    one = drawn(support, name)
    expected = answer(device, one.message(one.placed(device)))
    for operand in one.arrays():
        for layout in LAYOUTS:
            operands = one.placed(device, layout)
            message = one.message(operands, operands[operand])
            if operand in one.kind.in_place:
                assert_close(answer(device, message), expected)
                assert_close(value(device, operands[operand]), expected)
            else:
                with refused(device, one.kind.__name__, "out is "):
                    device.ask(message)


@of_each_with_out
def test_out_that_overlaps_an_operand_is_refused(
    device: Device, support: Support, name: str
) -> None:
    one = drawn(support, name)
    made = one.message(one.placed(device)).infer()
    assert isinstance(made, Spec)
    for operand, x in one.arrays().items():
        base = device.put(np.ones([n + 1 for n in np.maximum(x.shape, made.shape)], x.dtype))
        operands = one.placed(device)
        operands[operand] = base[tuple(slice(0, n) for n in x.shape)]
        for begin in (0, 1):
            out = base[tuple(slice(begin, n + begin) for n in made.shape)]
            with pytest.raises(InvalidArgument, match=f"{operand} .* overlapping views of one"):
                device.ask(one.message(operands, out)).result(WAIT_S)
        assert (value(device, base) == 1).all()


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
        with refused(device, f"{one.kind.__name__} results in {made.dtype}", "but out is"):
            device.ask(one.message(operands, out))


@of_each
def test_what_only_the_context_can_see_is_refused_there(
    device: Device, support: Support, name: str
) -> None:
    """The shape of an answer of `run` is unknown when the next message is sent."""
    one = drawn(support, name)
    operands = one.placed(device)
    first = next(iter(operands))
    expected = answer(device, one.message(operands))
    with unanswered(device):
        same = device.run(lambda x: x, operands[first])
        fits = device.ask(one.message({**operands, first: ref_of(same)}))
        turned = device.run(lambda x: x[None, ..., None], operands[first])
        wrong = [device.ask(one.message({**operands, first: ref_of(turned)}))]
        any_fits = len(operands) == 1 and BATCH in parse(one.kind.shapes).takes[0]
        if any_fits and not has_out(one.kind):
            wrong.clear()
        elif any_fits:
            out = device.put(np.zeros(expected.shape, expected.dtype))
            wrong = [device.ask(one.message({first: ref_of(turned)}, out))]
    got = [value(device, ref) for ref in handles(fits)]
    assert_close(tuple(got) if isinstance(expected, tuple) else got[0], expected)
    for answered in wrong:
        for ref in handles(answered):
            with pytest.raises(InvalidArgument, match=one.kind.__name__):
                ref.result(WAIT_S)


def ref_of(answered: object) -> AccelRef:
    assert isinstance(answered, AccelRef)
    return answered


@of_each
def test_an_operand_that_failed_fails_it_with_the_root(
    device: Device, support: Support, name: str
) -> None:
    one = drawn(support, name)
    operands = one.placed(device)
    for operand in operands:
        with unanswered(device):
            never = ref_of(device.run(lambda x: x.no_such_thing, operands[operand]))
            after = device.ask(one.message({**operands, operand: never}))
        for ref in handles(after):
            with pytest.raises(DependencyFailed) as caught:
                ref.result(WAIT_S)
            assert "no_such_thing" in str(caught.value.__cause__)
        assert never.error is not None


@of_each
def test_an_operand_that_was_freed_is_refused(device: Device, support: Support, name: str) -> None:
    one = drawn(support, name)
    for operand in one.arrays():
        operands = one.placed(device)
        operands[operand].free()
        with pytest.raises(StaleRef):
            device.ask(one.message(operands))


def test_a_buffer_of_another_device_is_refused(device: Device, backend: Any) -> None:
    if backend.device_count() < 2:
        pytest.skip("there is one device")
    support: Support = backend.SUPPORT
    with System(backend.__name__.rpartition(".")[2], devices=2) as lab:
        here, there = lab.devices
        for name in DECLARED:
            one = drawn(support, name)
            foreign = one.placed(there)
            for operand in foreign:
                operands = {**one.placed(here), operand: foreign[operand]}
                with pytest.raises(InvalidArgument, match=there.name):
                    here.ask(one.message(operands))


@of_each
def test_what_is_of_another_type_is_refused_in_every_field(
    device: Device, support: Support, name: str
) -> None:
    one = drawn(support, name)
    message = one.message(one.placed(device))
    for field in message.__struct_fields__:
        for wrong in (np.ones(3), np.ones((2, 2)), "2", object()):
            with pytest.raises(InvalidArgument, match=one.kind.__name__):
                device.ask(msgspec.structs.replace(message, **{field: wrong}))


@of_each
def test_a_number_is_one_of_the_dtypes(device: Device, support: Support, name: str) -> None:
    kind = DECLARED[name]
    real = one_of(support, name)
    for factor in factors_of(kind):
        one = sample(kind, real, different)
        message = one.message(one.placed(device))
        wrong = (1j, "complex") if not is_complex(real) else ("1", "number")
        with refused(device, kind.__name__, f"{factor} is 1j", wrong[1]):
            device.ask(msgspec.structs.replace(message, **{factor: wrong[0]}))
