"""Running a journal again."""

import ctypes
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, Device, System, array, blas, fft, jit, rng
from accel_lab.errors import ContextLost, InvalidArgument, JournalError, UserCodeError
from accel_lab.journal.entries.entry import Entry
from accel_lab.journal.journal import Journal
from accel_lab.journal.replay.replay import Replay, replay
from tests.conftest import require
from tests.journal.recording import Recording
from tests.project import ROOT

DOUBLE = """
__global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"""


def numbers(entries: list[Entry], name: str) -> list[int]:
    return [entry.number for entry in entries if entry.name == name]


@pytest.fixture(scope="module")
def source() -> Iterator[System]:
    """Open what is recorded, results and all."""
    with System("host", results="values", max_restarts=100) as lab:
        yield lab


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    """Open where it is replayed."""
    with System("host", max_restarts=100) as lab:
        yield lab


def program(gpu: Device) -> AccelRef:
    """Draw, upload, multiply, transform and double; the numbers of this are its own affair."""
    a = rng.uniform(gpu, (64, 64), seed=7)
    b = gpu.put(np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32))
    c = blas.gemm(a, b, alpha=0.5)
    kernel = jit.compile(gpu, DOUBLE, "twice")
    out = array.zeros(gpu, (64, 64), "float32")
    kernel(16, 256, (c, out, 64 * 64))
    blas.axpy(out, c, alpha=-1.0)
    spectrum = fft.r2c(out)
    del a, b
    return fft.c2r(spectrum)


def services(gpu: Device, at_call: int) -> None:
    """Have one call of the context's own Gemm give one element that is the next number."""

    def patch(at_call: int = at_call) -> None:
        from accel_lab.backends.host.blas import library as host

        right, calls = host.HostBlas.gemm, [0]

        def wrong(
            self: Any, m: Any, a: Any, b: Any, c: Any, out: Any, alpha: Any, beta: Any
        ) -> None:
            right(self, m, a, b, c, out, alpha, beta)
            calls[0] += 1
            if calls[0] == at_call:
                out.flat[5] = np.nextafter(out.flat[5], np.float32(np.inf))

        host.HostBlas.gemm = wrong  # type: ignore[method-assign]

    gpu.run(patch).result()


def test_a_seeded_program_replays_bit_for_bit(source: System, lab: System) -> None:
    require("compiler")
    record, again = Recording(source), Recording(lab)
    program(source.devices[0])
    report = replay(record, lab)
    assert (report.equal, report.within, report.differing) == (7, 0, [])
    assert (len(report.failed), len(report.not_run), report.uncompared) == (0, 0, 0)
    assert report.ok
    assert "7 results: 7 equal bit for bit" in str(report)
    names = [entry.name for entry in record if entry.kind == "message"]
    assert [e.name for e in again if e.kind == "message" and e.name != "Digest"] == names


def test_a_replay_goes_step_by_step_and_makes_the_same_numbers(source: System, lab: System) -> None:
    require("compiler")
    record = Recording(source)
    last = program(source.devices[0])
    value = source.devices[0].get(last).result()
    again = Replay(record, lab)
    names: list[str] = []
    compared: list[str] = []
    for done in again:
        assert done.what == ("left out" if done.entry.name == "Download" else "run")
        names.append(done.entry.name)
        if done.comparison is not None:
            assert done.comparison.entry is done.entry
            compared.append(done.comparison.verdict)
        if done.entry.name == "C2R":
            ref = again.buffer(done.entry)
            assert ref is not None
            np.testing.assert_array_equal(lab.devices[0].get(ref).result(), value)
    assert names == [entry.name for entry in record if entry.kind == "message"]
    assert compared == ["equal"] * 7
    assert again.report.equal == 7
    seen: list[str] = []
    replay(record, lab, on_step=lambda done: seen.append(done.entry.name))
    assert seen == names


def test_without_digests_nothing_is_compared(lab: System) -> None:
    with System("host") as plain:
        record = Recording(plain)
        blas.scal(rng.uniform(plain.devices[0], (4,), seed=1), 2.0).result()
        report = replay(record, lab)
    assert (report.run, report.compared, report.uncompared) == (2, 0, 2)


@pytest.mark.parametrize("kept", ["values", "digests"])
def test_one_ulp_in_one_operation_is_caught_at_that_entry(kept: Any) -> None:
    calls = 8
    with System("host", results=kept) as first:
        record = Recording(first)
        a = rng.uniform(first.devices[0], (16, 16), seed=3)
        for _ in range(calls):
            a = blas.gemm(a, a, alpha=0.1)
        entries = list(record)
    for at_call in (1, 3, calls):
        with System("host") as wrong:
            services(wrong.devices[0], at_call)
            report = replay(record, wrong)
        where = numbers(entries, "Gemm")[at_call - 1]
        found = report.first_difference
        assert found is not None
        assert found.entry.number == where
        assert [comparison.entry.number for comparison in report.begun] == [where]
        assert report.equal == at_call
        assert f"entry {where}, Gemm" in str(report)
        if kept == "digests":
            assert found.off is None
            continue
        assert found.recorded is not None
        assert found.replayed is not None
        assert (found.worst, found.elements, found.verdict) == ((0, 5), 1, "within tolerance")
        assert found.replayed[0, 5] == np.nextafter(found.recorded[0, 5], np.float32(np.inf))
        assert report.ok


def test_a_result_beyond_its_tolerance_is_told_with_both_values(source: System) -> None:
    record = Recording(source)
    rng.uniform(source.devices[0], (4,), seed=3).result()

    def patch() -> None:
        from accel_lab.backends.host.rng import library as host

        right = host.HostRng.uniform

        def wrong(self: Any, out: Any, *args: Any, **options: Any) -> None:
            right(self, out, *args, **options)
            out[2] = np.nextafter(out[2], np.float32(1))

        host.HostRng.uniform = wrong  # type: ignore[method-assign]

    with System("host") as other:
        other.devices[0].run(patch).result()
        report = replay(record, other)
    assert not report.ok
    assert report.first_divergence is not None
    assert report.first_divergence.worst == (2,)
    assert report.first_divergence.may == 0.0
    assert "was recorded" in str(report.first_divergence)
    assert "Uniform" in report._repr_html_()


def test_uploads_large_and_small_are_made_of_what_was_kept(lab: System) -> None:
    values = np.random.default_rng(2).standard_normal((1500, 1500))
    with System("host", results="digests") as first:
        record, gpu = Recording(first), first.devices[0]
        held = first.empty((300, 300), "float64")
        held[:] = 3
        refs = [array.copy(gpu.put(array_)) for array_ in (values, held, values[:1])]
        uploads = [entry for entry in record if entry.name == "Upload"]
    report = replay(record, lab)
    assert len(uploads) > 2  # one of them in parts
    assert report.equal == len(refs) + 2  # the copies, and two uploads that came whole
    assert not report.not_run


def test_what_was_not_kept_is_not_replayed_nor_what_depends_on_it(
    source: System, lab: System
) -> None:
    record, gpu = Recording(source), source.devices[0]
    x, y = rng.uniform(gpu, (4,), seed=1), rng.uniform(gpu, (4,), seed=2)
    part = array.slice(x, np.s_[:2])
    gpu.run(np.negative, x).result()
    refs = [blas.scal(ref, 2.0) for ref in (x, y, part)]
    report = replay(record, lab)
    reasons = {entry.number: why for entry, why in report.not_run}
    run, scaled = numbers(list(record), "Run")[0], numbers(list(record), "Scal")
    assert "pure=True" in reasons[run]
    assert reasons[scaled[0]].startswith("it depends on buffer")
    assert [number in reasons for number in scaled] == [True, False, True]
    assert len(refs) == 3
    assert report.failed == []


def test_a_checkpoint_gives_back_what_could_not_be_replayed(lab: System) -> None:
    with System("host", results="values", recover="replay") as first:
        record, gpu = Recording(first), first.devices[0]
        x = rng.uniform(gpu, (4,), seed=1)
        gpu.run(np.negative, x, x).result()
        gpu.checkpoint(x).result()
        blas.scal(x, 2.0).result()
        report = replay(record, lab)
    (scaled,) = numbers(list(record), "Scal")
    assert scaled not in [entry.number for entry, _ in report.not_run]
    assert report.ok
    assert report.equal == 2


def test_what_was_written_through_the_answer_of_a_function_is_no_difference(
    source: System, lab: System
) -> None:
    """The answer, a view of x, is not made, so x is not what it was; what it gave by then is."""
    record, gpu = Recording(source), source.devices[0]
    x, y = rng.uniform(gpu, (6,), seed=1), rng.uniform(gpu, (4,), seed=2)
    part = gpu.run(lambda x: x[2:], x, writes=())
    before = blas.scal(x, 2.0)
    array.copy(y, out=part)
    after = blas.scal(x, 2.0)
    report = replay(record, lab)
    reasons = {entry.number: why for entry, why in report.not_run}
    first, second = numbers(list(record), "Scal")
    assert report.ok, report
    assert first not in reasons
    assert "pure=True" in reasons[second]
    assert before.shape == after.shape


def test_a_checkpoint_of_an_answer_is_used_until_what_it_may_share_is_written(lab: System) -> None:
    with System("host", results="values", recover="replay") as first:
        record, gpu = Recording(first), first.devices[0]
        x, y = rng.uniform(gpu, (6,), seed=1), rng.uniform(gpu, (6,), seed=2)
        whole = gpu.run(lambda x: x[:], x, writes=())
        gpu.checkpoint(whole).result()
        refs = [blas.scal(whole, 2.0), blas.scal(x, 2.0)]
        array.copy(y, out=x)
        refs += [blas.scal(whole, 3.0), blas.scal(x, 3.0)]
        report = replay(record, lab)
    reasons = {entry.number: why for entry, why in report.not_run}
    scaled = numbers(list(record), "Scal")
    assert report.ok, report
    assert [number in reasons for number in scaled] == [False, False, True, False]
    assert "checkpoint" in reasons[scaled[2]]
    assert len(refs) == len(scaled)


def test_what_had_failed_is_not_run(source: System, lab: System) -> None:
    def wrong(x: Any) -> None:
        raise ValueError

    record, gpu = Recording(source), source.devices[0]
    x = rng.uniform(gpu, (4,), seed=1)
    with pytest.raises(UserCodeError):
        gpu.run(wrong, x, pure=True).result()
    blas.scal(x, 3.0).result()
    report = replay(record, lab)
    lab.check()
    assert report.had_failed == 1
    assert report.equal == 2


def test_a_lost_context_is_not_lost_again(source: System, lab: System) -> None:
    record, gpu = Recording(source), source.devices[0]
    rng.uniform(gpu, (4,), seed=1).result()
    with pytest.raises(ContextLost):
        source.inject("kill").result()
    source.ready()
    rng.uniform(gpu, (4,), seed=2).result()
    generation = lab.devices[0].generation
    report = replay(record, lab)
    assert lab.devices[0].generation == generation
    assert (report.run, report.had_failed) == (2, 1)
    assert report.ok


def test_what_a_crashed_function_had_written_went_with_its_context(lab: System) -> None:
    with System("host", recover="replay", results="digests") as source:
        record, gpu = Recording(source), source.devices[0]
        x = rng.uniform(gpu, (4,), seed=1)
        with pytest.raises(ContextLost):
            gpu.run(lambda _: ctypes.string_at(0), x).result()
        blas.scal(x, 3.0).result()
        report = replay(record, lab)
        assert (report.had_failed, report.not_run, report.equal) == (1, [], 2)
        assert report.ok


def test_what_was_made_again_after_a_loss_is_kept_though_nothing_names_it(lab: System) -> None:
    with System("host", recover="replay") as source:
        record, gpu = Recording(source), source.devices[0]
        x = rng.uniform(gpu, (4,), seed=1)
        with pytest.raises(ContextLost):
            source.inject("kill").result()
        source.ready()
        again = Replay(record, lab)
        again.run()
        (made,) = [entry for entry in record if entry.name == "Uniform"]
        found = again.buffer(made)
        assert found is not None
        np.testing.assert_array_equal(
            lab.devices[0].get(found).result(), gpu.get(x).result(), strict=True
        )


def test_buffers_inside_an_answer_are_operands_again(source: System, lab: System) -> None:
    record, gpu = Recording(source), source.devices[0]
    x = rng.uniform(gpu, (4,), seed=1)
    pair = gpu.run(lambda x: {"sum": x + 1, "more": [x * 2, "text"]}, x, pure=True).result()
    refs = [blas.scal(pair["sum"], 3.0), blas.scal(pair["more"][0], 3.0)]
    for part in ({}, {"from_": numbers(list(record), "Scal")[0]}):
        report = replay(record, lab, **part)  # type: ignore[arg-type]
        assert report.equal == len(refs) + (not part)
        assert report.not_run == []


def test_code_of_another_process_is_refused_before_anything_runs(
    source: System, lab: System
) -> None:
    record, again, gpu = Recording(source), Recording(lab), source.devices[0]
    gpu.run(np.negative, rng.uniform(gpu, (4,), seed=1), pure=True).result()
    record.own = set()
    with pytest.raises(JournalError, match="allow_code=True"):
        replay(record, lab)
    assert [entry for entry in again if entry.kind == "message"] == []
    assert replay(record, lab, allow_code=True).equal == 2


def test_code_in_a_file_of_another_process_runs_only_if_allowed(
    lab: System, tmp_path: Path
) -> None:
    path = tmp_path / "theirs.journal"
    program = f"""
from accel_lab import System, rng
with System("host", journal={str(path)!r}, results="digests") as lab:
    x = rng.uniform(lab.devices[0], (4,), seed=1)
    lab.devices[0].run(lambda x: -x, x, pure=True).result()
    lab.flush()
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, timeout=120)
    record, again = Journal.open(path), Recording(lab)
    with pytest.raises(JournalError, match="allow_code=True") as caught:
        record.replay(lab)
    assert "Run" in str(caught.value)
    assert [entry for entry in again if entry.kind == "message"] == []
    report = record.replay(lab, allow_code=True)
    assert (report.run, report.failed, report.not_run) == (2, [], [])
    assert report.equal >= 1  # that process may have ended before it had a digest of the other


def test_a_part_brings_what_it_needs_from_before_and_nothing_else(
    source: System, lab: System
) -> None:
    record, gpu = Recording(source), source.devices[0]
    x, other = rng.uniform(gpu, (8, 8), seed=1), rng.uniform(gpu, (8, 8), seed=2)
    blas.scal(x, 2.0, out=x)
    blas.scal(other, 2.0, out=other)
    y = blas.gemm(x, x)
    blas.gemm(y, x).result()
    gemm = [entry for entry in record if entry.name == "Gemm"]
    again = Recording(lab)
    report = replay(record, lab, from_=gemm[1])
    names = [entry.name for entry in again if entry.kind == "message" and entry.name != "Digest"]
    assert names == ["Uniform", "Scal", "Gemm", "Gemm"]
    assert (report.run, report.before, report.equal) == (4, 3, 1)
    report = replay(record, lab, from_=gemm[0].number, to=gemm[1])
    assert (report.run, report.before, report.equal) == (3, 2, 1)


def test_an_entry_that_is_not_there_is_refused(source: System, lab: System) -> None:
    record = Recording(source)
    source.devices[0].ping().result()
    ping = next(entry for entry in record if entry.name == "Ping")
    with pytest.raises(JournalError, match="not in the part"):
        replay(Recording(lab), lab, from_=ping)
    entries = [*record]
    for beyond in (10**9, len(entries) + 1, -len(entries) - 1):
        with pytest.raises(JournalError, match=f"no entry {beyond} in a journal of "):
            replay(record, lab, from_=beyond)
        with pytest.raises(JournalError, match=f"no entry {beyond} in a journal of "):
            replay(record, lab, to=beyond)
    report = replay(record, lab, from_=np.int64(-len(entries)), to=len(entries))
    assert sum(report.skipped.values()) == replay(record, lab).skipped.total() > 0


@pytest.mark.parametrize("other", [3, None, System], ids=str)
def test_what_is_no_system_runs_no_journal(source: System, other: Any) -> None:
    with pytest.raises(InvalidArgument, match="is replayed on a System, not on"):
        source.journal.replay(other)


def test_memory_is_freed_where_the_record_frees_it() -> None:
    with System("host") as first:
        record = Recording(first)
        for seed in range(20):
            rng.uniform(first.devices[0], (1 << 20,), seed=seed).result()
        first.devices[0].ping().result()
        list(record)
    with System("host", memory_bytes=24 << 20, spill=False) as small:
        report = replay(record, small)
    assert report.failed == []
    assert report.run == 20


def test_a_fault_of_the_replay_is_told() -> None:
    with System("host") as first:
        record, gpu = Recording(first), first.devices[0]
        x = rng.uniform(gpu, (4,), seed=1)
        y = gpu.run(np.negative, x, pure=True)
        blas.scal(y, 2.0).result()
        list(record)

    def patch() -> None:
        from accel_lab.backends.host.rng import library as host

        def crash(*_: Any, **__: Any) -> None:
            ctypes.string_at(0)

        host.HostRng.uniform = crash  # type: ignore[method-assign]

    with System("host", recover="stale") as other:
        other.devices[0].run(patch).result()
        report = replay(record, other)
        assert other.ready().devices[0].generation == 2
    assert not report.ok
    assert report.failed[0][0].name == "Uniform"
    assert isinstance(report.failed[0][1], ContextLost)
    assert "failed now" in str(report)
