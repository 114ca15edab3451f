"""A process whose CUDA is a stand-in of ours, and what runs in it.

The driver's card is memory of that process. What runs is ours.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compute.own_cuda.reading_backend.reading import CARD
from tests.conftest import require

Reading = Callable[[str], None]
HERE = Path(__file__).parent
BACKEND = HERE / "reading_backend"
BEGIN = """
import ctypes, sys, warnings
import numpy as np
driver = ctypes.CDLL(sys.argv[1])
from accel_lab import System
from accel_lab.compute.machine.loaded_driver import open_contexts
from accel_lab.compute.arrays.cuda_arrays import device_array
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


def run(driver: Path, program: str, environment: dict[str, str] | None = None) -> None:
    command = [sys.executable, "-c", BEGIN + program, str(driver)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    assert done.returncode == 0, done.stderr


OPENED = """
import gc, time, types, weakref
from accel_lab.compute.transfer import transfers
from accel_lab.compute.transfer.ipc_memory import IpcMemory

transfers.KEPT_BYTES = 1000

class Memory:
    pass

class Pooled(Card):
    base = None

    def __init__(self, array):
        super().__init__(array)
        self.shape, self.flags = array.shape, array.flags
        self.data = types.SimpleNamespace(mem=Memory(), ptr=array.ctypes.data)

stream = types.SimpleNamespace(ptr=0)
cupy = types.ModuleType("cupy")
cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: stream)
cupy.ndarray = Pooled
sys.modules["cupy"] = cupy

def on_card(lab):
    requests = lab.devices[0]._requests
    made = IpcMemory(requests.unrecorded.post, lab._event_loop)
    requests.connection.ipc_memory = lab.devices[0]._transfers._ipc_memory = made
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


CARD_OF_FILES = """
import itertools, os, random, threading
from pathlib import Path

FOLDER = Path(os.environ["ACCEL_LAB_TEST_CARD"])
NUMBERS = itertools.count(1)
living, freed_while_open = set(), []

def marks(number="*"):
    found = [(path, Path("/proc") / path.suffix[1:]) for path in FOLDER.glob(f"{number}.*")]
    return [path.name for path, process in found if process.exists()]

class Allocation:
    # A file, which must not go while another process has it open.

    def __init__(self, count):
        self.number = next(NUMBERS)
        self.path = FOLDER / str(self.number)
        self.array = np.memmap(self.path, np.int32, "w+", shape=(count,))
        address = self.array.__array_interface__["data"][0]
        driver.own(*map(ctypes.c_uint64, (address, self.array.nbytes, self.number)))
        living.add(self.number)

    def __del__(self):
        if open_there := marks(self.number):
            freed_while_open.append(open_there)
        living.discard(self.number)

class OfMemory(Pooled):
    def __init__(self, memory, part=slice(None)):
        super().__init__(memory.array[part])
        self.data = types.SimpleNamespace(mem=memory, ptr=self.array.ctypes.data)

def fresh(value, count=1000):
    memory = Allocation(count)
    memory.array[:] = value
    return OfMemory(memory)
"""


@pytest.fixture
def reading(driver: Path, tmp_path: Path) -> Reading:
    """Return what runs a program where the backend beside this file reads files as its card."""
    paths = [str(BACKEND), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {CARD: str(tmp_path), "PYTHONPATH": os.pathsep.join(paths)}
    every = "transfers.KEPT_BYTES = 0  # all of them are read there\n"
    return lambda program: run(driver, OPENED + CARD_OF_FILES + every + program, environment)
