"""`recover="replay"`: after a loss the buffers in use are there again, and right."""

import contextlib
import gc
import os
import re
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from accel_lab import AccelRef, Device, System, array, blas, jit, rng
from accel_lab.compute.actors.fault import Fault
from accel_lab.compute.arena.staging import CHUNK_BYTES
from accel_lab.compute.events.lifecycle import (
    BuffersRebuilt,
    CircuitOpened,
    GenerationChanged,
    OutputPrinted,
)
from accel_lab.compute.lineage import lineage
from accel_lab.compute.lineage.content_store import Contents
from accel_lab.compute.recovery.recovery import Recovery
from accel_lab.compute.recovery.resending import Resending
from accel_lab.errors import (
    AccelError,
    ArenaFull,
    CircuitOpen,
    ContextLost,
    DeadlineExceeded,
    DependencyFailed,
    InvalidArgument,
    StaleRef,
    UserCodeError,
)
from tests.conftest import require
from tests.faults.conftest import pid_of, settle, wait_for
from tests.faults.digested import assert_given_up

WAIT = 30.0
MIB = 1 << 20
A = np.random.default_rng(0).standard_normal((64, 64))


@pytest.fixture
def lab(nothing_left: None) -> Iterator[System]:
    """Run one host device that makes its buffers again."""
    with System("host", recover="replay", max_restarts=1000) as system:
        yield system


@pytest.fixture
def cpu(lab: System) -> Device:
    """Return its device."""
    return lab.devices[0]


def value(cpu: Device, ref: AccelRef) -> Any:
    return cpu.get(ref).result(WAIT)


def lose(lab: System, cpu: Device, kind: Any = "kill") -> None:
    with pytest.raises(ContextLost):
        lab.inject(kind, cpu).result(WAIT)


def rebuilt(lab: System, mark: int) -> BuffersRebuilt:
    return lab.events.wait_for(BuffersRebuilt, WAIT, since=mark)


@pytest.mark.parametrize("kind", ["kill", "segfault", "exit", "poison", "trap"])
def test_the_same_handles_hold_the_same_values(lab: System, cpu: Device, kind: str) -> None:
    a = cpu.put(A)
    product = blas.gemm(a, a)
    total = blas.axpy(a, product, alpha=2.0)
    drawn = rng.uniform(cpu, (100,), seed=5)
    large = cpu.put(np.arange(1 << 18, dtype=np.float64))
    blas.scal(large, 3.0, out=large)
    part = array.reshape(large, (512, 512))
    before = [value(cpu, ref) for ref in (a, product, total, drawn, large, part)]
    mark = lab.events.published
    lose(lab, cpu, kind)
    after = [value(cpu, ref) for ref in (a, product, total, drawn, large, part)]
    for was, is_ in zip(before, after, strict=True):
        np.testing.assert_array_equal(was, is_)
    assert total.is_valid
    assert rebuilt(lab, mark).lost == 0
    blas.scal(part, 2.0, out=part)  # still a view
    np.testing.assert_array_equal(value(cpu, large), 2.0 * before[4])


def test_what_is_freed_while_buffers_come_back_is_there_for_what_has_waited(
    lab: System, cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of what has waited is so long that it is sent at once, by itself."""
    planned, go, fill = threading.Event(), threading.Event(), Recovery._fill

    def slowly(recovery: Recovery, link: Any, plan: Any) -> Any:
        planned.set()
        assert go.wait(WAIT)
        return fill(recovery, link, plan)

    x = cpu.put(A)
    x.result(WAIT)
    monkeypatch.setattr(Recovery, "_fill", slowly)
    lose(lab, cpu)
    assert planned.wait(WAIT)
    long = cpu.put(np.ones((16 << 10) // 8))
    doubled = blas.axpy(x, x)
    del x
    gc.collect()
    go.set()
    np.testing.assert_array_equal(value(cpu, doubled), A + A)
    assert (value(cpu, long) == 1).all()


def test_only_what_is_in_use_is_made_again(lab: System, cpu: Device) -> None:
    """A thousand messages whose results are gone are not run again, and leave nothing behind."""
    x = cpu.put(np.ones(8))
    for _ in range(1000):
        blas.scal(x, 2.0)
    kept = blas.scal(x, 5.0)
    value(cpu, kept)
    mark = lab.events.published
    lose(lab, cpu)
    np.testing.assert_array_equal(value(cpu, kept), 5.0 * np.ones(8))
    fact = rebuilt(lab, mark)
    assert (fact.buffers, fact.messages) == (2, 2)


def test_what_only_the_past_needed_is_freed_again(lab: System, cpu: Device) -> None:
    x = cpu.put(np.ones(1 << 16))
    for _ in range(5):
        x = blas.scal(x, 2.0)  # each needs the one before, whose handle is gone
    np.testing.assert_array_equal(value(cpu, x), 32.0 * np.ones(1 << 16))
    lose(lab, cpu)
    np.testing.assert_array_equal(value(cpu, x), 32.0 * np.ones(1 << 16))
    one = 8 << 16
    assert settle(lambda: 0 < (lab.tree().children[0].used_bytes or 0) <= one)


def test_lineage_is_not_copying(lab: System, cpu: Device) -> None:
    """1 GiB made from 1 MiB of uploads costs the notebook next to nothing, also when remade.

    One buffer that was copied would be 64 MiB, and too much.
    """
    seed = cpu.put(np.random.default_rng(1).standard_normal((1 << 17,)))
    value(cpu, seed)
    before = notebook_bytes()
    tiled = [cpu.run(np.tile, seed, 64, pure=True) for _ in range(16)]
    for _ in range(5):
        for each in tiled:
            blas.scal(each, 1.01, out=each)
    sums = [value(cpu, blas.nrm2(each)) for each in tiled]
    assert sum(each.nbytes for each in tiled) == 1 << 30
    assert notebook_bytes() - before < 64 << 20
    lose(lab, cpu)
    assert [value(cpu, blas.nrm2(each)) for each in tiled] == sums
    assert notebook_bytes() - before < 64 << 20


def notebook_bytes() -> int:
    """Return the bytes that this process alone has, and those of its memory and files unnamed."""
    (own,) = re.findall(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    unnamed: dict[tuple[int, int], int] = {}
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that this list was read from
            found = link.stat()
            if stat.S_ISREG(found.st_mode) and not found.st_nlink:
                unnamed[found.st_dev, found.st_ino] = 512 * found.st_blocks
    return 1024 * int(own) + sum(unnamed.values())


@pytest.mark.parametrize("fault", ["kill", "poison"])
def test_what_is_not_as_it_was_recorded_is_given_up(nothing_left: None, fault: Fault) -> None:
    """A function that is not as pure as it is said to be is noticed where digests are recorded."""
    assert_given_up("host", fault)


def test_a_second_and_a_third_loss_are_survived_too(lab: System, cpu: Device) -> None:
    x = cpu.put(np.zeros(4))
    for round_ in range(1, 4):
        x = blas.axpy(cpu.put(np.ones(4)), x)
        lose(lab, cpu)
        np.testing.assert_array_equal(value(cpu, x), round_ * np.ones(4))
    assert cpu.generation == 4


def test_a_context_that_is_lost_before_it_is_given_anything_is_not_waited_for(
    lab: System, cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its loss was noticed before the thread that fills it came to that."""
    plan, began = Recovery._plan, []

    def late(self: Recovery, link: Any, *rest: Any) -> Any:
        began.append(link)
        if len(began) == 1:
            os.kill(pid_of(lab, cpu), signal.SIGKILL)
            assert settle(lambda: cpu._supervisor._link is not link)
        return plan(self, link, *rest)

    monkeypatch.setattr(Recovery, "_plan", late)
    x = array.full(cpu, 3, 2.0)
    y = blas.scal(x, 2.0)
    y.result(timeout_s=30)
    lose(lab, cpu)
    assert settle(lambda: len(began) == 2)
    assert value(cpu, y).tolist() == [4, 4, 4]
    assert settle(lambda: not cpu.in_flight)


def test_requests_in_flight_get_their_results(lab: System, cpu: Device, gate: Path) -> None:
    """A long pure function is killed from outside; it and what waits behind it are run again."""
    x = cpu.put(np.ones(4))
    x.result(WAIT)  # else it is in flight, too
    slow = cpu.run(_double, x, gate, pure=True)
    behind = [blas.scal(slow, float(k)) for k in range(20)]
    fetched = cpu.get(x)
    mark = lab.events.published
    os.kill(pid_of(lab, cpu), signal.SIGKILL)
    gate.touch()
    np.testing.assert_array_equal(fetched.result(WAIT), np.ones(4))
    for k, ref in enumerate(behind):
        np.testing.assert_array_equal(value(cpu, ref), 2.0 * k * np.ones(4))
    named = {entry.seq: entry.name for entry in lab.journal if entry.kind == "message"}
    again = [named[seq] for seq in rebuilt(lab, mark).requests]
    assert again == ["Run", *["Scal"] * 20, "Download"]
    (entry,) = lab.journal.filter(kind="rebuilt")
    assert [named[seq] for seq in entry.fields["requests"]] == again
    lab.check()


def _double(x: Any, gate: Path) -> Any:
    wait_for(gate)
    return 2.0 * x


def _suicide(x: Any) -> Any:
    del x
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_one_that_breaks_the_context_is_found_and_the_others_are_answered(
    lab: System, cpu: Device, gate: Path
) -> None:
    x = cpu.put(np.ones(4))
    cpu.run(_double, x, gate, pure=True)
    before = [blas.scal(x, float(k)) for k in range(10)]
    culprit = cpu.run(_suicide, x, pure=True)
    dependent = blas.scal(culprit, 2.0)
    after = [blas.scal(x, float(k)) for k in range(10)]
    gate.touch()
    with pytest.raises(ContextLost):
        culprit.result(WAIT)
    with pytest.raises(DependencyFailed):
        dependent.result(WAIT)
    for k in range(10):
        np.testing.assert_array_equal(value(cpu, before[k]), k * np.ones(4))
        np.testing.assert_array_equal(value(cpu, after[k]), k * np.ones(4))
    assert cpu.generation == 3  # once by itself, once alone


def test_the_one_that_ends_its_process_is_known_amid_others_and_costs_one_context(
    lab: System, cpu: Device, gate: Path
) -> None:
    """What was done before it and not told of is run again, as what is behind it."""
    x = cpu.put(np.ones(4))
    cpu.run(_double, x, gate, pure=True)
    before = [blas.scal(x, float(k)) for k in range(10)]
    culprit = cpu.run(_crash, x, pure=True)
    after = [blas.scal(x, float(k)) for k in range(10)]
    gate.touch()
    with pytest.raises(ContextLost, match="SIGSEGV"):
        culprit.result(WAIT)
    for k in range(10):
        np.testing.assert_array_equal(value(cpu, before[k]), k * np.ones(4))
        np.testing.assert_array_equal(value(cpu, after[k]), k * np.ones(4))
    assert cpu.generation == 2


def test_a_kernel_that_traps_behind_work_that_nobody_awaits_costs_one_context(
    lab: System, cpu: Device
) -> None:
    require("compiler")
    source = "__global__ void trapped(float* x) { x[threadIdx.x] = 5.0f; __trap(); }"
    trapped = jit.compile(cpu, source, "trapped").result(WAIT)
    x = cpu.put(np.ones((64, 64), np.float32))
    value(cpu, x)
    for generation in (2, 3, 4):
        written, y = cpu.put(np.ones(64, np.float32)), x
        for _ in range(10):
            y = blas.gemm(y, x, alpha=1 / 64)
        with pytest.raises(ContextLost, match="SIGABRT"):
            trapped(1, 32, (written,)).result(WAIT)
        np.testing.assert_array_equal(value(cpu, y), np.ones((64, 64)))
        assert cpu.generation == generation


def test_a_fault_that_is_tried_again_to_be_found_counts_once(
    nothing_left: None, gate: Path
) -> None:
    """From outside one cannot tell who it was; the second loss is the first one's."""
    with System("host", recover="replay", max_restarts=1, within_s=600.0) as lab:
        (cpu,) = lab.devices
        x = cpu.put(np.ones(4))
        cpu.run(_double, x, gate, pure=True)
        culprit = cpu.run(_suicide, x, pure=True)
        after = blas.scal(x, 2.0)
        gate.touch()
        with pytest.raises(ContextLost, match="SIGKILL"):
            culprit.result(WAIT)
        np.testing.assert_array_equal(value(cpu, after), 2 * np.ones(4))
        assert (cpu.generation, cpu.state) == (3, "running")
        with pytest.raises(ContextLost):  # another fault, which counts
            lab.inject("kill", cpu).result(WAIT)
        lab.events.wait_for(CircuitOpened, WAIT, since=0)


def test_two_faults_that_are_found_one_after_the_other_count_twice(
    nothing_left: None, gate: Path
) -> None:
    with System("host", recover="replay", max_restarts=1, within_s=600.0) as lab:
        (cpu,) = lab.devices
        x = cpu.put(np.ones(4))
        cpu.run(_double, x, gate, pure=True)
        culprits = [cpu.run(_suicide, x, pure=True) for _ in range(2)]
        gate.touch()
        for culprit in culprits:
            with pytest.raises((ContextLost, CircuitOpen)):
                culprit.result(WAIT)
        lab.events.wait_for(CircuitOpened, WAIT, since=0)


def test_what_was_alone_when_it_broke_the_context_is_not_tried_again(
    lab: System, cpu: Device
) -> None:
    x = cpu.put(np.ones(4))
    value(cpu, x)
    with pytest.raises(ContextLost, match="SIGSEGV"):
        cpu.run(_crash, x, pure=True).result(WAIT)
    np.testing.assert_array_equal(value(cpu, x), np.ones(4))
    assert cpu.generation == 2


def _crash(x: Any) -> None:
    del x
    os.kill(os.getpid(), signal.SIGSEGV)


def test_a_function_that_is_not_pure_is_not_run_again(lab: System, cpu: Device, gate: Path) -> None:
    x = cpu.put(np.ones(4))
    y = cpu.put(np.ones(4))
    value(cpu, y)
    assert x.durability == "replayable"
    cpu.run(_add_one, x).result(WAIT)
    assert x.durability == "lost on fault"
    assert "pure=True" in x.durability.why
    running = cpu.run(_double, y, gate)
    os.kill(pid_of(lab, cpu), signal.SIGKILL)
    with pytest.raises(ContextLost):
        running.result(WAIT)
    # The call never came to its end, so what it might have written is as it was before.
    np.testing.assert_array_equal(value(cpu, y), np.ones(4))
    with pytest.raises(StaleRef, match="pure=True"):
        cpu.get(x)
    assert not x.is_valid
    lab.check()


def _add_one(x: Any) -> None:
    x += 1.0


def test_a_function_costs_only_what_it_is_said_to_write(lab: System, cpu: Device) -> None:
    x, y = cpu.put(np.ones(4)), cpu.put(np.ones(4))
    cpu.run(_write_first, x, y, writes=(x,)).result(WAIT)
    assert x.durability == "lost on fault"
    assert y.durability == "replayable"
    with pytest.raises(InvalidArgument):
        cpu.run(_write_first, x, y, writes=(cpu.put(np.ones(4)),))
    with pytest.raises(InvalidArgument):
        cpu.run(_write_first, x, y, writes=(x,), pure=True)
    with pytest.raises(InvalidArgument, match=r"writes=\(x,\)"):
        cpu.run(_write_first, x, y, writes=x)  # type: ignore[arg-type]


def _write_first(x: Any, y: Any) -> None:
    x += y


def _write_and_find_nothing(x: Any) -> None:
    x[:2] = 7.0
    raise StaleRef("a name was lost, says a function of the user's")


def test_a_function_that_writes_and_raises_stale_ref_has_changed_what_it_wrote(
    lab: System, cpu: Device
) -> None:
    """That it had changed nothing is known only of what never ran: the old zeros came back."""
    x = cpu.put(np.zeros(4))
    with pytest.raises(UserCodeError, match="StaleRef: a name was lost"):
        cpu.run(_write_and_find_nothing, x, writes=(x,)).result(WAIT)
    lose(lab, cpu)
    with pytest.raises(AccelError):
        value(cpu, x)


def test_an_answer_with_memory_of_its_own_comes_back_from_its_checkpoint(
    lab: System, cpu: Device
) -> None:
    """The context tells that it is no view of the operand, which is in use as well."""
    x = cpu.put(np.arange(6.0))
    y = cpu.run(np.add, x, 1, writes=()).result(WAIT)
    cpu.checkpoint(y).result(WAIT)
    assert str(y.durability) == "checkpointed"
    lose(lab, cpu)
    np.testing.assert_array_equal(value(cpu, y), np.arange(6.0) + 1)
    np.testing.assert_array_equal(value(cpu, x), np.arange(6.0))


def test_both_checkpoints_are_of_use_of_an_answer_and_its_operand(
    lab: System, cpu: Device, gate: Path
) -> None:
    """Though something was computed of the answer before its memory was known."""
    x = cpu.put(np.arange(6.0))
    cpu.run(_add_one, x)
    y = cpu.run(_double, x, gate, writes=())
    total = blas.nrm2(y)
    assert x.durability == "lost on fault"
    gate.touch()
    for ref in (x, y):
        cpu.checkpoint(ref).result(WAIT)
        assert ref.durability == "checkpointed"
    lose(lab, cpu)
    np.testing.assert_array_equal(value(cpu, x), np.arange(6.0) + 1)
    np.testing.assert_array_equal(value(cpu, y), 2 * (np.arange(6.0) + 1))
    assert not total.is_valid


def test_of_a_view_and_its_buffer_that_are_both_checkpointed_the_buffer_comes_back(
    lab: System, cpu: Device
) -> None:
    x = cpu.put(np.arange(6.0))
    part = array.slice(x, np.s_[2:])
    cpu.run(_add_one, x).result(WAIT)
    for ref in (x, part):
        cpu.checkpoint(ref).result(WAIT)
    assert (x.durability, part.durability) == ("checkpointed", "lost on fault")
    lose(lab, cpu)
    np.testing.assert_array_equal(value(cpu, x), np.arange(6.0) + 1)
    with pytest.raises(StaleRef, match=f"while buffer {x.id} is in use"):
        cpu.get(part)


def test_what_looks_at_an_answer_is_a_part_of_it_whenever_that_is_told(
    lab: System, cpu: Device
) -> None:
    """The view is sent, and read in the record, before the answer's memory is known."""
    x = cpu.put(np.arange(6.0))
    y = cpu.run(np.add, x, 1, writes=())
    part = y[2:]
    array.copy(cpu.put(np.full(4, 9.0)), out=part)
    for ref in (y, part):
        cpu.checkpoint(ref).result(WAIT)
    array.copy(cpu.put(np.full(4, 7.0)), out=part)
    expected = value(cpu, y)
    lose(lab, cpu)
    with contextlib.suppress(AccelError):
        np.testing.assert_array_equal(value(cpu, y), expected)
    np.testing.assert_array_equal(value(cpu, x), np.arange(6.0))


@pytest.mark.parametrize("has_other", [False, True])
def test_what_is_written_through_the_answer_of_a_function_is_not_forgotten(
    lab: System, cpu: Device, *, has_other: bool
) -> None:
    """It may be a view of what the function did not write."""
    x, other, nines = cpu.put(np.arange(6.0)), cpu.put(np.ones(4)), cpu.put(np.full(4, 9.0))
    part = cpu.run(_all_but_two, x, other, writes=(other,) if has_other else ())
    assert (part.durability, x.durability) == ("lost on fault", "replayable")
    array.copy(nines, out=part)
    np.testing.assert_array_equal(value(cpu, x), [0, 1, 9, 9, 9, 9])
    assert x.durability == "lost on fault"
    lose(lab, cpu)
    np.testing.assert_array_equal(value(cpu, nines), np.full(4, 9.0))
    with pytest.raises(StaleRef, match="pure=True"):
        cpu.get(x)


@pytest.mark.parametrize("how", ["an array", "in a list", "by a view that was sent at once"])
def test_what_is_written_through_memory_that_a_function_has_kept_is_not_forgotten(
    lab: System, cpu: Device, gate: Path, how: str
) -> None:
    """The answer is a part of what is no operand of the function."""
    x, nines = cpu.put(np.arange(6.0)), cpu.put(np.full(4, 9.0))
    cpu.run(_keep, x, writes=()).result(WAIT)
    part = cpu.run(_kept, gate, how == "in a list", writes=())
    if how == "by a view that was sent at once":
        part = array.slice(part, np.s_[:])
        assert x.durability == "replayable"  # which has the record read by now
    gate.touch()
    array.copy(nines, out=part.result(WAIT)[0] if how == "in a list" else part)
    np.testing.assert_array_equal(value(cpu, x), [0, 1, 9, 9, 9, 9])
    assert x.durability == "lost on fault"
    lose(lab, cpu)
    np.testing.assert_array_equal(value(cpu, nines), np.full(4, 9.0))
    with pytest.raises(StaleRef, match=r"pure=True|your own code"):
        cpu.get(x)


def _keep(x: Any) -> None:
    sys.modules["kept"] = x


def _kept(gate: Path, in_a_list: bool) -> Any:  # noqa: FBT001
    wait_for(gate)
    part: Any = sys.modules["kept"]
    return [part[2:]] if in_a_list else part[2:]


def _all_but_two(x: Any, _: Any) -> Any:
    return x[2:]


def test_a_checkpoint_is_of_use_beside_the_answer_of_a_function(lab: System, cpu: Device) -> None:
    x, y = cpu.put(np.ones(4)), cpu.put(np.ones(4))
    total = cpu.run(_add_and_sum, x, y)
    cpu.checkpoint(x).result(WAIT)
    assert x.durability == "checkpointed"
    lose(lab, cpu)
    np.testing.assert_array_equal(value(cpu, x), 2.0 * np.ones(4))
    assert not total.is_valid


def _add_and_sum(x: Any, y: Any) -> Any:
    x += y
    return x + y


def test_two_operands_of_a_function_come_back_each_by_itself(lab: System, cpu: Device) -> None:
    """Though the function's answer may be a view of either."""
    history = cpu._supervisor.recovery._lineage  # type: ignore[union-attr]
    w, z = cpu.put(np.arange(4.0)), cpu.put(np.ones(4))
    cpu.checkpoint(w).result(WAIT)
    for _ in history.tidy(at_once=True):
        pass
    both = cpu.run(np.add, w, z, pure=True)
    value(cpu, both)
    lose(lab, cpu)
    np.testing.assert_array_equal(value(cpu, w), np.arange(4.0))
    np.testing.assert_array_equal(value(cpu, z), np.ones(4))
    np.testing.assert_array_equal(value(cpu, both), np.arange(4.0) + 1)


def test_a_checkpoint_saves_what_could_not_be_made_again(lab: System, cpu: Device) -> None:
    x = cpu.put(np.ones(4))
    cpu.run(_add_one, x).result(WAIT)
    assert x.durability == "lost on fault"
    cpu.checkpoint(x).result(WAIT)
    assert x.durability == "checkpointed"
    y = blas.scal(x, 3.0)
    blas.scal(x, 10.0, out=x)
    assert x.durability == "replayable"
    value(cpu, x)
    lose(lab, cpu)
    np.testing.assert_array_equal(value(cpu, x), 20.0 * np.ones(4))
    np.testing.assert_array_equal(value(cpu, y), 6.0 * np.ones(4))


def test_what_was_made_of_an_earlier_checkpoint_comes_back_after_a_later_one(
    lab: System, cpu: Device
) -> None:
    lineage = cpu._supervisor.recovery._lineage  # type: ignore[union-attr]
    w, m = cpu.put(A), cpu.put(A)
    for _ in range(3):
        cpu.checkpoint(w).result(WAIT)
        for _ in lineage.tidy(at_once=True):
            pass
        blas.axpy(w, m, out=m)
        blas.scal(w, 2.0, out=w)
    lose(lab, cpu)
    np.testing.assert_array_equal(value(cpu, m), 8 * A)
    np.testing.assert_array_equal(value(cpu, w), 8 * A)
    assert settle(lambda: lab.tree().children[0].used_bytes == w.nbytes + m.nbytes)


def test_a_checkpoint_keeps_the_order_in_memory(lab: System, cpu: Device) -> None:
    """For in another order the same numbers add up to another sum, in the last bits."""
    numbers = np.random.default_rng(0).standard_normal((300, 301))
    x, y = cpu.put(numbers), cpu.put(numbers)
    turned = array.transpose(x)
    cubes = cpu.run(_cubes_of, y)
    del x, y
    for ref in (turned, cubes):
        cpu.checkpoint(ref).result(WAIT)
        assert ref.durability == "checkpointed"
    results = [turned, cubes, *(cpu.run(np.sum, ref, pure=True) for ref in (turned, cubes))]
    before = [value(cpu, ref) for ref in results]
    strides = [cpu.run(_strides, ref, pure=True).result(WAIT) for ref in (turned, cubes)]
    lose(lab, cpu)
    for was, ref in zip(before, results, strict=True):
        np.testing.assert_array_equal(value(cpu, ref), was)
    assert [cpu.run(_strides, ref, pure=True).result(WAIT) for ref in (turned, cubes)] == strides
    assert strides[1][0] < strides[1][1]


def _cubes_of(x: Any) -> Any:
    return np.transpose(np.stack([x[:9, :100], x[9:18, :100]]).copy(), (2, 0, 1))


def _strides(x: Any) -> list[int]:
    return [int(step) for step in x.strides]


def test_what_has_gaps_in_memory_is_not_checkpointed(lab: System, cpu: Device) -> None:
    x = cpu.put(A)
    part = array.slice(x, np.s_[:, :3])
    with pytest.raises(InvalidArgument, match=r"array\.copy"):
        cpu.checkpoint(part).result(WAIT)
    assert part.durability == "replayable"
    lose(lab, cpu)
    np.testing.assert_array_equal(value(cpu, part), A[:, :3])


def test_a_large_upload_says_before_the_fault_that_it_will_be_lost(
    lab: System, cpu: Device
) -> None:
    x = cpu.put(np.ones(9 << 20))
    y = cpu.put(np.ones(4))
    assert x.durability == "lost on fault"
    assert "checkpoint" in x.durability.why
    value(cpu, y)
    lose(lab, cpu)
    np.testing.assert_array_equal(value(cpu, y), np.ones(4))
    with pytest.raises(StaleRef, match="checkpoint"):
        blas.scal(x, 2.0)


def test_what_is_sent_while_the_buffers_are_made_waits_its_turn(
    lab: System, cpu: Device, gate: Path
) -> None:
    """Handles may be used at once, while the device has no context at all."""
    x = cpu.put(np.ones(4))
    gate.touch()
    made = cpu.run(_double, x, gate, pure=True).result(WAIT)
    gate.unlink()  # to make it again takes until the gate is there again
    since = lab.events.published
    os.kill(pid_of(lab, cpu), signal.SIGKILL)
    lab.events.wait_for(GenerationChanged, WAIT, since=since)
    assert cpu.state == "restarting"
    doubled = blas.scal(made, 2.0)
    del made
    gate.touch()
    np.testing.assert_array_equal(value(cpu, doubled), 4.0 * np.ones(4))


def test_what_is_sent_while_it_is_found_out_what_to_run_is_run_once(
    lab: System, cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = cpu.put(A), cpu.put(A)
    connection, made = cpu._requests.connection, []
    rebuilding = connection.rebuilding

    def send_then(link: Any) -> Any:
        waiting = rebuilding(link)
        blas.axpy(x, y, out=y)
        made.append(x * 3)
        return waiting

    monkeypatch.setattr(connection, "rebuilding", send_then)
    lose(lab, cpu)
    assert settle(lambda: bool(made))
    np.testing.assert_array_equal(value(cpu, y), 2 * A)
    np.testing.assert_array_equal(value(cpu, made[0]), 3 * A)
    assert made[0].durability == y.durability == "replayable"


def test_a_history_that_faults_again_stops_at_the_circuit(
    nothing_left: None, tmp_path: Path
) -> None:
    """A buffer whose making kills the context by now is not made over and over."""
    with System("host", recover="replay", max_restarts=3) as lab:
        (cpu,) = lab.devices
        path = tmp_path / "run before"
        made = cpu.run(_dies_the_second_time, path, pure=True).result(WAIT)
        with pytest.raises(AccelError):
            lab.inject("kill", cpu).result(WAIT)
        assert settle(lambda: cpu.state == "circuit open")
        with pytest.raises(CircuitOpen):
            blas.scal(made, 2.0)


def _dies_the_second_time(path: Path) -> Any:
    if path.exists():
        os.kill(os.getpid(), signal.SIGKILL)
    path.touch()
    return np.ones(4)


def test_a_hanging_request_is_the_only_one_that_fails(lab: System, cpu: Device) -> None:
    x = cpu.put(np.ones(4))
    value(cpu, x)
    hang = lab.inject("hang", cpu, timeout_s=0.3)
    behind = blas.scal(x, 2.0)
    with pytest.raises(DeadlineExceeded):
        hang.result(WAIT)
    np.testing.assert_array_equal(value(cpu, behind), 2.0 * np.ones(4))


def test_a_held_request_can_be_taken_back(lab: System, cpu: Device, gate: Path) -> None:
    x = cpu.put(np.ones(4))
    slow = cpu.run(_double, x, gate, pure=True)
    behind = blas.scal(slow, 2.0)
    os.kill(pid_of(lab, cpu), signal.SIGKILL)
    lab.events.wait_for(GenerationChanged, WAIT, since=0)
    slow.cancel()
    gate.touch()  # if it was being run again by then
    with pytest.raises(AccelError):
        behind.result(WAIT)
    np.testing.assert_array_equal(value(cpu, x), np.ones(4))


def test_closing_amid_a_recovery_answers_everything(nothing_left: None, gate: Path) -> None:
    with System("host", recover="replay") as lab:
        (cpu,) = lab.devices
        gate.touch()
        x = cpu.run(_double, cpu.put(np.ones(4)), gate, pure=True).result(WAIT)
        gate.unlink()  # it is never made again
        os.kill(pid_of(lab, cpu), signal.SIGKILL)
        lab.events.wait_for(GenerationChanged, WAIT, since=0)
        pending = [blas.scal(x, float(k)) for k in range(10)]
    for ref in pending:
        with pytest.raises(AccelError):
            ref.result(WAIT)


def test_a_recovery_that_fails_leaves_a_device_that_works(
    lab: System, cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept bytes that are gone give no buffer of anything, and no device that waits for ever."""
    x = cpu.put(np.ones((200, 200)))
    value(cpu, x)
    monkeypatch.setattr(Contents, "get", lambda *_: None)
    mark = lab.events.published
    lose(lab, cpu)
    fact = rebuilt(lab, mark)
    assert (fact.buffers, fact.lost) == (0, 1)
    with pytest.raises(StaleRef, match="its recovery failed"):
        cpu.get(x)
    np.testing.assert_array_equal(value(cpu, cpu.put(np.ones(4))), np.ones(4))


def test_what_finds_no_room_in_the_arena_is_lost_alone(
    lab: System, cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what needs it; half of it may have been there by then."""
    place, placed = Resending._place, []

    def once(resending: Resending, data: memoryview) -> Any:
        placed.append(len(data))
        if len(placed) > 1:
            raise ArenaFull("no room")
        return place(resending, data)

    small, large = cpu.put(np.arange(4.0)), cpu.put(np.ones((CHUNK_BYTES + 800) // 8))
    cpu.checkpoint(large).result(WAIT)
    doubled, y = blas.scal(large, 2.0), array.zeros(cpu, (3,), "float64")
    blas.scal(large, 3.0, out=large)
    value(cpu, large)
    monkeypatch.setattr(Resending, "_place", once)
    mark = lab.events.published
    lose(lab, cpu)
    np.testing.assert_array_equal(value(cpu, small), np.arange(4.0))
    np.testing.assert_array_equal(value(cpu, y), np.zeros(3))
    fact = rebuilt(lab, mark)
    assert (fact.buffers, fact.lost, len(placed)) == (2, 2, 2)
    for ref in (large, doubled):
        with pytest.raises(StaleRef, match="failed"):
            cpu.get(ref)
    np.testing.assert_array_equal(value(cpu, blas.scal(small, 2.0)), 2 * np.arange(4.0))


def test_two_devices_are_recovered_each_by_itself(nothing_left: None) -> None:
    with System("host", 2, recover="replay") as lab:
        one, two = lab.devices
        x, y = one.put(np.ones(4)), two.put(np.ones(4))
        value(one, x)
        value(two, y)
        lose(lab, one)
        np.testing.assert_array_equal(value(one, x), np.ones(4))
        np.testing.assert_array_equal(value(two, y), np.ones(4))
        assert (one.generation, two.generation) == (2, 1)


def test_stale_systems_say_that_nothing_survives(nothing_left: None) -> None:
    with System("host", recover="stale") as lab:
        (cpu,) = lab.devices
        x = cpu.put(np.ones(4))
        assert x.durability == "lost on fault"
        assert "recover" in x.durability.why
    with pytest.raises(InvalidArgument):
        System("host", recover="never")  # type: ignore[arg-type]


def add_one_and_fail(x: Any) -> None:
    x += 1
    raise ValueError


def test_what_a_function_had_written_when_it_failed_is_not_made_without_it(
    lab: System, cpu: Device
) -> None:
    a = cpu.put(A)
    with pytest.raises(UserCodeError):
        cpu.run(add_one_and_fail, a).result(WAIT)
    np.testing.assert_array_equal(value(cpu, a), A + 1)
    assert a.durability == "lost on fault"
    lose(lab, cpu)
    lab.ready()
    with pytest.raises(StaleRef, match="may have changed"):
        value(cpu, a)


def double_and_say_so(x: Any) -> Any:
    sys.stdout.write("doubling\n")
    return 2 * x


def test_a_closed_system_keeps_nothing() -> None:
    with System("host", recover="replay") as lab:
        x = lab.devices[0].put(A)
        assert x.durability == "replayable"
    assert x.durability == "lost on fault"


def test_what_a_function_prints_when_it_is_run_again_is_not_shown_again(
    lab: System, cpu: Device
) -> None:
    doubled = cpu.run(double_and_say_so, cpu.put(A), pure=True)
    doubled.result(WAIT)
    lab.events.wait_for(OutputPrinted, WAIT, since=0)
    lose(lab, cpu)
    np.testing.assert_array_equal(value(cpu, doubled), 2 * A)
    lab.check()
    assert len(lab.events.history(OutputPrinted)) == 1


@pytest.mark.parametrize("by", ["put", "a function"])
def test_a_long_history_is_checkpointed_by_itself(
    lab: System, cpu: Device, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """As that of a loop which updates in place: it neither grows for ever nor is lost."""
    monkeypatch.setattr(lineage, "UNREAD_LIMIT", 2000)
    monkeypatch.setattr(lineage, "LONG_HISTORY", 1000)
    ones = cpu.put(np.ones(4))
    x = cpu.put(np.zeros(4)) if by == "put" else cpu.run(np.zeros_like, ones, pure=True)
    for _ in range(5):
        for _ in range(1500):
            blas.axpy(ones, x, out=x)
        value(cpu, x)
        settle(lambda: "checkpoint" in x.durability.why or x.durability == "checkpointed", 0.5)
    history = cpu._supervisor.recovery._lineage  # type: ignore[union-attr]
    assert settle(lambda: len(history) < 7500)
    mark = lab.events.published
    lose(lab, cpu)
    np.testing.assert_array_equal(value(cpu, x), 7500.0 * np.ones(4))
    assert rebuilt(lab, mark).messages < 7000


@pytest.mark.parametrize("recover", ["replay", "stale"])
def test_the_tree_says_what_a_device_has_also_when_that_is_new(
    nothing_left: None, recover: Literal["replay", "stale"]
) -> None:
    with System("host", recover=recover) as lab:
        (cpu,) = lab.ready().devices

        def used() -> int | None:
            return lab.tree().children[0].used_bytes

        kept: list[AccelRef] = []
        for _ in range(5):
            kept.append(cpu.put(np.ones(MIB // 8)).result(WAIT))
            assert settle(lambda: used() == len(kept) * MIB, 0.6)
        with pytest.raises(ContextLost):
            lab.inject("kill", cpu).result(WAIT)
        assert settle(lambda: cpu.state == "running")
        if recover == "stale":
            assert used() == 0
        else:
            assert not settle(lambda: used() == 0, 0.5)
            assert used() == 5 * MIB
