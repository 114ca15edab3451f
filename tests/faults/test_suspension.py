"""A device that is given back keeps what it held, whatever happens on the way."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accel_lab import AccelRef, Device, System, array, blas, fft, jit
from accel_lab.compute.events import (
    ContextExited,
    ContextStarted,
    DeviceResumed,
    DeviceSuspended,
    GenerationChanged,
    SuspensionFailed,
)
from accel_lab.compute.stripes import PIECE_BYTES
from accel_lab.errors import (
    AccelError,
    CannotKeep,
    CircuitOpen,
    ContextLost,
    DependencyFailed,
    OutOfMemory,
    StaleRef,
    SystemClosed,
)
from accel_lab.notebook.gpu_cell import GpuCells
from accel_lab.notebook.object_ref import ObjectRef
from tests.conftest import require
from tests.faults.conftest import census, pid_of, settle, wait_for
from tests.shown import gathered

WAIT = 60.0
A = np.random.default_rng(0).standard_normal((64, 64))


@pytest.fixture(params=["stale", "replay"])
def lab(request: pytest.FixtureRequest, nothing_left: None) -> Iterator[System]:
    with System("host", recover=request.param, max_restarts=1000) as system:
        yield system
        system.check()


@pytest.fixture
def cpu(lab: System) -> Device:
    return lab.devices[0]


@pytest.fixture
def replaying(nothing_left: None) -> Iterator[System]:
    with System("host", recover="replay", max_restarts=1000) as system:
        yield system


class Cells:
    """`%%gpu` cells of a notebook that is a dict."""

    def __init__(self, device: Device) -> None:
        self.names: dict[str, Any] = {}
        self.shown = gathered()
        self._cells = GpuCells(self.names, lambda _: device)

    def __call__(self, source: str) -> str:
        self._cells.run("", source)
        return str(self.shown[-1]["text/plain"]) if self.shown else ""


def suspending(device: Device) -> tuple[threading.Thread, list[AccelError]]:
    """Begin to suspend a device on a thread; what it raises comes to the list."""
    outcome: list[AccelError] = []

    def suspend() -> None:
        try:
            device.suspend()
        except AccelError as error:
            outcome.append(error)

    going = threading.Thread(target=suspend)
    going.start()
    return going, outcome


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


# What comes back.


def test_the_same_handles_hold_the_same_values_in_the_same_generation(
    lab: System, cpu: Device
) -> None:
    a = cpu.put(A)
    kept = [a, blas.gemm(a, a), fft.rfft(cpu.put(A[0])), a.astype("float16"), array.zeros(cpu, ())]
    kept += [array.zeros(cpu, (0, 3)), cpu.put(np.arange(7, dtype="int8")), a.astype("bfloat16")]
    before = [ref.get(timeout_s=WAIT) for ref in kept]
    told = cpu.suspend()
    assert told.buffers >= len(kept)
    assert (told.objects, told.lost) == (0, ())
    assert told.nbytes > A.nbytes
    assert (cpu.state, cpu.generation) == ("suspended", 1)
    after = [ref.get(timeout_s=WAIT) for ref in kept]
    for was, is_ in zip(before, after, strict=True):
        assert was.dtype == is_.dtype
        np.testing.assert_array_equal(was, is_)
    assert (cpu.state, cpu.generation) == ("running", 1)
    assert all(ref.is_valid for ref in kept)
    assert not lab.events.history(GenerationChanged)


def test_the_process_is_gone_and_no_fault_was_seen(lab: System, cpu: Device) -> None:
    pid = pid_of(lab, cpu)
    lab.suspend()
    assert not is_alive(pid)
    node = lab.tree().children[0]
    assert (node.state, node.used_bytes, node.restarts) == ("suspended", 0, 0)
    assert "0 buffers and 0 objects wait on the host" in node.children[0].detail
    lab.resume()
    assert cpu.state == "running"
    assert pid_of(lab, cpu) != pid
    (fact,) = lab.events.history(DeviceSuspended)
    assert (fact.device, fact.generation, fact.lost) == ("cpu0", 1, ())
    assert [fact.status for fact in lab.events.history(ContextExited)] == ["exit status 0"]
    assert lab.tree().children[0].restarts == 0


def test_arrays_of_several_pieces_come_back(cpu: Device) -> None:
    count = PIECE_BYTES // 8 * 5 // 2 + 3
    value = np.random.default_rng(1).standard_normal(count)
    x = cpu.put(value)
    short = cpu.put(value[: PIECE_BYTES // 8])
    for _ in range(2):
        cpu.suspend()
        np.testing.assert_array_equal(x.get(timeout_s=WAIT), value)
        np.testing.assert_array_equal(short.get(timeout_s=WAIT), value[: PIECE_BYTES // 8])


def test_views_share_their_memory_afterwards(cpu: Device) -> None:
    x = cpu.put(np.arange(24.0))
    views: dict[str, tuple[AccelRef, Callable[[Any], Any]]] = {
        "part": (x[1:9], lambda a: a[1:9]),
        "turned": (x.reshape(4, 6).T, lambda a: a.reshape(4, 6).T),
        "steps": (x[2::3], lambda a: a[2::3]),
        "back": (x[::-1], lambda a: a[::-1]),
        "corner": (x.reshape(4, 6)[2:, ::-2], lambda a: a.reshape(4, 6)[2:, ::-2]),
    }
    expected = np.arange(24.0)
    for turn in range(3):
        cpu.suspend()
        for name, (ref, of) in views.items():
            blas.scal(ref, 2.0, out=ref)
            of(expected)[...] *= 2.0
            np.testing.assert_array_equal(x.get(timeout_s=WAIT), expected, f"{name} {turn}")
        for ref, of in views.values():
            np.testing.assert_array_equal(ref.get(timeout_s=WAIT), of(expected))


def test_views_whose_array_has_no_handle_any_more_share_it_still(cpu: Device) -> None:
    x = cpu.put(np.arange(24.0))
    even, odd, late = x[::2], x[1::2], x[12:]
    del x
    cpu.ping().result(WAIT)
    cpu.suspend()
    blas.scal(even, -1.0, out=even)
    expected = np.arange(24.0)
    expected[::2] *= -1
    np.testing.assert_array_equal(odd.get(timeout_s=WAIT), expected[1::2])
    np.testing.assert_array_equal(late.get(timeout_s=WAIT), expected[12:])


def test_what_user_code_answered_shares_what_it_shared(cpu: Device) -> None:
    x = cpu.put(np.arange(6.0))
    pair = cpu.run(lambda a: {"same": a, "end": a[3:]}, x).result(WAIT)
    cpu.suspend()
    more = cpu.run(lambda a: [a + 1], x).result(WAIT)
    assert {pair["same"].id, pair["end"].id}.isdisjoint({more[0].id})
    blas.scal(x, 10.0, out=x)
    np.testing.assert_array_equal(pair["same"].get(timeout_s=WAIT), 10 * np.arange(6.0))
    np.testing.assert_array_equal(pair["end"].get(timeout_s=WAIT), 10 * np.arange(3.0, 6.0))
    np.testing.assert_array_equal(more[0].get(timeout_s=WAIT), np.arange(6.0) + 1)


def test_handles_that_go_while_it_is_suspended_free_their_buffers(lab: System, cpu: Device) -> None:
    kept = cpu.put(np.ones(1000))
    gone = [cpu.put(np.ones(1000)) for _ in range(5)]
    cpu.suspend()
    gone.clear()
    np.testing.assert_array_equal(kept.get(timeout_s=WAIT), np.ones(1000))

    def used() -> int:
        return sum(row.nbytes for row in cpu.resident)

    assert settle(lambda: used() == 8000)


def test_a_compiled_kernel_is_there_again(cpu: Device, compiler: None) -> None:
    source = "__global__ void add(double *x, double y) { x[threadIdx.x] += y; }"
    kernel = jit.compile(cpu, source, "add")
    x = cpu.put(np.zeros(4))
    kernel(1, 4, (x, 1.0)).result(WAIT)
    cpu.suspend()
    ref = kernel.ref
    kernel(1, 4, (x, 2.0)).result(WAIT)
    assert kernel.ref is ref
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), 3 * np.ones(4))


def test_what_had_given_way_comes_back_too(nothing_left: None) -> None:
    """There is more than the device holds at a time, before and after."""
    mib = 1 << 20
    with System("host", memory_bytes=4 * mib) as lab:
        cpu = lab.devices[0]
        kept = [cpu.put(np.full(mib // 8, float(i))) for i in range(9)]
        cpu.suspend()
        assert [float(ref.get(timeout_s=WAIT)[-1]) for ref in kept] == list(map(float, range(9)))


@pytest.mark.parametrize("made", ["huge = xp.ones(1 << 18)", "huge = {'a': xp.ones(1 << 18)}"])
def test_what_user_code_made_beyond_the_limit_comes_back(nothing_left: None, made: str) -> None:
    """NumPy's own allocations know no limit; what had given way for them gives way again."""
    mib = 1 << 20
    with System("host", memory_bytes=mib) as lab:
        cpu = lab.devices[0]
        notebook = Cells(cpu)
        kept = [cpu.put(np.full(mib // 16, float(i))) for i in range(3)]
        notebook(made)
        if "{" not in made:
            with pytest.raises(OutOfMemory):  # all that can has given way by then
                kept[0].get(timeout_s=WAIT)
        for _ in range(2):
            cpu.suspend()
            cpu.resume()
        notebook("float((huge['a'] if isinstance(huge, dict) else huge).sum())")
        assert notebook.shown[-1]["text/plain"] == str(float(1 << 18))
        notebook("del huge")
        assert [float(ref.get(timeout_s=WAIT)[-1]) for ref in kept] == [0.0, 1.0, 2.0]
        with pytest.raises(OutOfMemory):
            array.zeros(cpu, (mib,)).result(WAIT)  # the limit is what it was


def test_a_buffer_that_was_never_made_stays_so(cpu: Device) -> None:
    broken = cpu.run(lambda: 1 / 0)
    behind = cpu.run(np.negative, broken)
    with pytest.raises(AccelError):
        broken.result(WAIT)
    cpu.suspend()
    with pytest.raises(DependencyFailed):
        behind.result(WAIT)
    with pytest.raises(DependencyFailed):
        cpu.run(np.negative, broken).result(WAIT)


# Objects of cells.


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
    cpu._keeper.suspension.room_bytes = lambda: 100_000
    with pytest.raises(CannotKeep, match="802816 bytes") as caught:
        cpu.suspend()
    assert list(caught.value.lost) == [f"buffer {large.id}"]
    np.testing.assert_array_equal(large.get(timeout_s=WAIT), np.ones(100_000))
    cpu.suspend(drop=True)
    np.testing.assert_array_equal(small.get(timeout_s=WAIT), np.ones(10))
    with pytest.raises(StaleRef):
        large.get(timeout_s=WAIT)
    assert cpu.generation == 1


# When it is used.


def test_what_is_sent_before_is_answered_and_what_is_sent_meanwhile_waits(
    lab: System, cpu: Device, gate: Path
) -> None:
    x = cpu.put(np.ones(4))
    slow = cpu.run(wait_for, gate)
    after = blas.scal(x, 2.0)
    pid = pid_of(lab, cpu)
    going, _ = suspending(cpu)
    assert settle(lambda: cpu._requests._link is None)
    late = [blas.scal(after, float(i)) for i in range(5)]
    cpu.tell(blas.Scal(x, 3.0, out=x))
    assert going.is_alive()
    assert not slow.done
    gate.touch()
    going.join(WAIT)
    slow.result(WAIT)
    assert [float(ref.get(timeout_s=WAIT)[0]) for ref in late] == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert float(x.get(timeout_s=WAIT)[0]) == 3.0
    assert pid_of(lab, cpu) != pid
    assert not is_alive(pid)


def test_a_device_that_stays_busy_is_left_as_it_is(cpu: Device, gate: Path) -> None:
    slow = cpu.run(wait_for, gate)
    with pytest.raises(TimeoutError):
        cpu.suspend(timeout_s=0.2)
    behind = cpu.put(A)
    gate.touch()
    slow.result(WAIT)
    np.testing.assert_array_equal(behind.get(timeout_s=WAIT), A)
    assert cpu.state == "running"


def test_twice_is_once(cpu: Device) -> None:
    x = cpu.put(A)
    first = cpu.suspend()
    assert cpu.suspend() == first
    cpu.resume()
    cpu.resume()
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)
    threads = [threading.Thread(target=cpu.suspend) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(WAIT)
    assert cpu.state == "suspended"
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)


def test_several_devices_go_and_come_back_together(nothing_left: None) -> None:
    with System("host", 3) as lab:
        kept = [device.put(A + i) for i, device in enumerate(lab.devices)]
        assert [told.device for told in lab.suspend()] == ["cpu0", "cpu1", "cpu2"]
        np.testing.assert_array_equal(kept[1].get(timeout_s=WAIT), A + 1)
        assert [device.state for device in lab.devices] == ["suspended", "running", "suspended"]
        lab.ready(timeout_s=WAIT)
        lab.resume()
        for i, ref in enumerate(kept):
            np.testing.assert_array_equal(ref.get(timeout_s=WAIT), A + i)


def test_closing_a_suspended_system_leaves_nothing(lab: System, cpu: Device) -> None:
    before = census().descriptors
    x = cpu.put(A)
    cpu.suspend()
    assert census().descriptors > before - 20
    lab.close()
    with pytest.raises(SystemClosed):
        x.get()
    with pytest.raises(SystemClosed):
        cpu.suspend()
    with pytest.raises(SystemClosed):
        cpu.resume()


def test_closing_while_it_is_being_suspended_ends_that(
    lab: System, cpu: Device, gate: Path
) -> None:
    cpu.run(wait_for, gate)
    going, outcome = suspending(cpu)
    assert settle(lambda: cpu._requests._link is None)
    lab.close()
    going.join(WAIT)
    assert isinstance(outcome[0], SystemClosed)


# Faults.


def test_a_context_that_is_lost_while_it_is_being_suspended_is_lost_as_ever(
    lab: System, cpu: Device, gate: Path
) -> None:
    x = cpu.put(A)
    slow = cpu.run(wait_for, gate)
    going, outcome = suspending(cpu)
    assert settle(lambda: cpu._requests._link is None)
    os.kill(pid_of(lab, cpu), signal.SIGKILL)
    going.join(WAIT)
    assert isinstance(outcome[0], ContextLost)
    with pytest.raises(ContextLost):
        slow.result(WAIT)
    lab.ready(timeout_s=WAIT)
    assert cpu.generation == 2
    if cpu.holds(x):
        np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)
    fresh = cpu.put(A)
    cpu.suspend()
    np.testing.assert_array_equal(fresh.get(timeout_s=WAIT), A)


def test_a_context_that_is_killed_while_it_comes_back_costs_nothing(
    lab: System, cpu: Device
) -> None:
    """What is kept is given to the next one, and what has waited is answered by it."""
    value = np.random.default_rng(2).standard_normal(PIECE_BYTES // 2)
    x = cpu.put(value)
    y = x[10:20]
    for turn in range(4):
        cpu.suspend()
        pids = {fact.pid for fact in lab.events.history(ContextStarted)}
        twice = blas.scal(y, 2.0)
        killed = 0
        while cpu.state != "running":
            new = {fact.pid for fact in lab.events.history(ContextStarted)} - pids
            if new and killed <= turn:
                killed += 1
                pids |= new
                for pid in new:
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.001)
        np.testing.assert_array_equal(twice.get(timeout_s=WAIT), 2 * value[10:20])
        np.testing.assert_array_equal(x.get(timeout_s=WAIT), value)
    assert cpu.generation == 1


def test_closing_while_it_comes_back_ends_that(lab: System, cpu: Device) -> None:
    kept = cpu.put(np.ones(PIECE_BYTES // 2))
    for _ in range(3):
        cpu.suspend()
        starts = len(lab.events.history(ContextStarted))
        late = blas.nrm2(kept)
        while len(lab.events.history(ContextStarted)) == starts:
            time.sleep(0.001)
        if cpu.state != "running":
            break
    lab.close()
    with contextlib.suppress(SystemClosed):  # it may have been answered
        late.result(WAIT)
    with pytest.raises(SystemClosed):
        cpu.resume()


def test_a_suspended_device_stays_so_when_one_beside_it_is_lost(nothing_left: None) -> None:
    with System("host", 2, strategy="all_for_one") as lab:
        first, second = lab.devices
        x, y = first.put(A), second.put(A)
        first.suspend()
        with pytest.raises(ContextLost):
            lab.inject("kill", second).result(WAIT)
        np.testing.assert_array_equal(y.get(timeout_s=WAIT), A)
        assert (first.state, first.generation, second.generation) == ("suspended", 1, 2)
        np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)
        with pytest.raises(ContextLost):
            lab.inject("kill", first).result(WAIT)
        assert settle(lambda: (first.generation, second.generation) == (2, 3))
        np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)


def test_a_loss_after_it_is_back_is_recovered_as_before(replaying: System) -> None:
    lab, cpu = replaying, replaying.devices[0]
    x = cpu.put(A)
    product = blas.gemm(x, x)
    blas.scal(product, 2.0, out=product)
    part = product[:3]
    expected = product.get(timeout_s=WAIT)
    cpu.suspend()
    total = blas.axpy(x, product, alpha=0.5)
    both = total.get(timeout_s=WAIT)
    with pytest.raises(ContextLost):
        lab.inject("kill").result(WAIT)
    np.testing.assert_array_equal(product.get(timeout_s=WAIT), expected)
    np.testing.assert_array_equal(total.get(timeout_s=WAIT), both)
    np.testing.assert_array_equal(part.get(timeout_s=WAIT), expected[:3])
    assert cpu.generation == 2
    cpu.suspend()
    np.testing.assert_array_equal(total.get(timeout_s=WAIT), both)


def test_it_is_suspended_when_its_recovery_is_over(replaying: System) -> None:
    lab, cpu = replaying, replaying.devices[0]
    x = cpu.put(A)
    for _ in range(200):
        x = blas.gemm(x, cpu.put(np.eye(64)))
    with pytest.raises(ContextLost):
        lab.inject("kill").result(WAIT)
    cpu.suspend()
    assert (cpu.state, cpu.generation) == ("suspended", 2)
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)


def test_a_device_without_room_for_what_is_kept_stays_suspended(lab: System, cpu: Device) -> None:
    """Another has taken the memory: what has waited fails with that, and it is tried again."""
    x = cpu.put(A)
    cpu.suspend()
    plant = cpu._keeper._plant
    cpu._keeper._plant = msgspec.structs.replace(plant, limit_bytes=1000, spill_bytes=0)
    with pytest.raises(OutOfMemory):
        x.get(timeout_s=WAIT)
    assert settle(lambda: cpu.state == "suspended")
    assert lab.events.history(SuspensionFailed)[-1].device == "cpu0"
    with pytest.raises(OutOfMemory):
        cpu.resume()
    cpu._keeper._plant = plant
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)
    assert cpu.generation == 1


def test_what_is_freed_meanwhile_needs_no_room(lab: System, cpu: Device) -> None:
    """Not what a message names that waits, though its handle is gone."""
    w, x, y, z = (cpu.put(A + i) for i in range(-1, 3))
    part = z[:8]
    cpu.suspend()
    plant = cpu._keeper._plant
    limit_bytes = 7 * A.nbytes // 2
    cpu._keeper._plant = msgspec.structs.replace(plant, limit_bytes=limit_bytes, spill_bytes=0)
    doubled = blas.scal(y, 2.0)
    x.free()
    del w, y, z
    np.testing.assert_array_equal(doubled.get(timeout_s=WAIT), 2 * (A + 1))
    np.testing.assert_array_equal(part.get(timeout_s=WAIT), A[:8] + 2)
    with pytest.raises(StaleRef):
        x.get(timeout_s=WAIT)
    del doubled
    cpu.suspend()
    cpu.resume()
    np.testing.assert_array_equal(part.get(timeout_s=WAIT), A[:8] + 2)


def test_the_circuit_opens_when_it_cannot_come_back_and_reset_goes_on(nothing_left: None) -> None:
    with System("host", max_restarts=0) as lab:
        cpu = lab.devices[0]
        x = cpu.put(A)
        cpu.suspend()
        pids = {fact.pid for fact in lab.events.history(ContextStarted)}
        cpu._requests.wake()
        while not (new := {f.pid for f in lab.events.history(ContextStarted)} - pids):
            time.sleep(0.001)
        if cpu.state != "running":
            os.kill(new.pop(), signal.SIGKILL)
        assert settle(lambda: cpu.state in ("circuit open", "running"))
        if cpu.state == "circuit open":
            with pytest.raises(CircuitOpen):
                cpu.resume()
            assert cpu.suspend().buffers in (0, 1)
            cpu.reset()
        np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)


# Beside it.


def test_a_journal_of_a_suspended_session_is_run_again(nothing_left: None, tmp_path: Path) -> None:
    with System("host", journal=tmp_path / "journal.sqlite", results="digests") as lab:
        cpu = lab.devices[0]
        x = cpu.put(A)
        cpu.suspend()
        y = blas.gemm(x, x)
        cpu.suspend()
        y.get(timeout_s=WAIT)
        lab.flush()
        with System("host") as other:
            report = lab.journal.replay(other)
            assert report.ok, report


def test_an_idle_device_is_suspended_by_itself(nothing_left: None) -> None:
    with System("host", suspend_after_s=0.2) as lab:
        cpu = lab.devices[0]
        x = cpu.put(A)
        for _ in range(2):
            assert settle(lambda: cpu.state == "suspended")
            np.testing.assert_array_equal(x.get(timeout_s=WAIT), A)
        assert len(lab.events.history(DeviceSuspended)) >= 2


def test_an_idle_device_that_would_lose_something_says_so_once(nothing_left: None) -> None:
    with System("host", suspend_after_s=0.2) as lab:
        cpu = lab.devices[0]
        notebook = Cells(cpu)
        notebook("lines = (line for line in 'ab')")
        mark = lab.events.published
        fact = lab.events.wait_for(SuspensionFailed, WAIT, since=mark)
        assert "lines" in fact.cause
        time.sleep(1.0)
        assert notebook("next(lines)") == "'a'"


@pytest.fixture
def compiler() -> None:
    require("compiler")


# Programs.


@pytest.fixture(scope="module")
def steady() -> Iterator[Device]:
    with System("host", max_restarts=1000) as lab:
        yield lab.devices[0]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "scale", "in place", "axpy", "view", "turn", "drop", "suspend"]),
        st.integers(0, 5),
        st.integers(0, 5),
    ),
    max_size=25,
)


def do(what: str, i: int, j: int, ours: dict[int, AccelRef], theirs: dict[int, Any]) -> None:
    """Do the same on both sides; what cannot be done is left out."""
    x, y = ours[i], theirs[i]
    match what:
        case "scale":
            ours[j], theirs[j] = blas.scal(x, 0.5), y * 0.5
        case "in place":
            blas.scal(x, 2.0, out=x)
            y *= 2.0
        case "axpy" if j in ours and y.shape == theirs[j].shape:
            ours[i], theirs[i] = blas.axpy(x, ours[j]), y + theirs[j]
        case "view" if y.shape[0] > 1:
            ours[j], theirs[j] = x[1:, ::-1], y[1:, ::-1]
        case "turn":
            ours[j], theirs[j] = x.T, y.T
        case "drop":
            del ours[i], theirs[i]


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
def test_a_program_computes_what_numpy_does_wherever_it_is_suspended(
    steady: Device, steps: list[tuple[str, int, int]]
) -> None:
    ours: dict[int, AccelRef] = {}
    theirs: dict[int, Any] = {}
    for place, (what, i, j) in enumerate(steps):
        if what == "suspend":
            steady.suspend()
        elif what == "put" or i not in ours:
            value = np.arange(12.0).reshape(3, 4) + place
            ours[i], theirs[i] = steady.put(value), value
        else:
            do(what, i, j, ours, theirs)
    steady.suspend()
    for i, ref in ours.items():
        np.testing.assert_array_equal(ref.get(timeout_s=WAIT), theirs[i])
