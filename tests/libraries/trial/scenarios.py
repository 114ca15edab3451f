"""Messages with several results, in a copy of the project that has the library `trial`."""

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accel_lab.libraries.trial import SVD, SVDParts

from accel_lab import System
from accel_lab.compute.device import Device
from accel_lab.compute.events.samples import MemorySampled
from accel_lab.compute.residency.resident import ResidentBuffer
from accel_lab.errors import (
    Cancelled,
    DependencyFailed,
    InvalidArgument,
    LibraryError,
    OutOfMemory,
    StaleRef,
)
from accel_lab.journal.journal import Journal
from accel_lab.libraries import array, trial

BACKEND = os.environ.get("TRIAL_BACKEND", "host")
WAIT = 60
A = np.random.default_rng(7).standard_normal((6, 4))


@pytest.fixture
def lab() -> Iterator[System]:
    with System(BACKEND) as system:
        yield system


@pytest.fixture
def gpu(lab: System) -> Device:
    return lab.devices[0]


def ids(lab: System) -> set[int]:
    """Return the buffers that take memory, once that is the same for half a second."""
    found: set[int] = set()
    still = 0
    while still < 10:
        time.sleep(0.05)  # frees go with the next message
        lab.devices[0].ping().result(WAIT)
        for sample in lab.look(memory=True, work=False):
            if isinstance(sample, MemorySampled):
                now = {id_ for block in sample.blocks for id_ in block.ids}
                found, still = now, still + 1 if now == found else 0
    return found


def owners(lab: System, wanted: set[int]) -> dict[int, str]:
    """Return what views call the owners of these buffers, without the messages' numbers."""
    found: dict[int, str] = {}
    for _ in range(WAIT):
        lab.devices[0].ping().result(WAIT)
        for sample in lab.look(memory=True, work=False):
            if isinstance(sample, MemorySampled):
                for block in sample.blocks:
                    found[block.ids[0]] = re.sub(r" #\d+", "", block.owner)
        if found.keys() >= wanted:
            break
        time.sleep(0.05)  # a look does not wait for all that is to be seen
    return {id_: found.get(id_, "") for id_ in wanted}


def product(parts: SVDParts) -> Any:
    u, s, vt = (part.get() for part in parts if part is not None)
    return (u * s) @ vt


def test_each_result_is_a_handle_before_it_exists(gpu: Device) -> None:
    u, s, vt = trial.svd(gpu.put(A))
    assert (u.shape, s.shape, vt.shape) == ((6, 4), (4,), (4, 4))
    assert u.id + 1 == s.id == vt.id - 1
    np.testing.assert_allclose((u * s) @ vt, A, atol=1e-12)
    np.testing.assert_allclose(s.get(), np.linalg.svd(A, compute_uv=False), rtol=1e-12)


def test_what_is_not_asked_for_is_none(gpu: Device) -> None:
    u, s, vt = trial.svd(gpu.put(A), vectors=False)
    assert u is None
    assert vt is None
    np.testing.assert_allclose(s.get(), np.linalg.svd(A, compute_uv=False), rtol=1e-12)


def test_results_of_what_has_no_shape_yet(gpu: Device) -> None:
    """Of unknown operands, and of a length that only the device knows."""
    x = np.array([3.0, 1.0, 3.0, -2.0, 1.0, 3.0])
    chosen = trial.positive(gpu.put(x))
    values, counts = trial.unique(chosen)
    assert not values.known
    doubled = values * 2
    assert counts.shape == (2,)
    np.testing.assert_array_equal(values.get(), [1, 3])
    np.testing.assert_array_equal(counts.get(), [2, 3])
    np.testing.assert_array_equal(doubled.get(), [2, 6])
    u, s, vt = trial.svd(trial.positive(gpu.put(np.abs(x))).reshape(2, 3))
    np.testing.assert_allclose((u * s) @ vt, np.abs(x).reshape(2, 3), atol=1e-12)


def test_a_partial_spec_may_tell_all(gpu: Device) -> None:
    counted = trial.count(gpu.put(np.ones((2, 3))))
    assert counted.shape == ()
    assert gpu.get(counted).result(WAIT) == 6


def test_a_misfit_of_what_was_unknown_is_the_results_error(gpu: Device) -> None:
    gpu.run(time.sleep, 0.5)  # so that it is not known by the next line
    u, s, vt = trial.svd(trial.positive(gpu.put(np.ones(4))))
    behind = s * 2
    for ref in (u, s, vt):
        with pytest.raises(InvalidArgument, match="SVD takes a matrix"):
            ref.result(WAIT)
    with pytest.raises(DependencyFailed):
        behind.result(WAIT)
    with pytest.raises(InvalidArgument, match="SVD takes a matrix"):
        _ = u.shape


def test_such_a_misfit_is_refused_before_work_that_blocks(gpu: Device) -> None:
    gpu.run(time.sleep, 0.5)  # so that the shape is not known by the next line
    counted = trial.count(trial.positive(gpu.put(np.ones(4))))
    with pytest.raises(InvalidArgument, match="Count takes a matrix"):
        counted.result(WAIT)


def test_out_is_a_tuple_too(gpu: Device) -> None:
    a, first = gpu.put(A), trial.svd(gpu.put(A))
    second = trial.svd(a * 2, out=first)
    assert [ref.id for ref in second] == [ref.id for ref in first]
    np.testing.assert_allclose(product(second), 2 * A, atol=1e-12)
    np.testing.assert_allclose(product(first), 2 * A, atol=1e-12)
    with pytest.raises(InvalidArgument, match="SVDParts"):
        trial.svd(a, out=(first.u, first.s, first.vt))


def test_they_fail_together_and_are_told_of_once(lab: System, gpu: Device) -> None:
    u, s, vt = trial.svd(gpu.put(np.full((3, 3), np.nan)))
    if BACKEND == "cuda":  # cuSOLVER goes on with NaN
        return
    behind = [u @ vt, s + 1]
    for ref in (u, s, vt):
        with pytest.raises(LibraryError):
            ref.result(WAIT)
    for ref in behind:
        with pytest.raises(DependencyFailed):
            ref.result(WAIT)
    trial.svd(gpu.put(np.full((3, 3), np.nan)))
    gpu.ping().result(WAIT)
    with pytest.raises(LibraryError):
        lab.check()
    lab.check()


def test_one_that_is_dropped_early_is_freed(lab: System, gpu: Device) -> None:
    a = gpu.put(np.ones((256, 256)))
    a.result(WAIT)
    s = trial.svd(a).s
    assert ids(lab) == {a.id, s.id}


def test_views_call_each_by_its_name(lab: System, gpu: Device) -> None:
    """Also what the backend made, and after a fault."""
    u, s, vt = trial.svd(gpu.put(A))
    values, counts = trial.unique(s)
    names = {u.id: "SVD.u", s.id: "SVD.s", vt.id: "SVD.vt"}
    names |= {values.id: "Unique.values", counts.id: "Unique.counts"}
    counts.result(WAIT)
    assert owners(lab, set(names)) == names
    lines = [one for one in gpu.resident if isinstance(one, ResidentBuffer) and u.id in one.ids]
    assert [one.made_by.partition(".")[2] for one in lines] == ["u"]
    gpu.replace()
    gpu.ping().result(WAIT)
    assert owners(lab, set(names)) == names


def test_who_fills_memory_is_told_by_its_name() -> None:
    with System(BACKEND, memory_bytes=1 << 20, spill=False) as lab:
        gpu = lab.devices[0]
        parts = trial.svd(gpu.put(np.ones((200, 200))))
        parts.s.result(WAIT)
        with pytest.raises(OutOfMemory) as caught:
            array.zeros(gpu, (1 << 20,), "float64").result(WAIT)
    assert any(re.fullmatch(r"SVD #\d+\.vt", owner) for owner, _ in caught.value.owners)


def test_a_fault_brings_each_back(lab: System, gpu: Device) -> None:
    a = gpu.put(A)
    u, s, vt = trial.svd(a)
    scaled = u * s
    only = trial.svd(a * 3).s
    u2, s2, vt2 = trial.svd(a * 2)
    u2 += 1  # a write to one of the results
    u2.result(WAIT)
    generation = gpu.generation
    gpu.replace()
    np.testing.assert_allclose((scaled @ vt).get(), A, atol=1e-12)
    np.testing.assert_allclose(only.get(), 3 * np.linalg.svd(A, compute_uv=False), rtol=1e-12)
    np.testing.assert_allclose(((u2 - 1) * s2) @ vt2, 2 * A, atol=1e-12)
    np.testing.assert_allclose((u * s) @ vt, A, atol=1e-12)
    assert gpu.generation == generation + 1
    held = ids(lab)
    assert held >= {u.id, s.id, vt.id, only.id}
    assert only.id - 1 not in held


def test_what_was_in_flight_is_run_again(lab: System, gpu: Device) -> None:
    a = gpu.put(A)
    a.result(WAIT)
    parts = [trial.svd(a * float(k)) for k in range(1, 30)]
    os.kill(gpu.run(os.getpid).result(WAIT), signal.SIGKILL)
    parts += [trial.svd(a * float(k)) for k in range(30, 60)]
    for k, one in enumerate(parts, 1):
        np.testing.assert_allclose(product(one), k * A, atol=1e-10)


def test_the_journal_replays_each(tmp_path: Path) -> None:
    with System(BACKEND, journal=tmp_path / "j.sqlite", results="digests") as lab:
        gpu = lab.devices[0]
        a = gpu.put(A)
        u, s, vt = trial.svd(a)
        (u * s).result(WAIT)
        trial.svd(a, vectors=False).s.result(WAIT)
        trial.svd(a * 2, out=SVDParts(u, s, vt)).s.result(WAIT)
        trial.unique(s).counts.result(WAIT)
        gpu.ping().result(WAIT)
    journal = Journal.open(tmp_path / "j.sqlite")
    with System(BACKEND, journal=None) as lab:
        entries = [entry for entry in journal if entry.name in ("SVD", "Unique")]
        texts = [*map(str, entries)]
        makes = r"-> #(\d+) float64\[6, 4\], #(\d+) float64\[4\], #(\d+) float64\[4, 4\]$"
        assert [[int(id_) for id_ in found] for found in re.findall(makes, texts[0])] == [
            [u.id, s.id, vt.id]
        ]
        assert re.search(r"-> #\d+ float64\[4\]$", texts[1])
        assert "out=" in texts[2]
        assert "->" not in texts[2]
        assert re.search(r"-> #\d+, #\d+$", texts[3])
        assert sorted(entries[0].digests) == sorted(entries[0].makes)
        report = journal.replay(lab)
        assert report.ok, report
        assert report.uncompared == 0
        assert report.compared == 1 + 3 + 1 + 1 + 1 + 3 + 2  # with a, u * s and a * 2


def test_a_cancelled_one_fails_each(gpu: Device) -> None:
    a = gpu.put(np.ones((400, 400)))
    parts = [trial.svd(a) for _ in range(20)]
    last = parts[-1]
    last.s.cancel()
    behind = last.u.T
    for ref in last:
        with pytest.raises(Cancelled):
            ref.result(WAIT)
    with pytest.raises((DependencyFailed, StaleRef)):
        behind.result(WAIT)
    parts[0].s.result(WAIT)


def test_it_reads_as_what_it_makes(gpu: Device) -> None:
    message = SVD(gpu.put(A))
    assert "float64[6, 4], float64[4], float64[4, 4]" in message._repr_html_()


def test_a_suspended_device_keeps_them(gpu: Device) -> None:
    u, s, vt = trial.svd(gpu.put(A))
    gpu.suspend()
    queued = trial.svd(gpu.put(A * 2))
    np.testing.assert_allclose((u * s) @ vt, A, atol=1e-12)
    np.testing.assert_allclose(product(queued), 2 * A, atol=1e-12)


def test_a_loop_that_runs_ahead_lets_go(lab: System, gpu: Device) -> None:
    a = gpu.put(np.ones((64, 64)))
    kept = []
    for k in range(600):
        parts = trial.svd(a)
        if k % 100 == 0:
            kept.append(parts)
    del parts
    assert len(ids(lab)) == 1 + 3 * len(kept)
    for parts in kept:
        np.testing.assert_allclose(product(parts), np.ones((64, 64)), atol=1e-12)
