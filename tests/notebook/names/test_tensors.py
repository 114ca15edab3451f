"""PyTorch's tensors at the names that `%%gpu` cells bind, before a fault and after it."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from accel_lab import System
from accel_lab.compute.message.buffer import AccelRef
from tests.conftest import require
from tests.notebook.ipython import Lab, lose, shown
from tests.notebook.ipython import notebook as opened

DTYPES = ["float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "int64", "bool"]


@pytest.fixture(autouse=True)
def torch() -> Any:
    require("torch")
    return import_module("torch")


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", max_restarts=20, within_s=0.1) as lab:
        yield lab


@pytest.fixture
def notebook(lab: System) -> Iterator[Lab]:
    with opened(lab) as notebook:
        notebook("%%gpu\nimport torch")
        yield notebook


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_is_one_again_after_a_fault(notebook: Lab, lab: System, dtype: str) -> None:
    source = f"kept = torch.arange(6).reshape(2, 3).to(torch.{dtype})\nkept"
    before = shown(notebook, source)
    handle = notebook.names["kept"]
    assert isinstance(handle, AccelRef)
    lose(lab)
    assert shown(notebook, "kept") == before
    assert notebook.names["kept"] is handle


def test_a_leaf_is_trained_on_after_a_fault(notebook: Lab, lab: System) -> None:
    """Its gradient is made anew, and adds up from cell to cell as before."""
    notebook("%%gpu\na = torch.full((), 3.0, requires_grad=True)\nsquare = a * a")
    lose(lab)
    notebook("%%gpu\nimport torch\n(2 * a).backward()")
    notebook("%%gpu\n(a * a).backward()")
    assert shown(notebook, "a.grad") == "tensor(8.)"
    notebook("%%gpu\nwith torch.no_grad():\n    a -= a.grad")
    assert float(notebook.names["a"]) == -5.0
    assert shown(notebook, "square") == "tensor(9.)"  # without its graph


def test_a_tensor_that_a_function_reads_is_one_again(notebook: Lab, lab: System) -> None:
    """Also where nothing but the definition is run again before it is used."""
    notebook("%%gpu\nx = torch.ones(2)\ndef power(n):\n    return x.pow(n)\nlimit = 3")
    lose(lab)
    assert shown(notebook, "power(limit)") == "tensor([1., 1.])"
    assert shown(notebook, "x") == "tensor([1., 1.])"


def test_a_parameter_is_one_again_after_a_fault(notebook: Lab, lab: System) -> None:
    notebook("%%gpu\nweight = torch.nn.Parameter(torch.ones(2))")
    lose(lab)
    expected = "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert shown(notebook, "weight") == expected


def test_a_name_that_is_no_tensor_any_more_comes_back_as_what_it_is(
    notebook: Lab, lab: System
) -> None:
    notebook("%%gpu\nx = torch.ones(2)")
    notebook("%%gpu\nx = xp.zeros(2)")
    lose(lab)
    assert shown(notebook, "x") == "array([0., 0.])"
