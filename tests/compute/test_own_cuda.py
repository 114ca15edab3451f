"""Arrays that CUDA of the notebook's own process holds: read through the driver that is loaded.

The driver is a stand-in whose card is the memory of a process of its own. What runs is ours.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from accel_lab.compute.loaded_driver import loaded_driver, open_contexts
from tests.compute.reading_backend.reading import CARD
from tests.conftest import require

HERE = Path(__file__).parent
BACKEND = HERE / "reading_backend"
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
assert found.tenure() is None
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
        self.shape, self.flags = array.shape, array.flags
        self.data = types.SimpleNamespace(mem=Memory(), ptr=array.ctypes.data)

stream = types.SimpleNamespace(ptr=0)
cupy = types.ModuleType("cupy")
cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: stream)
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
def card(tmp_path: Path) -> dict[str, str]:
    """Return the environment in which the backend beside this file reads these files."""
    paths = [str(BACKEND), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {CARD: str(tmp_path), "PYTHONPATH": os.pathsep.join(paths)}


def test_an_allocation_is_opened_once_and_closed_before_it_is_freed(
    driver: Path, card: dict[str, str]
) -> None:
    run(
        driver,
        OPENED
        + CARD_OF_FILES
        + """
transfers.KEPT_BYTES = 0
with System("reading", devices=1) as lab:
    gpu, openings = lab.devices[0], on_card(lab)
    x = fresh(3)
    for turn in range(4):
        x.array[:] = turn
        ref = gpu.put(x)
        x.array[:] = -1  # it has been read
        assert (ref.get(timeout_s=60) == turn).all()
        assert len(marks()) == 1
    assert ref.durability == "lost on fault" and "own CUDA" in ref.durability.why
    part = OfMemory(x.data.mem, slice(500, None))
    part.array[:] = 8
    assert gpu.put(part).get(timeout_s=60).tolist() == [8] * 500
    assert len(marks()) == 1
    del x
    assert (gpu.put(part).get(timeout_s=60) == 8).all()
    assert len(marks()) == len(living) == 1
    del part
    soon(lambda: not living)
    assert not marks()
    lone = fresh(5)
    untold = Card(lone.array)
    untold.memory = lone.data.mem
    del lone
    assert (gpu.put(untold).get(timeout_s=60) == 5).all()
    soon(lambda: not marks())
    del untold
    soon(lambda: not living)
    many = [fresh(i) for i in range(12)]
    for _ in range(2):
        for i, one in enumerate(many):
            assert (gpu.put(one).get(timeout_s=60) == i).all()
        soon(lambda: len(marks()) == len(openings) == 8)
    lab.check()
del many, one
assert not living and not freed_while_open, (living, freed_while_open)
""",
        card,
    )


def test_an_allocation_is_exported_once(driver: Path, card: dict[str, str]) -> None:
    """As long as the context to which it belongs is current; another at its place is another."""
    run(
        driver,
        OPENED
        + CARD_OF_FILES
        + """
x = fresh(3)
part = OfMemory(x.data.mem, slice(500, None))

def exported(array):
    before = told("exports")
    found, _ = device_array(array)
    handle, offset = found.settle(4, share=True)
    assert told("depth") == 0
    return int.from_bytes(handle[:8], "little"), offset, told("exports") - before

assert exported(x) == (1, 0, 1)
assert exported(x) == (1, 0, 1)  # no context is current here: it may be of another card
tell("current", 1)
assert exported(x) == (1, 0, 0)
assert exported(part) == (1, 2000, 0)
assert told("waits") == 160
tell("idle", 1)
assert exported(x) == (1, 0, 0)
assert told("waits") == 160
address = x.array.__array_interface__["data"][0]
driver.own(*map(ctypes.c_uint64, (address, x.array.nbytes, 77)))
assert exported(x) == (77, 0, 1)
tell("idle", 0)
tell("broken", 700)
try:
    exported(x)
except InvalidArgument as error:
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in str(error)
else:
    raise AssertionError
""",
        card,
    )


def test_who_does_not_wait_has_a_buffer_that_is_not_done(
    driver: Path, card: dict[str, str]
) -> None:
    """The memory is kept until it has been read; the first put of an allocation waits."""
    run(
        driver,
        OPENED
        + CARD_OF_FILES
        + """
transfers.KEPT_BYTES = 0
gate = FOLDER / "gate"
with System("reading", devices=1) as lab:
    gpu, openings = lab.devices[0], on_card(lab)
    x, y = fresh(3), fresh(4)
    gate.touch()
    try:
        gpu.put(x, timeout_s=0.05, non_blocking=True)
    except TimeoutError:
        pass
    else:
        raise AssertionError("it is not open, so that it is waited for")
    gate.unlink()
    gpu.put(x), gpu.put(y, non_blocking=True)
    gate.touch()
    refs = [gpu.put(one, non_blocking=True) for one in (x, y, x)]
    assert refs[0].shape == (1000,) and not any(ref.done for ref in refs)
    del x, y
    gc.collect()
    assert len(living) == 2
    gate.unlink()
    for ref, value in zip(refs, (3, 4, 3)):
        assert (ref.get(timeout_s=60) == value).all()
    soon(lambda: not living and not marks())
    x = fresh(5)
    gpu.put(x)
    gate.touch()
    ref = gpu.put(x, non_blocking=True)
    gpu.replace()
    gate.unlink()
    try:
        ref.result(60)
    except Exception as error:
        assert type(error).__name__ == "ContextReplaced", error
    else:
        raise AssertionError
    assert (gpu.put(x, non_blocking=True).get(timeout_s=60) == 5).all()
    small = gpu.put(np.arange(3), non_blocking=True)
    assert small.get(timeout_s=60).tolist() == [0, 1, 2]
assert not freed_while_open, freed_while_open
""",
        card,
    )


def test_a_put_ends_with_its_copy_though_the_answer_is_late(
    driver: Path, card: dict[str, str]
) -> None:
    """The context copies once, before it gets the message, and says so in shared memory."""
    run(
        driver,
        OPENED
        + CARD_OF_FILES
        + """
transfers.KEPT_BYTES = 0
from accel_lab.errors import DependencyFailed, QueueFull
late, gate = FOLDER / "late", FOLDER / "gate"

def refused(*_, **options):
    assert options["announced"]
    raise QueueFull("full")

transfers.soon_s = lambda nbytes: 3.0  # a slow machine copies late
with System("reading", devices=1) as lab:
    gpu, openings = lab.devices[0], on_card(lab)
    x = fresh(3)
    gpu.put(x)

    def put(late_s):  # whoever finds another thread reading waits for the answer
        late.touch()
        answer = threading.Timer(late_s, late.unlink)
        answer.start()
        return gpu.put(x), answer

    early = 0
    for turn in range(1, 20):
        x.array[:] = turn
        ref, answer = put(0.2)
        early += not ref.done
        x.array[:] = -1
        answer.join()
        assert (ref.get(timeout_s=60) == turn).all()
    assert early > 5, early
    gate.touch()  # what is given up here
    try:
        gpu.put(x, timeout_s=0.05)
    except TimeoutError:
        pass
    else:
        raise AssertionError
    gate.unlink()
    for turn in range(40, 50):  # is no sign of what comes after
        x.array[:] = turn
        ref = gpu.put(x)
        x.array[:] = -1
        assert (ref.get(timeout_s=60) == turn).all()
    ref, answer = put(5)
    while ref.done:
        ref, answer = put(5)
    gpu.replace()
    answer.cancel()
    late.unlink(missing_ok=True)
    try:
        ref.result(60)
    except Exception as error:
        assert type(error).__name__ == "ContextReplaced", error
    else:
        raise AssertionError
    x.array[:] = 50
    assert (gpu.put(x).get(timeout_s=60) == 50).all()
    del ref
    gpu.ping().result(60)
    assert len(gpu.resident) == 0

    def begun():  # in the context
        from accel_lab.compute.table import BufferTable
        return [len(one.begun) for one in gc.get_objects() if type(one) is BufferTable]

    requests = gpu._requests
    requests.send = refused  # after it was announced
    try:
        gpu.put(x)
    except QueueFull:
        del requests.send
    gpu.ping().result(60)  # what is free goes behind it
    assert gpu.run(begun).result(60) == [0]

    def lost_meanwhile(message):
        del requests.announce
        announced = requests.announce(message)
        time.sleep(0.05)  # it is copied, and said to be
        gpu.replace()
        gpu.ping().result(60)
        gate.touch()
        threading.Timer(0.3, gate.unlink).start()
        return announced

    for turn in range(60, 64):
        x.array[:] = turn
        gpu.put(x)
        requests.announce = lost_meanwhile
        ref = gpu.put(x)
        x.array[:] = -1
        try:
            assert (ref.get(timeout_s=60) == turn).all()
        except DependencyFailed as error:  # and never computes with what came later
            assert type(error.__cause__).__name__ == "StaleRef", error
    x.array[:] = 50
    assert (gpu.put(x).get(timeout_s=60) == 50).all()
assert not freed_while_open, freed_while_open
""",
        card,
    )


def test_what_was_not_read_in_time_lives_until_the_context_has_come_to_it(
    driver: Path, card: dict[str, str]
) -> None:
    """The put is taken back at once, and its buffer is never there."""
    run(
        driver,
        OPENED
        + CARD_OF_FILES
        + """
transfers.KEPT_BYTES = 0
gate = FOLDER / "gate"
with System("reading", devices=1) as lab:
    gpu, openings = lab.devices[0], on_card(lab)
    gate.touch()
    told, untold = fresh(3), fresh(4)
    other = Card(untold.array)
    other.memory = untold.data.mem
    for one in told, other:
        try:
            gpu.put(one, timeout_s=0.05)
        except TimeoutError as error:
            assert str(error) == "cpu0 did not come to the array on the card in 0.05 s", error
        else:
            raise AssertionError
    del told, untold, other, one
    gc.collect()
    assert len(living) == 2
    gate.unlink()
    soon(lambda: not living and not marks())
    assert (gpu.put(fresh(5)).get(timeout_s=60) == 5).all()
    gpu.ping().result(60)
    assert len(gpu.resident) == 0
assert not freed_while_open, freed_while_open
""",
        card,
    )


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_freed_while_a_context_has_it_open(
    driver: Path, card: dict[str, str], seed: int
) -> None:
    """Whatever is put, deleted, killed, suspended and taken back, in two threads."""
    run(
        driver,
        OPENED
        + CARD_OF_FILES
        + f"""
SEED = {seed}
"""
        + """
from accel_lab.errors import AccelError
transfers.KEPT_BYTES = 0
wrong, faults = [], []

def use(gpu, seed):
    pick, held = random.Random(seed), []
    for turn in range(120):
        try:
            act = pick.random()
            if act < 0.3 or not held:
                held.append(fresh(pick.randrange(1000)))
            elif act < 0.4:
                held.append(OfMemory(pick.choice(held).data.mem, slice(0, 10)))
            elif act < 0.6:
                held.pop(pick.randrange(len(held)))
            elif act < 0.7:
                lone = Card(held[-1].array)
                lone.memory = held[-1].data.mem
                gpu.put(lone)
                del lone
            else:
                one = pick.choice(held)
                if not (gpu.put(one).get(timeout_s=60) == one.array).all():
                    wrong.append((seed, turn))
                del one
        except AccelError as error:
            faults.append(type(error).__name__)
            del error

with System("reading", devices=1, max_restarts=1000) as lab:
    gpu, openings = lab.devices[0], on_card(lab)
    threads = [threading.Thread(target=use, args=(gpu, 10 * SEED + i)) for i in range(2)]
    for thread in threads:
        thread.start()
    pick = random.Random(-SEED)
    while any(thread.is_alive() for thread in threads):
        time.sleep(pick.random() / 4)
        try:
            pick.choice([gpu.replace, gpu.suspend, gc.collect])()
        except AccelError as error:
            faults.append(type(error).__name__)
    gc.collect()
    gpu.ping().result(60)
    soon(lambda: not living and not marks())
    assert len(openings) == 0
gc.collect()
assert not living and not freed_while_open and not wrong, (living, freed_while_open, wrong)
""",
        card,
    )


@pytest.mark.parametrize("last", ["x", "lab"])
def test_a_process_ends_with_memory_that_a_context_has_open(
    driver: Path, card: dict[str, str], last: str
) -> None:
    """Nobody has closed the system; its array may outlive it, or it the array."""
    run(
        driver,
        OPENED
        + CARD_OF_FILES
        + f"""
transfers.KEPT_BYTES = 0
lab = System("reading", devices=1)
gpu, openings = lab.devices[0], on_card(lab)
x = fresh(3)
assert (gpu.put(x).get(timeout_s=60) == 3).all()
assert len(openings) == 1
sys.kept_to_the_end = {last}
""",
        card,
    )
