"""Finding the message that ended a context."""

import os
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from accel_lab import AccelRef, Device, System, array, blas, jit, rng
from accel_lab.actor.reply import Reply
from accel_lab.compute.actors.fault import Inject
from accel_lab.compute.events.lifecycle import ContextLost as Lost
from accel_lab.compute.events.lifecycle import ContextStarted
from accel_lab.errors import ContextLost, JournalError, StaleRef
from accel_lab.journal.entries.entry import Entry
from accel_lab.journal.explanation.explain import explain
from accel_lab.journal.explanation.explanation import Explanation
from tests.conftest import require
from tests.faults.conftest import wait_for
from tests.interactive import shell
from tests.journal.recording import Recording

DEPTH = 100
FAULTS = ("poison", "trap", "segfault", "kill", "exit")
ASTRAY = """
__global__ void astray(float* x, long long far) { x[far + threadIdx.x] = 1.0f; }
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", max_restarts=100, within_s=0.1) as system:
        yield system


@pytest.fixture(scope="module")
def spare() -> Iterator[System]:
    """Open what is tried on once for all: a start takes longer than a trial."""
    with System("host", max_restarts=100, within_s=0.1) as system:
        yield system


def step(gpu: Device, x: AccelRef, choice: int) -> AccelRef:
    """Do one of several things to a pipeline's state."""
    if choice == 0:
        return blas.gemm(x, x, alpha=0.1)
    if choice == 1:
        return blas.scal(x, 0.5, out=x)
    if choice == 2:
        return blas.axpy(rng.uniform(gpu, x.shape, seed=1), x)
    return array.copy(array.transpose(x))


def latch(gpu: Device) -> None:
    """Hold the context back, so that what follows is in flight together."""
    gpu.run(lambda: __import__("time").sleep(0.05), pure=True)


@pytest.mark.parametrize("seed", range(20))
def test_the_message_is_found_at_any_depth_of_a_pipeline(
    lab: System, spare: System, seed: int
) -> None:
    chance = random.Random(seed)
    gpu, fault, depth = lab.devices[0], chance.choice(FAULTS), chance.randrange(DEPTH)
    record = Recording(lab)
    x = rng.uniform(gpu, (8, 8), seed=seed)
    if chance.randrange(2):
        x.result()
    latch(gpu)
    lost: list[Reply[Any]] = []
    sent = 0
    try:
        for position in range(DEPTH):
            if position == depth:
                lost.append(gpu.ask(Inject(fault)))
                sent = gpu._requests.last_number
            x = step(gpu, x, chance.randrange(4))
    except StaleRef:  # it was lost before all was sent
        assert lost
    with pytest.raises(ContextLost):
        lost[0].result()
    lab.ready()
    found = explain(record, lab, gpu, spare=lambda _: nullcontext(spare.ready()))
    assert found.culprit is not None, str(found)
    assert (found.culprit.name, found.culprit.fields["kind"]) == ("Inject", fault)
    assert found.culprit.seq == sent
    assert isinstance(found.error, ContextLost)
    assert found.error.name == found.name or fault in ("poison", "trap")
    assert found.not_run == ()


def test_a_kernel_that_goes_astray_is_named_with_its_operands(
    lab: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("compiler")
    gpu = lab.devices[0]
    record = Recording(lab)
    kernel = jit.compile(gpu, ASTRAY, "astray").result()
    x, y = array.zeros(gpu, (4, 4)), array.zeros(gpu, (16,))
    latch(gpu)
    blas.gemm(x, x)
    kernel(1, 4, (y, 0))
    lost = kernel(1, 4, (y, 1 << 40))
    with pytest.raises(ContextLost):
        lost.result()
    lab.ready()
    found = explain(record, lab)
    assert found.culprit is not None
    assert found.culprit.name == "LaunchKernel"
    assert found.culprit.fields["values"] == [None, 1 << 40]
    assert found.kernel == "astray"
    named = {operand.name: operand for operand in found.operands}
    assert (named["refs[0]"].shape, named["refs[0]"].dtype) == ((16,), "float32")
    assert named["refs[0]"].id == y.id
    assert f"refs[0] = #{y.id} float32[16]" in str(found)
    for name, value in (("weights", y), ("fill", kernel)):
        monkeypatch.setattr(sys.modules["__main__"], name, value, raising=False)
    found = explain(record, lab)
    assert f"refs[0] = weights (#{y.id} float32[16])" in str(found)
    assert "kernel = fill.ref (" in str(found)
    assert "SIGSEGV" in str(found)
    assert "astray" in found._repr_html_()


def test_a_function_that_crashes_is_found_with_what_it_needs(lab: System) -> None:
    def crash_when_large(x: Any) -> None:
        import ctypes

        if x.sum() > 20:
            ctypes.string_at(0)

    gpu = lab.devices[0]
    record = Recording(lab)
    x = array.full(gpu, (4,), 1.0, "float32")
    gpu.run(crash_when_large, x).result()
    for _ in range(3):
        x = blas.scal(x, 2.0, out=x)
        last = gpu.run(crash_when_large, x)
    with pytest.raises(ContextLost):
        last.result()
    lab.ready()
    found = explain(record, lab)
    assert found.culprit is not None
    assert found.culprit.name == "Run"
    runs = [entry for entry in record if entry.name == "Run"]
    assert found.culprit.seq == runs[-1].seq


def test_a_message_that_never_ends_is_found(lab: System) -> None:
    gpu = lab.devices[0]
    record = Recording(lab)
    array.zeros(gpu, (4,))
    with pytest.raises(ContextLost):
        lab.inject("hang", timeout_s=0.3).result()
    lab.ready()
    found = explain(record, lab)
    assert found.culprit is not None
    assert found.culprit.fields["kind"] == "hang"


def test_a_kill_from_outside_does_not_show_again(lab: System, tmp_path: Path) -> None:
    gpu = lab.devices[0]
    record = Recording(lab)
    x = rng.uniform(gpu, (8, 8), seed=1)
    gpu.run(wait_for, tmp_path / "gate", pure=True)
    reply = blas.gemm(x, x)
    generation = gpu.generation
    os.kill(lab.events.history(ContextStarted)[-1].pid, signal.SIGKILL)
    (tmp_path / "gate").touch()
    reply.result()  # is run again
    assert gpu.generation == generation + 1
    found = explain(record, lab)
    assert found.culprit is None
    assert "SIGKILL" in found.cause or found.name == "SIGKILL"
    assert "did not show again" in str(found)


def test_who_asks_again_is_told_the_same_and_the_spares_end_is_no_fault_of_the_systems() -> None:
    with System("host") as lab:
        with pytest.raises(ContextLost):
            lab.inject("kill").result()
        found = lab.explain()
        assert found.culprit is not None
        assert "cpu0 spare lost its context" in str(found)
        assert lab.explain() is found
        assert lab.explain(timeout_s=50.0) is not found, "it may have another culprit"
        assert [one.device for one in lab.events.history(Lost)] == ["cpu0"]
        assert not [one for one in lab.events.history() if "spare" in str(one)]
        lab.check()
        with pytest.raises(ContextLost):
            lab.inject("kill").result()
        assert lab.explain().generation == found.generation + 1


def test_without_a_loss_there_is_nothing_to_explain() -> None:
    with System("host") as lab:
        record = Recording(lab)
        lab.devices[0].ping().result()
        with pytest.raises(JournalError, match="no loss of a context") as caught:
            explain(record, lab)
    assert caught.value.remedy.startswith("Ask after a loss")


def test_a_system_that_was_closed_in_peace_has_nothing_to_explain() -> None:
    with System("host") as lab:
        lab.devices[0].ping().result()
    with pytest.raises(JournalError, match="no loss of a context"):
        lab.explain()


def test_a_loss_is_explained_after_the_system_was_closed() -> None:
    with System("host") as lab:
        with pytest.raises(ContextLost):
            lab.inject("segfault").result()
        lab.ready()
    found = lab.explain()
    assert found.culprit is not None
    assert found.culprit.fields["kind"] == "segfault"
    assert found.generation == 1


class Forgetful(Recording):
    """A record that has forgotten its first messages."""

    def __init__(self, lab: System, first: int) -> None:
        super().__init__(lab)
        self.first = first

    def __iter__(self) -> Iterator[Entry]:
        """Yield what is left."""
        return (e for e in super().__iter__() if e.kind != "message" or e.seq >= self.first)


@pytest.mark.parametrize("all_gone", [True, False])
def test_what_left_the_journal_is_not_said_to_do_no_harm(lab: System, *, all_gone: bool) -> None:
    gpu = lab.devices[0]
    record = Forgetful(lab, 0)
    latch(gpu)
    lost = lab.inject("segfault")
    behind = gpu.run(lambda: 1)
    record.first = gpu.last_number + all_gone
    for reply in (lost, behind):
        with pytest.raises(ContextLost):
            reply.result()
    lab.ready()
    said = str(explain(record, lab))
    assert "outside" not in said
    assert ("nothing in flight could be run" in said) == all_gone
    assert ("one message in flight did no harm in a spare" in said) != all_gone
    assert "left the journal; more stay with System(journal_bytes=…)" in said


def test_an_explanation_tells_cell_message_operands_and_error() -> None:
    with System("host") as lab:
        record = Recording(lab)
        gpu = lab.devices[0]
        array.zeros(gpu, (4,)).result()
        with pytest.raises(ContextLost):
            lab.inject("trap").result()
        lab.ready()
        found: Explanation = explain(record, lab)
    text = str(found)
    for expected in ("cpu0", "generation 1", "Inject(kind='trap')", "a plain program", "719"):
        assert expected in text
    assert found.cell is None
    assert text.count("\n") == found._repr_html_().count("<tr>")


def test_an_explanation_names_the_cell_that_sent_the_message() -> None:
    """Not the one that waited for it, nor the one that asked."""
    with shell() as notebook:
        notebook("import numpy as np; from accel_lab import System, blas; lab = System('host')")
        notebook("x = lab.devices[0].put(np.ones((4, 4), np.float32))")
        notebook("y = blas.gemm(x, x); lost = lab.inject('poison')")
        notebook("z = blas.gemm(y, y)")
        notebook("lost.result()")
        assert isinstance(notebook.error, ContextLost)
        found = notebook("lab.ready(); found = lab.explain(); found")
        notebook("lab.close()")
    assert isinstance(found, Explanation)
    assert found.cell == 3
    assert "cell 3" in str(found)
    assert "cell 3" in found._repr_html_()
