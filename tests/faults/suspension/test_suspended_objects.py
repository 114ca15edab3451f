"""Objects of cells on a device that is given back."""

import numpy as np
import pytest

from accel_lab import Device, System
from accel_lab.compute.events.lifecycle import DeviceResumed
from accel_lab.errors import CannotKeep, StaleRef
from accel_lab.notebook.object_ref import ObjectRef
from tests.conftest import require
from tests.faults.conftest import pid_of
from tests.faults.suspension.suspended import WAIT, A, Cells


def test_names_of_cells_are_as_they_were(lab: System, cpu: Device) -> None:
    notebook = Cells(cpu)
    notebook.names["x"] = x = cpu.put(np.arange(4.0))
    notebook(
        "import math\n"
        "class Model:\n"
        "    def __init__(self, w): self.w = w\n"
        "    def __call__(self, v): return scale * (self.w @ v) + math.floor(0.5)\n"
        "scale = 2.0\n"
        "model = Model(x)\n"
        "both = {'model': model, 'end': x[2:], 'own': xp.ones(3)}\n"
        "def rescale(value):\n"
        "    global scale\n"
        "    scale = value\n"
        "count = 1000\n"
    )
    handles = {name: notebook.names[name] for name in ("model", "both", "count")}
    told = cpu.suspend()
    assert told.objects >= len(handles)
    assert notebook("model(x)") == "np.float64(28.0)"
    assert {name: notebook.names[name] for name in handles} == handles
    assert isinstance(handles["count"], ObjectRef)
    assert handles["count"].get() == 1000
    assert "lost" not in repr(handles["model"])
    assert notebook("scale = 1.0\nboth['model'] is model, model(x)") == "(True, np.float64(14.0))"
    assert notebook("rescale(3.0)\nscale") == "3.0"
    notebook("both['end'][:] = 7.0")
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), [0.0, 1.0, 7.0, 7.0])
    notebook("other = count + 1")
    assert notebook.names["other"].get() == 1001


def test_tensors_of_cells_share_what_they_shared(cpu: Device) -> None:
    require("torch")
    notebook = Cells(cpu)
    notebook(
        "import torch\n"
        "t = torch.arange(6.0)\n"
        "end = t[3:]\n"
        "model = torch.nn.Linear(2, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=1.0)\n"
        "loss = (model(torch.ones(2)) * 2).sum()\n"
        "loss.backward()\n"
        "halves = {'h': t.to(torch.bfloat16)}"
    )
    t = notebook.names["t"]
    weight = notebook("model.weight.detach().clone()")
    cpu.suspend()
    assert notebook("model.weight.detach().clone()") == weight
    assert notebook("model.weight.grad, loss.requires_grad") == "(tensor([[2., 2.]]), False)"
    stepped = (
        "before = model.weight.clone()\noptimizer.step()\ntorch.allclose(before - 2, model.weight)"
    )
    assert notebook(stepped) == "True"
    notebook("end[:] = 7.0")
    np.testing.assert_array_equal(t.get(timeout_s=WAIT), [0.0, 1.0, 2.0, 7.0, 7.0, 7.0])
    assert notebook("halves['h'].sum().item(), t.requires_grad") == "(15.0, False)"


def test_what_does_not_pickle_is_named_before_anything_is_lost(lab: System, cpu: Device) -> None:
    notebook = Cells(cpu)
    notebook("lines = (line for line in 'ab')\nfine = [1]")
    x = cpu.put(A)
    pid = pid_of(lab, cpu)
    with pytest.raises(CannotKeep, match=r"lines.*generator") as caught:
        lab.suspend()
    assert list(caught.value.lost) == ["lines"]
    assert (cpu.state, pid_of(lab, cpu)) == ("running", pid)
    assert notebook("next(lines)") == "'a'"
    told = cpu.suspend(drop=True)
    assert [name for name, _ in told.lost] == ["lines"]
    assert notebook("fine") == "[1]"
    with pytest.raises(StaleRef):
        notebook.names["lines"].get()
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)


def test_a_name_that_uses_what_does_not_pickle_is_kept(cpu: Device) -> None:
    notebook = Cells(cpu)
    notebook("import threading\nlock = threading.Lock()\ndef locked(): return lock.locked()")
    with pytest.raises(CannotKeep) as caught:
        cpu.suspend()
    assert list(caught.value.lost) == ["lock"]
    cpu.suspend(drop=True)
    notebook("lock = threading.Lock()")
    assert notebook("locked()") == "False"


def test_objects_that_cannot_be_made_again_are_told(lab: System, cpu: Device) -> None:
    notebook = Cells(cpu)
    notebook("class Odd:\n    def __reduce__(self): return int, ('x',)\nodd = Odd()")
    x = cpu.put(A)
    cpu.suspend()
    mark = lab.events.published
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)
    fact = lab.events.wait_for(DeviceResumed, WAIT, since=mark)
    assert "invalid literal" in fact.lost[0]
    with pytest.raises(StaleRef):
        notebook.names["odd"].get()
    assert notebook("1 + 1") == "2"


def test_a_host_without_room_is_told_by_the_name_of_what_does_not_fit(
    cpu: Device,
) -> None:
    small, large = cpu.put(np.ones(10)), cpu.put(np.ones(100_000))
    cpu._supervisor.suspension.room_bytes = lambda: 100_000
    with pytest.raises(CannotKeep, match=r"it needs 784 KiB, and the host has 94 KiB") as caught:
        cpu.suspend()
    assert list(caught.value.lost) == [f"buffer {large.id}"]
    np.testing.assert_array_equal(large.get(timeout_s=WAIT), np.ones(100_000))
    cpu.suspend(drop=True)
    np.testing.assert_array_equal(small.get(timeout_s=WAIT), np.ones(10))
    with pytest.raises(StaleRef, match=r"dropped when cpu0 was suspended: .* 784 KiB"):
        large.get(timeout_s=WAIT)
    with pytest.raises(StaleRef, match="dropped"):
        large + 1
    assert (small.is_valid, large.is_valid) == (True, False)
    assert "dropped when the device was suspended" in repr(large)
    assert cpu.generation == 1
