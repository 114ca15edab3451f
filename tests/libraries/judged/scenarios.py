"""Launches that a status decides, in a copy of the project that has the library `judged`."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accel_lab.libraries.judged import Late, NotDefinite

from accel_lab import System
from accel_lab.compute.device import Device
from accel_lab.errors import AccelError, DependencyFailed
from accel_lab.journal.journal import Journal
from accel_lab.libraries import blas, judged

BACKEND = os.environ.get("TRIAL_BACKEND", "host")
WAIT = 60
LATE_S = 0.3
GOOD = np.array([[4.0, 2.0], [2.0, 5.0]])
LOWER = np.array([[2.0, 0.0], [1.0, 2.0]])
BAD = np.array([[1.0, 2.0], [2.0, 1.0]])
FIFTY = 50


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System(BACKEND) as system:
        yield system


@pytest.fixture
def gpu(lab: System) -> Device:
    """Return a device of which nobody has to be told anything."""
    settle(lab.devices[0])
    told(lab)
    return lab.devices[0]


def settle(gpu: Device) -> None:
    """Wait until all is answered."""
    while gpu.in_flight:
        time.sleep(0.01)


@pytest.fixture(params=[0.0, LATE_S], ids=["at once", "late"])
def late(request: pytest.FixtureRequest, gpu: Device) -> float:
    """Return for how long verdicts are late from now on."""
    seconds: float = request.param
    if seconds:
        gpu.ask(Late(seconds))
    return seconds


def depends(*refs: Any) -> None:
    for ref in refs:
        with pytest.raises(DependencyFailed) as caught:
            ref.result(WAIT)
        assert isinstance(caught.value.__cause__, NotDefinite)


def told(lab: System) -> list[type]:
    """Return what `lab.check()` tells, as long as it tells anything."""
    found: list[type] = []
    while True:
        try:
            lab.check()
        except AccelError as error:
            found.append(type(error))
        else:
            return found


@pytest.mark.usefixtures("late")
def test_fifty_that_depend_on_it_fail_and_the_others_do_not(lab: System, gpu: Device) -> None:
    a, x = gpu.put(BAD), gpu.put(GOOD)
    generation = gpu.generation
    root = judged.cholesky(a)
    behind, beside = [root @ x], [x + 1]
    for k in range(FIFTY):
        behind.append(behind[-1] + x if k % 2 else (behind[-1].T[0] * k).reshape(2, 1) + x)
        beside.append(beside[-1] + x)
    well = judged.cholesky(x)
    with pytest.raises(NotDefinite, match="order 2") as caught:
        root.result(WAIT)
    assert caught.value.order == 2
    depends(*behind)
    for k, ref in enumerate(beside, 1):
        np.testing.assert_array_equal(ref.get(), k * GOOD + 1)
    np.testing.assert_allclose(well.get(), LOWER)
    assert gpu.generation == generation


@pytest.mark.usefixtures("late")
def test_it_is_told_of_once(lab: System, gpu: Device) -> None:
    root = judged.cholesky(gpu.put(BAD))
    behind = [root + k for k in range(FIFTY)]
    settle(gpu)
    assert told(lab) == [NotDefinite]
    depends(*behind)
    assert told(lab) == []


def test_many_that_fail_cost_no_context(gpu: Device) -> None:
    a, generation = gpu.put(BAD), gpu.generation
    gpu.ask(Late(LATE_S))
    for root in [judged.cholesky(a) for _ in range(20)]:
        with pytest.raises(NotDefinite):
            root.result(WAIT)
    assert gpu.generation == generation
    np.testing.assert_allclose(judged.cholesky(gpu.put(GOOD)).get(), LOWER)


def test_a_get_right_behind_waits_for_the_verdict(gpu: Device) -> None:
    a, x = gpu.put(BAD), gpu.put(GOOD)
    for late_s in (0.0, LATE_S):
        gpu.ask(Late(late_s))
        with pytest.raises(DependencyFailed) as caught:
            judged.cholesky(a).get()
        assert isinstance(caught.value.__cause__, NotDefinite)
        gpu.ask(Late(late_s))
        with pytest.raises(DependencyFailed):
            (judged.cholesky(a) + 1).get()
        gpu.ask(Late(late_s))
        np.testing.assert_allclose((judged.cholesky(x) + 1).get(), LOWER + 1)


def saw(path: str, x: Any) -> float:
    Path(path).write_text("seen")
    return float(x.sum())


@pytest.mark.usefixtures("late")
@pytest.mark.parametrize("pure", [False, True])
def test_a_function_never_sees_garbage(gpu: Device, tmp_path: Path, *, pure: bool) -> None:
    bad, good = judged.cholesky(gpu.put(BAD)), judged.cholesky(gpu.put(GOOD))
    path = tmp_path / "seen"
    wrong = gpu.run(saw, str(path), bad + 1, pure=pure)
    behind = gpu.run(saw, str(tmp_path / "other"), good * 2, pure=pure)
    depends(wrong)
    assert not path.exists()
    assert behind.result(WAIT) == 2 * LOWER.sum()


@pytest.mark.usefixtures("late")
def test_what_a_dependent_writes_is_refused_until_that_is_known(gpu: Device) -> None:
    x, y, root = gpu.put(GOOD), gpu.put(GOOD), judged.cholesky(gpu.put(BAD))
    view = x.T
    written = [blas.axpy(root, x, out=x), blas.axpy(x, y, out=y)]
    depends(view + 1, x * 2, y + 1, *written)
    with pytest.raises(NotDefinite):
        root.result(WAIT)
    root = judged.cholesky(gpu.put(BAD), out=y)
    view = y.T
    depends(view + 1, y + 1)
    with pytest.raises(NotDefinite):
        root.result(WAIT)
    np.testing.assert_array_equal((gpu.put(GOOD) + 1).get(), GOOD + 1)


@pytest.mark.usefixtures("late")
def test_each_of_several_results_fails(gpu: Device) -> None:
    lower, diagonal = judged.factor(gpu.put(BAD))
    behind = [lower + 1, diagonal * 2]
    del lower
    with pytest.raises(NotDefinite):
        diagonal.result(WAIT)
    depends(*behind)
    lower, diagonal = judged.factor(gpu.put(GOOD))
    np.testing.assert_allclose(lower.get(), LOWER)
    np.testing.assert_allclose(diagonal.get(), LOWER.diagonal())


@pytest.mark.parametrize("late_s", [0.0, LATE_S])
def test_two_verdicts(gpu: Device, late_s: float) -> None:
    good, bad = gpu.put(GOOD), gpu.put(BAD)
    gpu.ask(Late(late_s))
    one, two = judged.cholesky(good), judged.cholesky(bad)
    again = judged.cholesky(one @ one.T)
    behind = judged.cholesky(two @ two.T + good)
    depends(behind, behind + 1, again + two)
    np.testing.assert_allclose((again + one).get(), 2 * LOWER)


@pytest.mark.skipif(BACKEND != "host", reason="a second device")
def test_a_copy_to_another_device_waits() -> None:
    with System(BACKEND, devices=2) as lab:
        one, two = lab.devices
        bad, good = one.put(BAD), one.put(GOOD)
        one.ask(Late(LATE_S))
        wrong, right = two.put(judged.cholesky(bad)), two.put(judged.cholesky(good))
        np.testing.assert_allclose((right + 1).get(), LOWER + 1)
        with pytest.raises(AccelError):
            (wrong + 1).get()


@pytest.mark.parametrize("late_s", [0.0, 2.0])
def test_a_context_killed_in_the_middle_runs_them_again(gpu: Device, late_s: float) -> None:
    a, x, y = gpu.put(BAD), gpu.put(GOOD), gpu.put(GOOD)
    pid = gpu.run(os.getpid).result(WAIT)
    early = judged.cholesky(x)
    early.result(WAIT)
    if late_s:
        gpu.ask(Late(late_s))
    root, well = judged.cholesky(a), judged.cholesky(x)
    behind = [root + k for k in range(FIFTY)]
    beside = [well + k for k in range(FIFTY)]
    written = blas.axpy(root, y, out=y)
    behind += [written, y + 1]
    os.kill(pid, signal.SIGKILL)
    later = [root @ behind[-1], early + beside[-1]]
    with pytest.raises(NotDefinite):
        root.result(WAIT)
    for ref in (*behind, later[0]):
        with pytest.raises(DependencyFailed):
            ref.result(WAIT)
    for k, ref in enumerate(beside):
        np.testing.assert_allclose(ref.get(), LOWER + k)
    np.testing.assert_allclose(later[1].get(), 2 * LOWER + FIFTY - 1)
    gpu.replace()
    np.testing.assert_allclose((early + beside[0]).get(), 2 * LOWER)
    with pytest.raises(DependencyFailed):
        (behind[0] + 1).result(WAIT)


def test_what_depends_on_it_says_so_after_a_loss(gpu: Device) -> None:
    """It was answered before, and what depends on it is run again."""
    a, x = gpu.put(BAD), gpu.put(GOOD)
    pid = gpu.run(os.getpid).result(WAIT)
    gpu.ask(Late(LATE_S))
    root = judged.cholesky(a)
    behind = [root + k for k in range(FIFTY)]
    for _ in range(FIFTY):
        behind.append(behind[-1] + x)
    with pytest.raises(NotDefinite):
        root.result(WAIT)
    os.kill(pid, signal.SIGKILL)
    for ref in behind:
        with pytest.raises(DependencyFailed) as caught:
            ref.result(WAIT)
        assert "Cholesky: the minor of order 2 is not positive" in str(caught.value)
        # Of a chain it names itself, what it needs that is gone, and the first one.
        assert str(caught.value).count("buffer") <= 3
    assert np.array_equal((x + 1).get(), GOOD + 1)


@pytest.mark.parametrize("late_s", [0.0, LATE_S])
def test_the_journal_replays_each(tmp_path: Path, late_s: float) -> None:
    with System(BACKEND, journal=tmp_path / "j.sqlite", results="digests") as lab:
        gpu = lab.devices[0]
        bad, good = gpu.put(BAD), gpu.put(GOOD)
        gpu.ask(Late(late_s))
        root, well = judged.cholesky(bad), judged.cholesky(good)
        depends(root + 1)
        (well + 1).result(WAIT)
        gpu.ping().result(WAIT)
    journal = Journal.open(tmp_path / "j.sqlite")
    with System(BACKEND, journal=None) as lab:
        report = journal.replay(lab)
        assert report.ok, report
        assert report.compared == 4, report
