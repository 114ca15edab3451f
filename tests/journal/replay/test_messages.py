"""A recorded message as an object again."""

import inspect
from typing import Any

import msgspec
import numpy as np
import pytest

from accel_lab import System, array, blas, fft, rng
from accel_lab.compute.message.operation import Operation
from accel_lab.compute.wire.codec import encode_entry
from accel_lab.errors import JournalError
from accel_lab.journal.entries.entry import entries_of
from accel_lab.journal.replay.messages import message_of
from tests.journal.recording import Drain


def raw_of(message: Operation[Any]) -> list[Any]:
    (_, _, _, raw, _) = msgspec.msgpack.decode(encode_entry(1, 0, None, message))
    return list(raw)


def test_every_message_that_was_sent_is_the_same_when_it_is_sent_again() -> None:
    with System("host") as lab:
        gpu = lab.devices[0]
        x = rng.uniform(gpu, (4, 4), seed=1)
        z = array.full(gpu, (4, 4), 1 + 2j, "complex64")
        messages: list[Operation[Any]] = [
            rng.Uniform((4, 4), "float32", 1, 0, 0, None, 0.0, 1.0),
            array.Full((4,), 1 - 2j, "complex64"),
            array.Slice(x, (slice_of(1, None), 0)),
            array.Transpose(x, (1, 0)),
            blas.Gemm(z, z, c=z, alpha=1j, beta=2 + 0j, trans_a="c"),
            blas.Scal(x, 2.0, out=x),
            fft.C2C(z, axes=(0,), norm="ortho"),
        ]
        refs = {ref.id: ref for ref in (x, z)}
        for message in messages:
            raw = raw_of(message)
            again = message_of(raw, refs)
            assert type(again) is type(message)
            assert raw_of(again) == raw
            assert again.operands() == message.operands()
            assert again.infer() == message.infer()


def slice_of(start: int | None, stop: int | None) -> tuple[int | None, int | None, None]:
    return start, stop, None


def test_a_complex_factor_has_its_value_when_it_is_sent_again() -> None:
    with System("host") as lab:
        gpu = lab.devices[0]
        z = gpu.put(np.array([1, 1j], np.complex64))
        message = message_of(raw_of(blas.Scal(z, 2 - 1j)), {z.id: z})
        made = gpu.repeat(message, None).result()
        np.testing.assert_array_equal(gpu.get(made).result(), np.array([2 - 1j, 1 + 2j]))


def test_a_buffer_that_is_not_there_is_named() -> None:
    with System("host") as lab:
        x = rng.uniform(lab.devices[0], (4,), seed=1)
        with pytest.raises(JournalError, match=f"Scal names buffer {x.id}, which is not there"):
            message_of(raw_of(blas.Scal(x, 2.0)), {})


def test_a_message_that_does_not_fit_its_class_is_refused() -> None:
    tag = array.Zeros.__struct_config__.tag
    with pytest.raises(JournalError, match="holds an invalid Zeros"):
        message_of([tag, "four", "float32"], {})
    with pytest.raises(JournalError, match="tag 9999"):
        message_of([9999], {})


def test_fields_of_a_record_are_named_as_the_messages_are() -> None:
    message = array.Zeros((2, 3), "float64")
    data = encode_entry(1, 7, 5.0, message, message.infer())
    (entry,) = entries_of([Drain(1, "lab", "cpu0", 0.0, 1, data)])
    names = list(inspect.signature(array.Zeros).parameters)
    assert list(entry.fields) == names
    assert (entry.result, entry.timeout_s, entry.spec) == (7, 5.0, ((2, 3), "float64"))
