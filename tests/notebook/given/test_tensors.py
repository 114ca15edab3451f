"""What cells change of the notebook's PyTorch on the CPU: as if it all ran in the notebook."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from accel_lab.errors import UserCodeError
from accel_lab.notebook.object_ref import ObjectRef
from tests.conftest import require
from tests.notebook.cells import Notebook

TRAINING = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm, self.seen = torch.nn.Linear(3, 1), torch.nn.BatchNorm1d(1), 0
    def forward(self, x):
        self.seen += len(x)
        return self.norm(self.linear(x))
drawn = torch.Generator().manual_seed(3)
x = torch.randn(8, 3, generator=drawn)
net = Net()
with torch.no_grad():
    net.linear.weight.copy_(torch.randn(1, 3, generator=drawn))
    net.linear.bias.zero_()
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
"""
STEPS = (
    """
loss = (net(x) - torch.randn(8, 1, generator=drawn)).square().mean()
loss.backward()
""",
    """
optimizer.step()
optimizer.zero_grad(set_to_none=False)
optimizer.param_groups[0]["lr"] *= 0.5
""",
    """
x += 0.125
net(x).sum().backward()
net.norm.eval()
""",
)


@pytest.fixture(autouse=True)
def torch() -> Any:
    require("torch")
    return import_module("torch")


def test_a_model_is_trained_cell_by_cell_as_in_a_script(notebook: Notebook) -> None:
    """Parameters, gradients, statistics, the optimizer's and the generator's state: to the bit."""
    plain: dict[str, Any] = {"__name__": "__main__"}
    notebook.names |= plain
    exec(TRAINING, plain)  # noqa: S102 - of this file
    exec(TRAINING, notebook.names)  # noqa: S102 - of this file
    before = dict(notebook.names)
    weight = before["net"].linear.weight
    for step in STEPS * 2:
        exec(step, plain)  # noqa: S102 - of this file
        notebook(step)
    names = notebook.names
    for name in ("net", "x", "optimizer", "drawn"):
        assert names[name] is before[name]
    assert names["net"].linear.weight is weight
    assert names["optimizer"].param_groups[0]["params"][0] is weight
    assert facts(names) == facts(plain)


def facts(names: dict[str, Any]) -> dict[str, Any]:
    net, optimizer = names["net"], names["optimizer"]
    state = optimizer.state_dict()
    return {
        "parameters": [one.tolist() for one in net.state_dict().values()],
        "gradients": [one.grad.tolist() for one in net.parameters()],
        "steps": [[float(part.sum()) for part in one.values()] for one in state["state"].values()],
        "groups": state["param_groups"],
        "seen": (net.seen, net.training, net.norm.training),
        "x": names["x"].tolist(),
        "drawn": names["drawn"].get_state().tolist(),
    }


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "complex64"])
def test_a_tensor_is_changed_in_place_under_any_name(
    notebook: Notebook, torch: Any, dtype: str
) -> None:
    one = torch.zeros(2, 3, dtype=getattr(torch, dtype))
    view = one.T
    state = {"one": one, "two": torch.ones(2), "other": object(), "step": 0}
    two = state["two"]
    notebook.names |= {"view": view, "state": state, "torch": torch}
    notebook("view[0] = 1")
    assert one[:, 0].tolist() == [1, 1]
    assert one.sum().real.item() == (1 if dtype == "bool" else 2) or dtype == "bool"
    notebook("state['one'][1] = 1\nstate['two'] = state['two'] * 3\nstate['step'] += 1")
    assert one[1].tolist() == [1, 1, 1]
    assert state["two"] is two
    assert (two.tolist(), state["step"]) == ([3.0, 3.0], 1)
    with pytest.raises(UserCodeError):
        notebook("view[:] = 0\n1 / 0")
    assert not one.any()


def test_a_parameter_that_is_frozen_in_a_cell_is_frozen(notebook: Notebook, torch: Any) -> None:
    net = notebook.names["net"] = torch.nn.Linear(2, 2)
    notebook("net.bias.requires_grad_(False)")
    assert not net.bias.requires_grad
    assert isinstance(net.bias, torch.nn.Parameter)
    assert net.weight.requires_grad
    notebook("net.bias.requires_grad_(True)")
    assert net.bias.requires_grad


def test_a_gradient_goes_into_a_cell_and_is_added_to_there(notebook: Notebook, torch: Any) -> None:
    weight = notebook.names["weight"] = torch.ones(2, requires_grad=True)
    (weight * 2).sum().backward()
    grad = weight.grad
    notebook("(weight * 3).sum().backward()")
    assert weight.grad is grad
    assert grad.tolist() == [5.0, 5.0]
    notebook("weight.grad = None")
    assert weight.grad is None


def test_a_schedule_goes_on_where_a_cell_has_left_it(notebook: Notebook, torch: Any) -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    optimizer.step()
    schedule.step()
    notebook.names |= {"optimizer": optimizer, "schedule": schedule}
    notebook("schedule.step()")
    assert (optimizer.param_groups[0]["lr"], schedule.last_epoch) == (0.5, 2)
    optimizer.step()
    schedule.step()
    notebook("schedule.step()")
    assert (optimizer.param_groups[0]["lr"], schedule.last_epoch) == (0.25, 4)


def test_a_layer_that_a_cell_makes_anew_stays_in_the_context(
    notebook: Notebook, torch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    net = notebook.names["net"] = torch.nn.Sequential(torch.nn.Linear(2, 2))
    notebook.names["torch"] = torch
    notebook("net.add_module('more', torch.nn.Linear(2, 1))")
    assert isinstance(notebook.names["net"], ObjectRef)
    assert len(net) == 1
    assert "net._modules['more'] does not come back" in capsys.readouterr().err


def test_a_notebook_without_pytorch_does_not_import_it(torch: Any) -> None:
    """What this floor asks PyTorch for, it asks the one that is there."""
    code = (
        "import sys\n"
        "from accel_lab.compute.cells.captured_objects import CapturedObjects, arrays_in, change\n"
        "from accel_lab.compute.cells.write_back import can_change\n"
        "class Own:\n    def __init__(self): self.a, self.b = 1, object()\n"
        "value = [Own(), {'n': 1}, object()]\n"
        "held = CapturedObjects(value, arrays_in(value), lambda _: False)\n"
        "value[1]['n'] = 2\n"
        "change(value, held.changes()[0])\n"
        "assert not can_change(value[0])\n"
        "assert 'torch' not in sys.modules\n"
    )
    import subprocess
    import sys

    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_array_beside_a_tensor_of_the_notebooks_is_its_own(
    notebook: Notebook, torch: Any
) -> None:
    array = notebook.gpu.put(np.ones(2))
    state = {"mine": torch.zeros(2), "array": array}
    notebook.names["state"] = state
    notebook("state['mine'] += 1\nstate['array'] += 1")
    assert state["array"] is array
    assert state["mine"].tolist() == [1.0, 1.0]
    assert notebook.gpu.get(array).result().tolist() == [2.0, 2.0]
