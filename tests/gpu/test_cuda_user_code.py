"""The user's own CuPy and torch code on the arrays of a GPU."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from accel_lab import array, blas
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument, UserCodeError

pytestmark = pytest.mark.gpu

WAIT_S = 120.0
SPIN = """
extern "C" __global__ void spin(long long clocks) {
  long long begin = clock64();
  while (clock64() - begin < clocks) {}
}
"""


def value(device: Device, ref: Any) -> Any:
    return device.get(ref).result(timeout_s=WAIT_S)


def test_bfloat16_arrives_as_cupy_s_bfloat16(gpu: Device) -> None:
    x = np.array([1.5, -2, 3], numpy_dtype("bfloat16"))
    answer = gpu.run(lambda a: a + a, gpu.put(x)).result(timeout_s=WAIT_S)
    assert answer.dtype == "bfloat16"
    assert (value(gpu, answer) == x + x).all()


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_float8_keeps_its_name_and_shows_its_bits(gpu: Device, dtype: str) -> None:
    x = np.array([1.5, -2, 3], numpy_dtype(dtype))

    def halves(a: Any) -> Any:
        return a[:1], a.view("uint8")

    same, bits = gpu.run(halves, gpu.put(x)).result(timeout_s=WAIT_S)
    assert (same.dtype, bits.dtype) == (dtype, "uint8")
    assert value(gpu, bits).tolist() == x.view(np.uint8).tolist()


def test_work_on_a_stream_of_the_user_s_is_waited_for(gpu: Device) -> None:
    def on_another_stream(n: int) -> Any:
        import cupy

        cupy.cuda.Stream(non_blocking=True).use()
        x = cupy.ones((n, n), "f")
        for _ in range(20):
            x = x @ x / n
        return x

    for _ in range(3):
        answer = gpu.run(on_another_stream, 2048).result(timeout_s=WAIT_S)
        assert (value(gpu, answer) == 1).all()


def test_what_is_written_on_a_stream_of_the_user_s_is_waited_for(gpu: Device) -> None:
    """Though the function returns no array, or fails."""

    def on_another_stream(x: Any, *, fail: bool) -> None:
        import cupy

        cupy.cuda.Stream(non_blocking=True).use()
        cupy.RawKernel(SPIN, "spin")((1,), (1,), (20_000_000,))
        x += 1
        if fail:
            raise ValueError

    def current() -> int:
        import cupy

        return int(cupy.cuda.get_current_stream().ptr)

    x, usual = gpu.put(np.ones(1 << 20, np.float32)), gpu.run(current).result(timeout_s=WAIT_S)
    for turn in range(3):
        gpu.run(on_another_stream, x, fail=False).result(timeout_s=WAIT_S)
        with pytest.raises(UserCodeError):
            gpu.run(on_another_stream, x, fail=True).result(timeout_s=WAIT_S)
        assert gpu.run(current).result(timeout_s=WAIT_S) == usual
        assert (value(gpu, array.copy(x)) == 2 * turn + 3).all()


def test_code_that_waits_for_the_default_stream_has_waited_for_its_own_work(gpu: Device) -> None:
    """As the timers in CuPy's own examples do."""

    def seconds() -> tuple[float, float]:
        import time

        import cupy
        import torch

        spin = cupy.RawKernel(SPIN, "spin")
        spin((1,), (1,), (0,))
        took = []
        for wait in (cupy.cuda.Stream.null.synchronize, torch.cuda.current_stream().synchronize):
            begin = time.perf_counter()
            spin((1,), (1,), (200_000_000,))
            wait()
            took.append(time.perf_counter() - begin)
        return took[0], took[1]

    assert min(gpu.run(seconds).result(timeout_s=WAIT_S)) > 0.05  # at 4 GHz; no card is as fast


def test_torch_and_cupy_are_in_one_order(gpu: Device) -> None:
    def both(a: Any) -> Any:
        import cupy
        import torch

        spin = cupy.RawKernel(SPIN, "spin")
        spin((1,), (1,), (20_000_000,))
        a += 1
        tensor = torch.as_tensor(a, device="cuda")
        tensor *= 2
        a += 1
        return a

    x = gpu.put(np.ones(1 << 20, np.float32))
    for _ in range(5):
        assert (value(gpu, gpu.run(both, array.copy(x))) == 5).all()


def test_a_broadcast_answer_becomes_a_buffer_of_its_own(gpu: Device) -> None:
    def spread(a: Any) -> Any:
        import cupy

        return cupy.broadcast_to(a, (3, 2))

    answer = gpu.run(spread, gpu.put(np.array([1.0, 2]))).result(timeout_s=WAIT_S)
    blas.scal(answer, 2, out=answer)
    assert value(gpu, answer).tolist() == [[2, 4]] * 3


def test_an_array_on_another_card_is_refused(gpu: Device) -> None:
    def count() -> Any:
        import cupy

        return cupy.cuda.runtime.getDeviceCount()

    def elsewhere() -> Any:
        import cupy

        with cupy.cuda.Device(1):
            return cupy.ones(3)

    if gpu.run(count).result(timeout_s=WAIT_S) == 1:
        pytest.skip("there is one card")
    with pytest.raises(InvalidArgument, match="on card 1"):
        gpu.run(elsewhere).result(timeout_s=WAIT_S)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "int64", "bool"])
def test_a_torch_tensor_becomes_a_buffer(gpu: Device, dtype: str) -> None:
    def tensor(name: str) -> Any:
        torch: Any = import_module("torch")
        return torch.arange(6, device="cuda").reshape(2, 3).to(getattr(torch, name)).T

    answer = gpu.run(tensor, dtype).result(timeout_s=WAIT_S)
    assert (answer.shape, answer.dtype) == ((3, 2), dtype)
    expected = np.arange(6).reshape(2, 3).astype(numpy_dtype(dtype)).T
    assert value(gpu, answer).tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_torch_s_memory_is_kept_while_a_buffer_of_it_is_read(gpu: Device) -> None:
    def tensor(n: int, number: float) -> Any:
        torch: Any = import_module("torch")
        return torch.full((n, n), number, device="cuda")

    replies = []
    for number in range(1, 9):
        x = gpu.run(tensor, 1024, float(number))
        replies.append((number, gpu.get(blas.gemm(x.result(timeout_s=WAIT_S), x.result()))))
        del x
    for number, reply in replies:
        assert (reply.result(timeout_s=WAIT_S) == 1024 * number**2).all()


def test_what_a_function_raises_costs_no_context(gpu: Device) -> None:
    generation = gpu.generation

    def mistake() -> Any:
        import cupy

        return cupy.ones(3) @ cupy.ones(4)

    with pytest.raises(UserCodeError):
        gpu.run(mistake).result(timeout_s=WAIT_S)
    assert gpu.generation == generation
