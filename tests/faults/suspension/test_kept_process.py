"""A device whose process is kept: what does not pickle is there afterwards, whatever happens."""

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

from accel_lab import Device, System, memory
from accel_lab.compute.events.lifecycle import (
    ContextStarted,
    DeviceResumed,
    DeviceSuspended,
    SuspensionFailed,
)
from accel_lab.errors import (
    CannotKeep,
    InvalidArgument,
    LibraryError,
    OutOfMemory,
    StaleRef,
    SystemClosed,
)
from tests.faults.conftest import pid_of, settle
from tests.faults.suspension.suspended import WAIT, A, Cells, is_alive


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def suspend(device: Device) -> None:
    told = device.suspend(keep="process")
    assert told.keep == "process"
    assert device.state == "suspended"


class Keeper:
    """Stands at the edge of the world: a driver that does as it is told."""

    ends_frozen = True

    def __init__(self, device: Device, error: Exception | None = None) -> None:
        self.calls: list[str] = []
        self.error = error
        keeping = device._supervisor.suspension.of_process
        self._real, keeping.keeper = keeping.keeper, self

    def freeze(self, pid: int, timeout_s: float) -> None:
        self.calls.append("freeze")
        if isinstance(self.error, TimeoutError | LibraryError):
            raise self.error
        assert self._real is not None
        self._real.freeze(pid, timeout_s)

    def thaw(self, pid: int) -> None:
        self.calls.append("thaw")
        if self.error is not None:
            raise self.error
        assert self._real is not None
        self._real.thaw(pid)


def test_generators_open_files_and_threads_are_there_afterwards(
    lab: System, cpu: Device, tmp_path: Path
) -> None:
    cells = Cells(cpu)
    path = tmp_path / "written"
    cells(
        "import numpy as np, threading\n"
        "counted = (n * x for n, x in enumerate([np.ones(3)] * 9))\n"
        "_ = next(counted), next(counted)\n"
        f"file = open({str(path)!r}, 'w')\n"
        "_ = file.write('before ')\n"
        "lock = threading.Lock()\n"
        "_ = lock.acquire()\n"
        "said = []\n"
        "thread = threading.Thread(target=lambda: said.append(lock.acquire()), daemon=True)\n"
        "thread.start()\n"
    )
    x = cpu.put(A)
    with pytest.raises(CannotKeep):
        cpu.suspend()
    pid = pid_of(lab, cpu)
    for turn in range(2):
        suspend(cpu)
        assert state_of(pid) in "tT"
        assert (cpu.generation, pid_of(lab, cpu)) == (1, pid)
        cells(f"_ = file.write('after{turn} ')\nvalue = next(counted)")
        assert cells("value.tolist()").strip() == str([turn + 2.0] * 3)
    cells("file.close()\nlock.release()\nthread.join(60)")
    assert cells("said").strip() == "[True]"
    assert path.read_text() == "before after0 after1 "
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)
    assert (cpu.generation, pid_of(lab, cpu)) == (1, pid)
    assert len(lab.events.history(ContextStarted)) == 1
    assert {fact.keep for fact in lab.events.history(DeviceSuspended)} == {"process"}
    assert len(lab.events.history(DeviceResumed)) == 2


def test_generators_of_functions_that_were_run_go_on(cpu: Device) -> None:
    cpu.run(_begin).result(WAIT)
    assert cpu.run(_go_on).result(WAIT) == 0
    suspend(cpu)
    assert [cpu.run(_go_on).result(WAIT) for _ in range(2)] == [1, 2]


def test_the_answer_says_what_waits_and_which_way_was_gone(lab: System, cpu: Device) -> None:
    x = cpu.put(A)
    (told,) = lab.suspend(keep="process")
    assert (told.device, told.buffers, told.nbytes) == ("cpu0", 1, A.nbytes)
    assert "1 buffer and 0 objects wait on the host, in their process" in repr(told)
    assert cpu.suspend() == told  # it is
    node = lab.tree().children[0]
    assert (node.state, node.used_bytes) == ("suspended", 0)
    lab.resume()
    assert cpu.state == "running"
    (other,) = lab.suspend()
    assert other.keep == "memory"
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)


def test_what_is_sent_meanwhile_waits_and_wakes_it(cpu: Device) -> None:
    x = cpu.put(np.zeros(3))
    suspend(cpu)
    for i in range(3):
        x[i] = i + 1
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), [1, 2, 3])
    assert cpu.state == "running"


def test_standing_still_is_no_hang(lab: System, cpu: Device) -> None:
    x = cpu.put(A)
    x.get(timeout_s=WAIT)
    suspend(cpu)
    supervisor, watched = lab._supervisors[0], threading.Event()
    supervisor.health._heard -= 1000.0  # as if it had stood still for so long

    def watch() -> None:
        assert supervisor.process is not None
        supervisor._watch(supervisor.process)
        watched.set()

    supervisor._services.event_loop.call_soon(watch)
    assert watched.wait(WAIT)
    supervisor.sampler.look(memory=True, work=True)  # as views do
    assert (cpu.state, cpu.generation) == ("suspended", 1)
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)
    assert cpu.generation == 1


def test_a_frozen_process_that_is_killed_is_a_loss_like_any(lab: System, cpu: Device) -> None:
    x = cpu.put(A)
    x.get(timeout_s=WAIT)
    pid = pid_of(lab, cpu)
    suspend(cpu)
    os.kill(pid, signal.SIGKILL)
    assert settle(lambda: cpu.generation == 2)
    if lab.recover == "replay":
        np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)
    else:
        with pytest.raises(StaleRef):
            x.get(timeout_s=WAIT)
    y = cpu.put(A)
    np.testing.assert_array_equal(y.get(timeout_s=WAIT), A)
    suspend(cpu)
    np.testing.assert_array_equal(y.get(timeout_s=WAIT), A)


def test_without_room_it_stays_and_the_messages_say_so(lab: System, cpu: Device) -> None:
    x = cpu.put(A)
    x.get(timeout_s=WAIT)
    keeper = Keeper(cpu)
    suspend(cpu)
    keeper.error = OutOfMemory("taken", asked_bytes=2, free_bytes=1)
    with pytest.raises(OutOfMemory, match="taken"):
        cpu.resume()
    with pytest.raises(OutOfMemory, match="taken"):
        x.get(timeout_s=WAIT)
    assert (cpu.state, cpu.generation) == ("suspended", 1)
    assert "taken" in lab.events.history(SuspensionFailed)[-1].cause
    keeper.error = None
    cpu.resume()
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)


def test_one_that_cannot_come_back_is_lost(lab: System, cpu: Device) -> None:
    x = cpu.put(A)
    x.get(timeout_s=WAIT)
    keeper = Keeper(cpu)
    suspend(cpu)
    pid = pid_of(lab, cpu)
    keeper.error = RuntimeError("the driver is strange")
    cpu.ping()
    assert settle(lambda: cpu.generation == 2)
    assert settle(lambda: not is_alive(pid))
    keeper.error = None
    np.testing.assert_array_equal(cpu.put(A).get(timeout_s=WAIT), A)
    with pytest.raises(RuntimeError, match="the driver is strange"):
        lab.check()


@pytest.mark.parametrize(
    "error",
    [TimeoutError("still busy"), LibraryError("no", library="cuda", name="NO_CHECKPOINT")],
)
def test_what_cannot_be_frozen_goes_on(cpu: Device, error: Exception) -> None:
    x = cpu.put(A)
    Keeper(cpu, error)
    with pytest.raises(type(error), match=str(error)):
        cpu.suspend(keep="process")
    assert (cpu.state, cpu.generation) == ("running", 1)
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)


def test_one_that_came_back_is_frozen_again_before_it_ends(lab: System, cpu: Device) -> None:
    keeper = Keeper(cpu)
    cpu.ping().result(WAIT)
    first = pid_of(lab, cpu)
    suspend(cpu)
    cpu.resume()
    cpu.suspend()  # as memory: the process ends
    assert keeper.calls == ["freeze", "thaw", "freeze"]
    assert not is_alive(first)
    cpu.resume()
    suspend(cpu)
    cpu.resume()
    second = pid_of(lab, cpu)
    cpu.replace()
    assert settle(lambda: not is_alive(second))
    assert keeper.calls == ["freeze", "thaw", "freeze"] * 2
    cpu.resume()
    suspend(cpu)
    third = pid_of(lab, cpu)
    lab.close()  # what is frozen is killed as it is
    assert not is_alive(third)
    assert keeper.calls[6:] == ["freeze"]


def test_closing_ends_one_that_stands_still(cpu: Device, lab: System) -> None:
    pid = pid_of(lab, cpu)
    suspend(cpu)
    waiting = threading.Thread(target=lab.close)
    waiting.start()
    waiting.join(WAIT)
    assert not is_alive(pid)
    with pytest.raises(SystemClosed):
        cpu.ping()


def test_what_is_no_way_is_refused(cpu: Device) -> None:
    with pytest.raises(InvalidArgument, match='keep is "memory" or "process", not \'disk\''):
        cpu.suspend(keep="disk")  # type: ignore[arg-type]
    assert cpu.state in ("starting", "running")


def test_special_memory_stays_where_it_is(cpu: Device) -> None:
    x = memory.growing(cpu, (4,), 4000)
    address = memory.describe(x).result(WAIT).address
    suspend(cpu)
    longer = memory.grow(x, 3000)
    assert memory.describe(longer).result(WAIT).address == address


def _begin() -> None:
    import builtins

    builtins.numbers_that_go_on = iter(n for n in range(9))  # type: ignore[attr-defined]


def _go_on() -> int:
    import builtins

    return next(builtins.numbers_that_go_on)  # type: ignore[attr-defined,no-any-return]
