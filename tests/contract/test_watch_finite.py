"""`lab.watch_finite()` stops at the first NaN or Inf, and names what made it."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from accel_lab import System, array, blas, jit, solver
from accel_lab.compute.device import Device
from accel_lab.compute.requests.message_cache import MessageCache, Repeat
from accel_lab.errors import DependencyFailed, InvalidArgument, LibraryError, NonFiniteResult


@pytest.fixture
def gpu(device: Device) -> Device:
    return device


@pytest.fixture
def lab(device: Device) -> System:
    system: System = device._system  # type: ignore[assignment]
    return system


def test_it_names_message_operand_and_line(lab: System, gpu: Device) -> None:
    a = gpu.put(np.eye(4))
    b = gpu.put(np.array([[1.0, np.nan, np.inf, 0.0]] * 4))
    with lab.watch_finite():
        assert array.exp(a).shape == (4, 4)
        with pytest.raises(NonFiniteResult) as caught:
            blas.gemm(a, b)  # this line
    error = caught.value
    product = np.eye(4) @ b.get()
    assert (error.nans, error.infs) == (np.isnan(product).sum(), np.isinf(product).sum())
    assert error.message == f"Gemm #{error.message.rpartition('#')[2]}"
    assert (error.operand, error.cell) == ("b", 0)
    assert error.place.startswith(__file__)
    assert "blas.gemm(a, b)  # this line" in str(error)
    assert "operand b" in str(error)


def test_where_the_message_itself_makes_it_the_operands_are_finite(
    lab: System, gpu: Device
) -> None:
    x = gpu.put(np.array([1.0, 0.0, -1.0], np.float32))
    with (
        lab.watch_finite(),
        pytest.raises(NonFiniteResult, match="Its operands are finite") as caught,
    ):
        array.log(x)
    assert (caught.value.operand, caught.value.nans, caught.value.infs) == ("", 1, 1)


@pytest.mark.parametrize("dtype", ["float16", "float64", "complex64", ml_dtypes.bfloat16])
def test_every_dtype_with_nan_is_watched(lab: System, gpu: Device, dtype: object) -> None:
    x = gpu.put(np.array([1, np.nan, 2]).astype(dtype))  # type: ignore[call-overload]
    with lab.watch_finite(), pytest.raises(NonFiniteResult, match="1 NaN"):
        x + x


def test_what_is_changed_in_place_is_looked_at_too(lab: System, gpu: Device) -> None:
    x = gpu.put(np.array([1e308, 1.0]))
    with lab.watch_finite(), pytest.raises(NonFiniteResult, match="1 Inf"):
        array.multiply(x, 100.0, out=x)


def test_one_of_several_results_is_named(lab: System, gpu: Device) -> None:
    x = gpu.put(np.full((4, 4), 1e308))  # the norm of a column is 2e308
    with lab.watch_finite(), pytest.raises(NonFiniteResult, match=r"Qr #\d+ .* in [qr] \(float64"):
        solver.qr(x)


ROOT = """
__global__ void root(const double* x, double* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = sqrt(x[i]);
}
"""


class Unasked(MessageCache):
    """One that says of a message that it can be sent ready-made, which nobody may ask here."""

    def find(self, made_of: tuple[Any, ...], generation: int) -> Repeat | None:
        raise AssertionError(f"{made_of} of generation {generation} is made, not found")


@pytest.mark.usefixtures("compiling")
def test_a_launch_is_looked_at_by_what_it_writes_and_never_sent_ready_made(
    lab: System, gpu: Device
) -> None:
    root = jit.compile(gpu, ROOT, "root")
    root._repeats = Unasked()
    x, y = gpu.put(-np.ones(3)), gpu.put(np.zeros(3))
    with lab.watch_finite(), pytest.raises(NonFiniteResult, match="3 NaN") as caught:
        root(1, 32, (x, y, 3))
    assert caught.value.message.startswith("LaunchKernel #")
    assert np.isnan(y.get()).all()


def test_a_failed_message_fails_as_ever(lab: System, gpu: Device) -> None:
    singular = gpu.put(np.zeros((2, 2)))
    right = gpu.put(np.ones((2, 1)))
    with lab.watch_finite():
        answer = solver.solve(singular, right)
    with pytest.raises((LibraryError, DependencyFailed, InvalidArgument)):
        answer.get()


def test_it_ends_with_its_block_and_there_is_one_at_a_time(lab: System, gpu: Device) -> None:
    x = gpu.put(np.array([np.nan]))
    watch = lab.watch_finite()
    with pytest.raises(InvalidArgument, match="is watched already"):
        lab.watch_finite()
    with watch:
        assert array.isnan(x).get().all()
    watch.__exit__(None, None, None)
    assert np.isnan((x + x).get()).all()
    assert gpu._outbox.watch is None
