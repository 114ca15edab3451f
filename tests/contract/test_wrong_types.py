"""What is of another type than it should be is refused at the call, by every library's messages."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from accel_lab import array, blas, fft, jit, rng
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation
from accel_lab.errors import InvalidArgument

WAIT_S = 60.0
ARRAYS = (np.ones(3), np.ones((2, 2)), np.array([None, 1]))
SOURCE = "__global__ void step(float* x, int n) {}"


def messages(x: AccelRef, at: AccelRef, kernel: Any) -> list[Operation[Any]]:
    """Return one of each kind, of a matrix, indices and a kernel."""
    row = x[0]
    return [
        array.Zeros((2,), "float32"),
        array.Full((2,), 1.0, "float32"),
        array.Copy(x),
        array.Cast(x, "int8"),
        array.Slice(x, (0,)),
        array.Reshape(x, (4,)),
        array.Transpose(x, (1, 0)),
        array.Unary("exp", x),
        array.Binary("add", x, None, 1.0),
        array.Where(x, x, None, (1.0,)),
        array.Reduce("std", x, (0,)),
        array.Matmul(x, x),
        array.Take(x, at, 0),
        blas.Gemm(x, x),
        blas.GemmStridedBatched(x, x, x, alpha=1.0, beta=1.0),
        blas.Gemv(x, row, row, alpha=1.0, beta=1.0),
        blas.Axpy(row, row),
        blas.Scal(row, 2.0),
        blas.Dot(row, row),
        blas.Swap((x[0], x[1])),
        blas.Asum(x),
        blas.Iamax(x),
        blas.Rot(row, row, 1.0, 0.0),
        blas.Rotg(x[0, 0], x[0, 1]),
        blas.Ger(row, row, x),
        blas.Symv(x, row, row, alpha=1.0, beta=1.0),
        blas.Trsv(x, row),
        blas.Gbmv(x, row, 1, row, alpha=1.0, beta=1.0),
        blas.Symm(x, x, x, alpha=1.0, beta=1.0),
        blas.Herk(x, x, alpha=1.0, beta=1.0),
        blas.Trsm(x, x),
        blas.Geam(x, x),
        blas.Dgmm(row, x),
        fft.C2C(x),
        fft.R2C(x),
        fft.C2R(x),
        fft.R2R(x),
        fft.Convolve(x, x),
        fft.Hilbert(x),
        fft.Frequencies(2),
        fft.Shift(x),
        fft.Embedded(x[0], (2,)),
        fft.Interleaved(x),
        fft.Padded(array.zeros(x.device, (2, 4))),
        fft.Half(array.zeros(x.device, (2, 2), "float16")),
        rng.Words((2,), "uint32", 1),
        rng.Integers((2,), "int64", 1, low=0, last=5),
        rng.Uniform((2,), "float32", 1),
        rng.Normal((2,), "float32", 1),
        jit.Compile(SOURCE, "step"),
        jit.LaunchKernel(kernel, (1, 1, 1), (1, 1, 1), (x,), (None, 1)),
        jit.InspectKernel(kernel),
    ]


def test_an_array_is_refused_in_every_field_of_every_message(device: Device) -> None:
    x, at = array.zeros(device, (2, 2)), device.put(np.array([0, 1]))
    kernel = jit.compile(device, SOURCE, "step").ref
    for message in messages(x, at, kernel):
        said = rf"{type(message).__name__}|dtype|grid|block|cannot carry a ndarray"
        for name in message.__struct_fields__:
            for wrong in ARRAYS:
                with pytest.raises(InvalidArgument, match=said):
                    device.ask(msgspec.structs.replace(message, **{name: wrong}))


CALLS: dict[str, Callable[[AccelRef, Any], object]] = {
    "alpha": lambda x, wrong: blas.gemm(x, x, alpha=wrong),
    "beta": lambda x, wrong: blas.gemm(x, x, beta=wrong),
    "trans_a": lambda x, wrong: blas.gemm(x, x, trans_a=wrong),
    "keepdims": lambda x, wrong: x.sum(keepdims=wrong),
    "ddof": lambda x, wrong: x.std(ddof=wrong),
    "norm": lambda x, wrong: fft.fft(x, norm=wrong),
    "inverse": lambda x, wrong: fft.c2c(x, inverse=wrong),
    "std": lambda x, wrong: rng.normal(x.device, 2, std=wrong),
    "value": lambda x, wrong: array.full(x.device, 2, wrong),
}


@pytest.mark.parametrize("option", CALLS)
def test_an_array_for_an_option_is_refused_with_its_name(device: Device, option: str) -> None:
    x = array.zeros(device, (2, 2))
    for wrong in ARRAYS:
        with pytest.raises(InvalidArgument, match=option):
            CALLS[option](x, wrong)


def test_buffers_of_a_launch_come_in_a_tuple(device: Device) -> None:
    kernel, wrong = jit.compile(device, SOURCE, "step").ref, 5
    with pytest.raises(InvalidArgument, match=r"refs must be a tuple of AccelRefs, not 5"):
        device.ask(jit.LaunchKernel(kernel, (1, 1, 1), (1, 1, 1), wrong))  # type: ignore[arg-type]


def test_numbers_of_numpys_are_options_as_pythons_are(device: Device) -> None:
    x = device.put(np.array([1.0, 2.0, 4.0]))
    keep: Any = np.True_
    got = x.var(ddof=np.int64(1), keepdims=keep)  # type: ignore[arg-type]
    np.testing.assert_allclose(got.get(), np.var([1, 2, 4], ddof=1, keepdims=True))
