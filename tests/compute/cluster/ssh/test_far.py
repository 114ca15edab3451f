"""Devices of a machine that ssh reaches are the same devices."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from accel_lab import System, jit, views
from accel_lab.compute.process import zygote_cache
from accel_lab.errors import ContextLost, GroupAborted, InvalidArgument
from accel_lab.libraries import fft
from tests.compute.cluster.conftest import until
from tests.compute.cluster.ssh.far_host import FarHost
from tests.conftest import require
from tests.notebook.cells import Notebook
from tests.project import ROOT

WAIT = 60.0
TRAINING = """
w = np.zeros(3)
for step in range(200):
    w -= 0.1 * 2 * x.T @ (x @ w - y) / len(x)
float(((x @ w - y) ** 2).mean())
"""


@pytest.fixture(scope="module", name="lab")
def far_lab(host: FarHost) -> Iterator[System]:
    """Open a system with two devices there."""
    with System(host.url, 2, python=sys.executable, ssh=host.ssh) as opened:
        yield opened


def test_contexts_run_there(lab: System, host: FarHost) -> None:
    assert lab.backend == "host"
    assert [device.name for device in lab.devices] == ["cpu0", "cpu1"]
    details = [node.children[0].detail for node in lab.tree().children]
    assert all("@127.0.0.1" in one for one in details)
    process = lab._supervisors[0].process
    assert process is not None
    assert process.pid in host.processes()


def test_it_computes_what_numpy_does(lab: System) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.random((257, 129)), rng.random((129, 65))
    for device in lab.devices:
        a, b = device.put(x), device.put(y)
        np.testing.assert_allclose((a @ b).get(), x @ y)
        np.testing.assert_allclose(device.ask(fft.R2C(a[3])).get(), np.fft.rfft(x[3]))
        assert device.run(lambda v: float(v.sum()), a).result(WAIT) == x.sum()
    np.testing.assert_array_equal(lab.copy(lab.devices[0].put(x), to=1).get(), x)


@pytest.mark.parametrize("shape", [(), (0,), (2049,), (1 << 20,)], ids=str)
@pytest.mark.parametrize("kind", ["noise", "zeros"])
def test_arrays_of_any_size_come_back(lab: System, shape: tuple[int, ...], kind: str) -> None:
    high = 1 << 60 if kind == "noise" else 1
    value = np.random.default_rng(2).integers(0, high, shape)
    np.testing.assert_array_equal(lab.devices[1].put(value).get(), value)


def test_the_quickstart(lab: System) -> None:
    require("compiler")
    gpu = lab.devices[0]
    source = """extern "C" __global__ void spin(long n, float* out) {
      for (long i = 0; i < n; i++) *out += 1e-9f * i;
    }"""
    spin = jit.compile(gpu, source, "spin")
    out = gpu.put(np.zeros(1, "float32"))
    running = spin(1, 1, (100_000_000_000, out))
    timeline = views.timeline(lab)
    assert until(lambda: "spin" in repr(timeline))
    gpu.replace()
    with pytest.raises(ContextLost):
        running.result(WAIT)
    np.testing.assert_array_equal(out.get(), np.zeros(1, "float32"))


def test_a_training_loop_of_a_cell(lab: System) -> None:
    rng = np.random.default_rng(3)
    x = rng.random((500, 3))
    notebook = Notebook(lab)
    notebook.names |= {"x": x, "y": x @ np.array([1.0, -2.0, 3.0])}
    shown = notebook(TRAINING)
    assert float(shown) < 0.01
    assert notebook.gpu.get(notebook.names["w"]).result().shape == (3,)


def test_code_finds_the_files_of_its_machine(lab: System, monkeypatch: pytest.MonkeyPatch) -> None:
    def there() -> tuple[str, list[str], str | None]:
        import os
        import sys

        return os.getcwd(), sys.path, os.environ.get("ONLY_HERE")  # noqa: PTH109

    monkeypatch.setenv("ONLY_HERE", "yes")
    monkeypatch.syspath_prepend("/only/here")
    folder, path, variable = lab.devices[0].run(there).result(WAIT)
    assert folder != str(ROOT)
    assert "/only/here" not in path
    assert variable is None


def test_a_world_of_its_devices(lab: System) -> None:
    world = lab.world()
    parts = [device.put(np.full(5, rank + 1.0)) for rank, device in enumerate(lab.devices)]
    np.testing.assert_array_equal(world.all_reduce(parts).get(), np.full(5, 3.0))
    world.close()


def test_a_function_on_all_ranks(lab: System) -> None:
    """The ranks find each other in a folder there, which is gone behind it."""
    require("torch")

    def total() -> tuple[float, str]:
        import tempfile

        import torch

        found = torch.full((3,), torch.distributed.get_rank() + 1.0)
        torch.distributed.all_reduce(found)
        return float(found[0]), tempfile.gettempdir()

    def fail() -> None:
        import torch

        if torch.distributed.get_rank() == 1:
            raise ValueError("rank one is unwell")
        torch.distributed.barrier()

    world = lab.world()
    (first, folder), (second, _) = world.run(total).result(WAIT)
    assert first == second == 3
    assert Path(folder) != Path(tempfile.gettempdir())
    with pytest.raises(GroupAborted, match=r"fail: rank . on cpu. failed"):
        world.run(fail).result(WAIT)
    assert until(lambda: not list(Path(folder).glob("accel_lab-ranks-*")))
    with pytest.raises(InvalidArgument, match=r"a\.py is a file of this machine"):
        world.run_script("a.py")
    world.close()


def test_what_needs_this_machine_is_refused(lab: System) -> None:
    with pytest.raises(InvalidArgument, match="cpu1 is on another machine"):
        lab.devices[1].suspend()


def test_closing_ends_the_far_process(host: FarHost, leaves_nothing: None) -> None:
    before = set(host.processes())
    with System("host", cluster=host.url, python=sys.executable, ssh=host.ssh) as lab:
        assert lab.devices[0].put(np.ones(3)).get().sum() == 3
        assert set(host.processes()) - before
    del lab
    zygote_cache.end()
    assert until(lambda: not set(host.processes()) - before)


def test_a_killed_kernel_ends_it_after_the_grace_time(host: FarHost) -> None:
    before = set(host.processes())
    code = (
        "import sys\nfrom accel_lab import System\n"
        f"lab = System({host.url!r}, python={sys.executable!r}, ssh={host.ssh!r}, grace_s=1.5)\n"
        "lab.ready()\nprint('up', flush=True)\nsys.stdin.read()"
    )
    kernel = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )
    assert kernel.stdout is not None
    assert kernel.stdout.readline() == b"up\n"
    assert set(host.processes()) - before
    kernel.kill()
    killed = time.monotonic()
    kernel.communicate()
    assert until(lambda: not set(host.processes()) - before)
    assert time.monotonic() - killed > 1.5
