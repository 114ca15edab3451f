"""The contract of every message that declares its shapes: operands that are gone, or are none.

They are of another device or an earlier generation, unknown as yet, freed, failed, or mistyped.
"""

from typing import Any

import msgspec
import numpy as np
import pytest

from accel_lab.compute.arrays.dtypes import is_complex, is_float
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import DependencyFailed, InvalidArgument, StaleRef
from accel_lab.libraries.authoring.options import factors_of
from accel_lab.libraries.authoring.shaped import Shaped
from accel_lab.system import System
from tests.contract.declared import (
    DECLARED,
    WAIT_S,
    Support,
    answer,
    assert_close,
    different,
    drawn,
    dtypes_of,
    fetched,
    handles,
    of_each,
    sample,
)
from tests.contract.samples import refused, unanswered, value


@of_each
def test_what_only_the_context_can_see_is_refused_there(
    device: Device, support: Support, name: str
) -> None:
    """The shape of an answer of `run` is unknown when the next message is sent."""
    one = drawn(support, name)
    operands = one.placed(device)
    first = next(iter(operands))
    expected = answer(device, one.message(operands))
    out = device.put(np.zeros(expected.shape, expected.dtype)) if one.declared.has_out else None
    known = {**operands, first: operands[first][None, ..., None]}
    outs = (None,) if out is None else (None, out)
    refused_with = [to for to in outs if is_refused(one.message(known, to))]
    with unanswered(device):
        same = device.run(lambda x: x, operands[first])
        fits = device.ask(one.message({**operands, first: ref_of(same)}))
        more = ref_of(device.run(lambda x: x[None, ..., None], operands[first]))
        sent = [device.ask(one.message({**operands, first: more}, to)) for to in refused_with]
    assert_close(fetched(device, fits), expected)
    for answered in sent:
        for ref in handles(answered):
            with pytest.raises(InvalidArgument, match=one.name):
                ref.result(WAIT_S)
    if out is not None and refused_with:
        assert not value(device, out).any()


def is_refused(message: Shaped[Any]) -> bool:
    try:
        message.infer()
    except InvalidArgument:
        return True
    return False


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


def test_an_operand_of_an_earlier_generation_is_refused(backend: Any) -> None:
    with System(backend.__name__.rpartition(".")[2], devices=1) as lab:
        device, support = lab.devices[0], backend.SUPPORT
        samples = [drawn(support, name) for name in DECLARED if dtypes_of(support, name)]
        olds = [one.placed(device) for one in samples]
        for operands in olds:
            device.run(id, operands).result(WAIT_S)  # it may change them: they do not come back
        device.replace()
        device.run(id, 1).result(WAIT_S)
        for one, old in zip(samples, olds, strict=True):
            for operand, ref in old.items():
                with pytest.raises(StaleRef, match="generation 2"):
                    device.ask(one.message({**one.placed(device), operand: ref}))


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
            with pytest.raises(InvalidArgument, match=f"{one.name}|dtype .* is not one of"):
                device.ask(msgspec.structs.replace(message, **{field: wrong}))


@of_each
def test_a_number_is_one_of_the_dtypes(device: Device, support: Support, name: str) -> None:
    for factor in factors_of(DECLARED[name].kind):
        for dtype in sorted(dtypes_of(support, name)):
            one = sample(DECLARED[name], dtype, different)
            message = one.message(one.placed(device))
            if is_complex(dtype) or is_float(dtype):
                wrong: dict[Any, str] = {"2": "number, not str"}
                wrong |= {} if is_complex(dtype) else {1j: "has no complex values"}
            else:
                wrong = {0.5: "has the integers from", 2**70: "has the integers from"}
                wrong |= {2**53 + 1: "no exact double"} if dtype.endswith("int64") else {}
            for number, why in wrong.items():
                with refused(device, one.name, factor, why):
                    device.ask(msgspec.structs.replace(message, **{factor: number}))
