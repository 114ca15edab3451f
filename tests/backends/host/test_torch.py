"""PyTorch's CPU tensors in the context of the host backend, and on their way to it."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from accel_lab import Device, blas
from accel_lab.compute.arrays.dtypes import numpy_dtype
from tests.conftest import require

WAIT_S = 120.0  # the first function that uses it imports PyTorch
DTYPES = [
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "int64",
    "bool",
    "complex64",
]


@pytest.fixture(autouse=True)
def torch() -> Any:
    require("torch")
    return import_module("torch")


def numbers(dtype: str) -> Any:
    return np.arange(6).reshape(2, 3).astype(numpy_dtype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_that_a_function_returns_is_a_buffer(cpu: Device, dtype: str) -> None:
    def tensor(name: str) -> Any:
        torch = import_module("torch")
        return torch.arange(6).reshape(2, 3).to(getattr(torch, name)).T

    answer = cpu.run(tensor, dtype).result(WAIT_S)
    assert (answer.shape, answer.dtype) == ((3, 2), dtype)
    expected = np.ascontiguousarray(numbers(dtype).T)
    assert cpu.get(answer).result(WAIT_S).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_of_the_notebook_is_put(cpu: Device, torch: Any, dtype: str) -> None:
    tensor = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype)).T
    ref = cpu.put(tensor)
    assert (ref.shape, ref.dtype) == ((3, 2), dtype)
    expected = np.ascontiguousarray(numbers(dtype).T)
    assert cpu.get(ref).result(WAIT_S).tobytes() == expected.tobytes()


def test_a_parameter_is_put_without_its_gradient(cpu: Device, torch: Any) -> None:
    layer = torch.nn.Linear(3, 2)
    found = cpu.get(cpu.put(layer.weight)).result(WAIT_S)
    np.testing.assert_array_equal(found, layer.weight.detach().numpy())


def test_a_tensor_and_its_buffer_share_memory(cpu: Device) -> None:
    """As long as either lives: what a message writes is read by PyTorch."""

    def make() -> Any:
        torch: Any = import_module("torch")
        torch.kept_by_the_test = torch.ones(4)
        return torch.kept_by_the_test

    def total() -> float:
        torch: Any = import_module("torch")
        return float(torch.kept_by_the_test.sum())

    ref = cpu.run(make).result(WAIT_S)
    blas.scal(ref, 5.0, out=ref).result(WAIT_S)
    assert cpu.run(total).result(WAIT_S) == 20.0


def test_an_operand_is_a_tensor_by_dlpack_without_a_copy(cpu: Device) -> None:
    def double(x: Any) -> Any:
        tensor = import_module("torch").from_dlpack(x)
        tensor *= 2
        return tensor

    x = cpu.put(np.arange(4.0))
    doubled = cpu.run(double, x).result(WAIT_S)
    assert cpu.get(x).result(WAIT_S).tolist() == [0.0, 2.0, 4.0, 6.0]
    assert cpu.get(doubled).result(WAIT_S).tolist() == [0.0, 2.0, 4.0, 6.0]


def test_lazy_conjugates_and_broadcasts_become_plain(cpu: Device) -> None:
    def conjugate() -> Any:
        return import_module("torch").tensor([1 + 2j]).conj()

    def broadcast() -> Any:
        return import_module("torch").ones(1, 3).expand(2, 3)

    assert cpu.get(cpu.run(conjugate).result(WAIT_S)).result(WAIT_S).tolist() == [1 - 2j]
    wide = cpu.run(broadcast).result(WAIT_S)
    blas.scal(wide, 2.0, out=wide).result(WAIT_S)
    assert (cpu.get(wide).result(WAIT_S) == 2.0).all()


def test_a_sparse_tensor_is_no_buffer(cpu: Device, torch: Any) -> None:
    def sparse() -> Any:
        return import_module("torch").eye(3).to_sparse()

    found = cpu.run(sparse).result(WAIT_S)
    assert torch.equal(found.to_dense(), torch.eye(3))
    with pytest.raises(TypeError):
        cpu.put(found)


def test_a_model_comes_whole(cpu: Device, torch: Any) -> None:
    """With its parameters and buffers as PyTorch's, not as handles."""

    def model() -> Any:
        torch = import_module("torch")
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))

    found = cpu.run(model).result(WAIT_S)
    torch.manual_seed(1)
    expected = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    assert found.state_dict().keys() == expected.state_dict().keys()
    for name, tensor in expected.state_dict().items():
        assert torch.equal(found.state_dict()[name], tensor)
    assert found(torch.ones(4, 3)).shape == (4, 2)


def test_tensors_in_a_dictionary_are_buffers(cpu: Device) -> None:
    def weights() -> Any:
        torch = import_module("torch")
        return {"weight": torch.ones(2, 2), "steps": 3}

    found = cpu.run(weights).result(WAIT_S)
    assert found["steps"] == 3
    assert cpu.get(found["weight"]).result(WAIT_S).tolist() == [[1.0, 1.0], [1.0, 1.0]]
