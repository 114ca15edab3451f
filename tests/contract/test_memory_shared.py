"""Memory that several processes have: what others read and write there, and what ends it."""

import errno
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from accel_lab import System, array, event, memory
from accel_lab.compute.actors.fault import Inject
from accel_lab.compute.device import Device
from accel_lab.compute.shared.lingering import LINGERING, OFFERED
from accel_lab.errors import ContextLost, InvalidArgument, OutOfMemory, OwnerGone, StaleRef

WAIT_S = 60.0
OTHER = """
import pickle, sys
import numpy as np
kind = sys.argv[1]
if kind == "cuda":
    import cupy
    cupy.zeros(1)
names = {}
while True:
    try:
        program = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    try:
        answer = eval(compile(program, "sent", "eval"), globals(), names)
    except Exception as error:
        answer = error
    pickle.dump(answer, sys.stdout.buffer)
    sys.stdout.buffer.flush()
"""


class Other:
    """Another process of the user's, which knows what it is told by name."""

    def __init__(self, kind: str) -> None:
        command = [sys.executable, "-c", OTHER, kind]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, program: str) -> Any:
        """Return the value of an expression there, or raise what it raises."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        pickle.dump(program, stdin)
        stdin.flush()
        answer = pickle.load(stdout)  # noqa: S301 - it is our own
        if isinstance(answer, Exception):
            raise answer
        return answer

    def give(self, name: str, value: Any) -> None:
        """Have something there under a name."""
        self.ask(f"names.__setitem__({name!r}, pickle.loads({pickle.dumps(value)!r}))")

    def open(self, exported: Any) -> None:
        """Have it open there, as `opened`."""
        self.give("exported", exported)
        self.ask("names.__setitem__('opened', exported.open())")

    def let_go(self) -> None:
        """Have nothing open there."""
        self.ask("names.clear()")

    def read(self) -> Any:
        """Return what it sees."""
        return self.ask("opened.array.get() if kind == 'cuda' else opened.array.copy()")

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def process(device: Device) -> Iterator[Other]:
    made = Other("cuda" if device.name.startswith("gpu") else "host")
    try:
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def kind(backend: Any) -> str:
    name: str = backend.__name__.rpartition(".")[2]
    return name


@pytest.fixture(scope="module")
def other(kind: str) -> Iterator[Other]:
    made = Other(kind)
    yield made
    made.end()


@pytest.fixture
def lab(kind: str) -> Iterator[System]:
    with System(kind, devices=1, recover="replay", max_restarts=20, memory_bytes=64 << 20) as lab:
        yield lab


def open_elsewhere() -> int:
    """Return how much is freed in a context, and kept for others."""
    return LINGERING.nbytes


def lingering(device: Device) -> int:
    device.ping().result(WAIT_S)  # what is freed goes with it
    nbytes: int = device.run(open_elsewhere, pure=True).result(WAIT_S)
    return nbytes


# Out.


def test_what_is_written_on_either_side_is_seen_on_the_other(device: Device, other: Other) -> None:
    x = np.random.default_rng(0).standard_normal((7, 5))
    shared = memory.shared(device, x.shape, "float64")
    assert memory.describe(shared).result(WAIT_S).kind == "shared"
    assert not shared.get(timeout_s=WAIT_S).any()
    shared[:] = device.put(x)
    exported = memory.export(shared).result(WAIT_S)
    assert (exported.shape, exported.dtype) == (x.shape, "float64")
    assert exported.generation == device.generation
    other.open(exported)
    np.testing.assert_array_equal(other.read(), x)
    array.multiply(shared, 2.0, out=shared).result(WAIT_S)
    np.testing.assert_array_equal(other.read(), 2 * x)
    other.ask("opened.array.__setitem__(slice(2, 4), 1.5)")
    other.ask("cupy.cuda.Device().synchronize() if kind == 'cuda' else None")
    expected = 2 * x
    expected[2:4] = 1.5
    np.testing.assert_array_equal(shared.get(timeout_s=WAIT_S), expected)
    other.let_go()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "complex128", "bfloat16"])
def test_parts_of_any_dtype_begin_where_they_do(device: Device, other: Other, dtype: str) -> None:
    x = np.arange(24).reshape(6, 4).astype(memory.shared(device, (1,), dtype).get().dtype)
    shared = memory.shared(device, x.shape, dtype)
    shared[:] = device.put(x)
    for part, of in ((shared[2:5], x[2:5]), (shared[5, 1:3], x[5, 1:3]), (shared[6:], x[6:])):
        other.open(memory.export(part).result(WAIT_S))
        found = np.asarray(other.read())
        assert found.shape == of.shape
        np.testing.assert_array_equal(found.reshape(-1).view("uint8"), of.reshape(-1).view("uint8"))
        other.let_go()


def test_what_is_not_shared_or_has_gaps_is_refused_by_what_it_is(device: Device) -> None:
    shared = memory.shared(device, (4, 4))
    for part, found in (
        (device.put(np.zeros(3)), r"x is float64\[3\] in memory that is this device's alone"),
        (memory.managed(device, (3,)), "copy it to memory.shared"),
        (shared[:, 1:], "a view with gaps"),
        (shared.T, "a view with gaps"),
    ):
        with pytest.raises(InvalidArgument, match=found):
            memory.export(part).result(WAIT_S)
    with device.graph(), pytest.raises(InvalidArgument, match="Export cannot be in a graph"):
        memory.export(shared)
    with pytest.raises(InvalidArgument, match="and not what memory"):
        memory.read(device, "a name")  # type: ignore[arg-type]


def test_it_stays_where_it_is_and_is_freed_when_nobody_has_it_open(
    lab: System, other: Other
) -> None:
    (device,) = lab.devices
    shared = memory.shared(device, (4 << 20,), "uint8")
    shared[:] = 7
    exported = memory.export(shared).result(WAIT_S)
    other.open(exported)
    parts = [array.full(device, (8 << 20,), i, "uint8") for i in range(10)]  # 80 MiB of 64
    assert [part.get(timeout_s=WAIT_S)[0] for part in parts] == list(range(10))
    assert memory.pool(device).result(WAIT_S).away_bytes > 0
    assert (other.read() == 7).all()
    del shared, parts
    assert lingering(device) >= 4 << 20
    with pytest.raises(OwnerGone, match="does not share this any more"):
        exported.open()
    assert (other.read() == 7).all(), "who has it open has it on"
    other.let_go()
    memory.trim(device).result(WAIT_S)
    assert lingering(device) == 0
    with pytest.raises(OwnerGone, match="does not share this any more"):
        other.open(exported)


def test_a_reader_that_is_killed_holds_nothing(lab: System) -> None:
    (device,) = lab.devices
    with process(device) as reader:
        shared = memory.shared(device, (5,))
        reader.open(memory.export(shared).result(WAIT_S))
        del shared
        assert lingering(device) > 0
    memory.shared(device, (1,)).result(WAIT_S)
    assert lingering(device) == 0


def test_of_an_owner_that_is_lost_nothing_is_touched(lab: System, other: Other) -> None:
    (device,) = lab.devices
    shared = memory.shared(device, (6,), "int32")
    shared[:] = 5
    exported = memory.export(shared).result(WAIT_S)
    other.open(exported)
    with pytest.raises(ContextLost):
        device.ask(Inject("kill")).result(WAIT_S)
    assert (shared.get(timeout_s=WAIT_S) == 5).all(), "it is made again"
    for program in ("opened.array", "opened.require_owner()"):
        with pytest.raises(OwnerGone, match="has ended") as caught:
            other.ask(program)
        assert caught.value.pid == exported.place.pid
    with pytest.raises(OwnerGone):
        other.open(exported)
    with pytest.raises(OwnerGone):
        memory.read(device, exported).result(WAIT_S)
    again = memory.export(shared).result(WAIT_S)
    assert (again.generation, exported.generation) == (2, 1)
    other.open(again)
    assert (other.read() == 5).all()
    other.let_go()


def test_a_suspended_device_has_it_back_and_exports_it_anew(lab: System, other: Other) -> None:
    (device,) = lab.devices
    shared = memory.shared(device, (3, 4), "float64")
    shared[:] = 2.5
    exported = memory.export(shared[1:]).result(WAIT_S)
    device.suspend()
    assert (shared.get(timeout_s=WAIT_S) == 2.5).all()
    assert memory.describe(shared).result(WAIT_S).kind == "shared"
    with pytest.raises(OwnerGone):
        other.open(exported)
    other.open(memory.export(shared[1:]).result(WAIT_S))
    assert other.read().shape == (2, 4)
    other.let_go()


def give_files(*, gives: bool) -> None:
    """Have the system give a context files, or none."""

    def full(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    if not gives:
        os.given, os.memfd_create = os.memfd_create, full  # type: ignore[assignment, attr-defined]
    else:
        os.memfd_create = os.given  # type: ignore[attr-defined]


def test_where_the_system_gives_no_file_the_device_is_out_of_memory(device: Device) -> None:
    device.run(give_files, gives=False, pure=True).result(WAIT_S)
    with pytest.raises(OutOfMemory):
        memory.shared(device, (4,)).result(WAIT_S)
    device.run(give_files, gives=True, pure=True).result(WAIT_S)
    assert not memory.shared(device, (4,)).get(timeout_s=WAIT_S).any()


# In.


def test_what_another_device_or_process_has_is_read_as_it_is_then(
    device: Device, lab: System, other: Other
) -> None:
    x = np.random.default_rng(1).standard_normal((300, 11))
    shared = memory.shared(lab.devices[0], x.shape, "float64")
    shared[:] = lab.devices[0].put(x)
    exported = pickle.loads(pickle.dumps(memory.export(shared[3:]).result(WAIT_S)))  # noqa: S301
    got = memory.read(device, exported)
    np.testing.assert_array_equal(got.get(timeout_s=WAIT_S), x[3:])
    shared[:] = 0
    shared.result(WAIT_S)
    np.testing.assert_array_equal(got.get(timeout_s=WAIT_S), x[3:])
    with pytest.raises(InvalidArgument, match="exported it itself"):
        memory.read(lab.devices[0], exported).result(WAIT_S)
    other.ask("exec('from accel_lab import memory', names)")
    module = "cupy" if device.name.startswith("gpu") else "np"
    other.ask(f"names.__setitem__('x', {module}.arange(20.0).reshape(4, 5))")
    other.ask("names.__setitem__('offer', memory.offer(x))")
    offered = other.ask("offer.exported")
    got = memory.read(device, offered)
    np.testing.assert_array_equal(got.get(timeout_s=WAIT_S), np.arange(20.0).reshape(4, 5))
    np.testing.assert_array_equal((got + got).get(timeout_s=WAIT_S)[1], 2 * np.arange(5.0, 10.0))
    other.ask("offer.close()")
    with pytest.raises(OwnerGone, match="does not share this any more"):
        memory.read(device, offered).result(WAIT_S)


def test_what_was_read_is_gone_with_its_device_unless_it_is_checkpointed(
    lab: System, kind: str
) -> None:
    (device,) = lab.devices
    with System(kind, devices=1) as owner:
        shared = memory.shared(owner.devices[0], (4,))
        shared[:] = 3
        exported = memory.export(shared).result(WAIT_S)
        kept, lost = memory.read(device, exported), memory.read(device, exported)
        device.checkpoint(kept).result(WAIT_S)
        lost.result(WAIT_S)
    with pytest.raises(ContextLost):
        device.ask(Inject("kill")).result(WAIT_S)
    assert (kept.get(timeout_s=WAIT_S) == 3).all()
    with pytest.raises(StaleRef):
        lost.get(timeout_s=WAIT_S)


def test_of_memory_that_a_device_shares_no_more_is_read_than_it_has(
    device: Device, lab: System
) -> None:
    shared = memory.shared(lab.devices[0], (8,), "float64")
    exported = memory.export(shared).result(WAIT_S)
    for change in ({"offset": -8}, {"shape": (1 << 22,)}):
        with pytest.raises(InvalidArgument):
            memory.read(device, exported._replace(**change)).result(WAIT_S)
    assert not memory.read(device, exported).get(timeout_s=WAIT_S).any()


def test_an_offer_whose_reader_is_killed_is_freed_by_itself(device: Device) -> None:
    with process(device) as reader:
        with memory.offer(np.arange(5.0)) as offer:
            reader.open(offer.exported)
        assert OFFERED.nbytes == 40
    until = time.monotonic() + WAIT_S
    while OFFERED.nbytes and time.monotonic() < until:
        time.sleep(0.01)
    assert OFFERED.nbytes == 0


# Events.


def test_another_process_waits_for_an_event(device: Device, other: Other) -> None:
    recorded = event.record(device)
    other.open(event.export(recorded))
    assert other.ask("opened.wait(60)") is None
    assert other.ask("opened.query()") is True
    other.let_go()


def test_who_waits_for_an_event_of_a_process_that_ends_learns_it(device: Device) -> None:
    with process(device) as owner:
        owner.ask("exec('from accel_lab.compute.shared.shared_flag import *', names)")
        owner.ask("names.__setitem__('flag', SharedFlag())")
        opened = owner.ask("FlagPlace(flag.place)").open()
        assert not opened.query()
        with pytest.raises(TimeoutError, match=r"within 0\.01 s"):
            opened.wait(0.01)
    with pytest.raises(OwnerGone, match="has ended"):
        opened.wait(WAIT_S)
