"""Arrays that CUDA of the notebook's own process holds: read through the driver that is loaded.

The driver is a stand-in whose card is the memory of a process of its own. What runs is ours.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from accel_lab.compute.loaded_driver import loaded_driver, open_contexts
from tests.conftest import require

HERE = Path(__file__).parent
BEGIN = """
import ctypes, sys, warnings
import numpy as np
driver = ctypes.CDLL(sys.argv[1])
from accel_lab import System
from accel_lab.compute.loaded_driver import open_contexts
from accel_lab.compute.own_cuda import device_array
from accel_lab.errors import InvalidArgument

class Card:
    def __init__(self, array, **more):
        self.array, self.more = array, more
        self.dtype = array.dtype

    @property
    def __cuda_array_interface__(self):
        return {**self.array.__array_interface__, "version": 3, **self.more}

def told(name):
    return ctypes.c_int.in_dll(driver, name).value

def tell(name, value):
    ctypes.c_int.in_dll(driver, name).value = value

def refused(value):
    try:
        gpu.put(value)
    except InvalidArgument as error:
        return str(error)

values = np.random.default_rng(0).standard_normal((1100, 1000))
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("compiler")
    made = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    soname = f"-Wl,-soname,{made.name}"
    source = HERE / "fake_driver.c"
    compiler = shutil.which("c++") or "c++"
    command = [compiler, "-x", "c", "-shared", "-fPIC", soname, "-o", str(made), str(source)]
    subprocess.run(command, check=True)
    return made


def run(driver: Path, program: str) -> None:
    command = [sys.executable, "-c", BEGIN + program, str(driver)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_a_process_that_has_loaded_no_driver_holds_no_context() -> None:
    assert loaded_driver() is None
    assert open_contexts() == ()


def test_an_array_on_a_card_is_put_by_the_host(driver: Path) -> None:
    """Of any size; it is waited for on its own stream, or on all."""
    run(
        driver,
        """
with System("host") as lab:
    gpu = lab.devices[0]
    for array in (values, values[:3, :5].copy(), np.float32([]), np.array(2.5), values > 0):
        ref = gpu.put(Card(array))
        assert (ref.shape, ref.dtype) == (array.shape, str(array.dtype))
        assert np.array_equal(ref.get(timeout_s=60), array)
    large = gpu.put(Card(values, stream=3))
    assert told("waits") == 4 + 30, told("waits")  # an empty one is nowhere
    assert told("depth") == 0
    source = values.copy()
    ref = gpu.put(Card(source))
    source[:] = 0
    assert np.array_equal(ref.get(timeout_s=60), values)
""",
    )


def test_what_cannot_be_put_says_why(driver: Path) -> None:
    run(
        driver,
        """
with System("host") as lab:
    gpu = lab.devices[0]
    assert "mask" in refused(Card(values, mask=Card(values > 0)))
    assert "C-contiguous" in refused(Card(values.T))
    tell("broken", 700)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in refused(Card(values))
    assert told("depth") == 0
    tell("broken", 0)
    assert gpu.put(Card(values)).get(timeout_s=60)[0, 0] == values[0, 0]
""",
    )


def test_memory_of_a_pool_is_not_exported_but_read(driver: Path) -> None:
    run(
        driver,
        """
found, stream = device_array(Card(values))
assert stream is None
assert found.settle(stream) is None
handle, offset = found.settle(stream, share=True)
assert (handle, offset) == (b"\\7" * 64, 256)
assert found.tenure is None
tell("shareable", 0)
assert found.settle(stream, share=True) is None
with System("host") as lab:
    assert np.array_equal(lab.devices[0].put(Card(values)).get(timeout_s=60), values)
""",
    )


def test_an_open_context_is_told_by_check_and_the_doctor(driver: Path) -> None:
    run(
        driver,
        """
from accel_lab.doctor import examine
with System("host") as lab, warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    lab.check()
    assert not caught and open_contexts() == ()
    assert "own CUDA context" not in str(examine())
    tell("active", 2)
    lab.check()
    assert "context of its own on card 1" in str(caught[0].message)
    assert "own CUDA context" in str(examine())
""",
    )


OPENED = """
import gc, time, types, weakref
from accel_lab.compute import transfers
from accel_lab.compute.openings import Openings

transfers.KEPT_BYTES = 1000

class Memory:
    pass

class Pooled(Card):
    base = None

    def __init__(self, array):
        super().__init__(array)
        self.data = types.SimpleNamespace(mem=Memory())

cupy = types.ModuleType("cupy")
cupy.ndarray = Pooled
sys.modules["cupy"] = cupy

def on_card(lab):
    requests = lab.devices[0]._requests
    made = Openings(requests.post, lab._dispatcher)
    requests.openings = lab.devices[0]._transfers._openings = made
    return made

def put(array, times=1):
    for _ in range(times):
        assert np.array_equal(gpu.put(array).get(timeout_s=60), values)

def soon(true):
    until = time.monotonic() + 20
    while not true():
        assert time.monotonic() < until
        time.sleep(0.001)
"""


def test_memory_is_the_pools_again_when_the_context_has_closed_it(driver: Path) -> None:
    """The host's context refuses to read it, so that it is copied, and answers all the same."""
    run(
        driver,
        OPENED
        + """
with System("host") as lab:
    gpu, openings = lab.devices[0], on_card(lab)
    x = Pooled(values)
    memory = weakref.ref(x.data.mem)
    put(x, 3)
    view = Pooled(values)
    view.base, view.data = x, x.data
    put(view)
    del view
    assert len(openings) == 1
    lab.check()
    del x
    soon(lambda: memory() is None)
    soon(lambda: not gpu.in_flight)
    assert len(openings) == 0
    lone = Card(values)
    told_of = weakref.ref(lone)
    put(lone)
    del lone
    soon(lambda: told_of() is None)
    lab.check()
    names = [entry.name for entry in lab.journal]
    assert "CopyIn" in names and "Unmap" not in names, names
""",
    )


def test_memory_outlives_no_context_that_had_it_open(driver: Path) -> None:
    """A loss and a suspension close it; what died meanwhile wakes no device."""
    run(
        driver,
        OPENED
        + """
with System("host") as lab:
    gpu, openings = lab.devices[0], on_card(lab)
    x = Pooled(values)
    memory = weakref.ref(x.data.mem)
    put(x)
    try:
        lab.inject("poison").result(60)
    except Exception as error:
        assert type(error).__name__ == "ContextLost", error
    soon(lambda: len(openings) == 0)
    put(x)
    assert len(openings) == 1
    gpu.suspend()
    soon(lambda: len(openings) == 0)
    del x
    soon(lambda: memory() is None)
    assert gpu.state == "suspended"
    x = Pooled(values)
    memory = weakref.ref(x.data.mem)
    put(x)
    assert gpu.state == "running"
    assert len(openings) == 1
assert len(openings) == 0
del x
assert memory() is None
""",
    )
