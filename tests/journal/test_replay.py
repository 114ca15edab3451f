"""Running a journal again."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, Device, System, array, blas, fft, jit, rng
from accel_lab.errors import ContextLost, JournalError, UserCodeError
from accel_lab.journal.entry import Entry
from accel_lab.journal.replay import Replay, replay
from tests.conftest import require
from tests.journal.recording import Recording

DOUBLE = """
__global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"""


def numbers(entries: list[Entry], name: str) -> list[int]:
    return [entry.number for entry in entries if entry.name == name]


def program(gpu: Device, note: Callable[[AccelRef], AccelRef] = lambda ref: ref) -> AccelRef:
    """Draw, upload, multiply, transform and double; the numbers of this are its own affair."""
    a = note(rng.uniform(gpu, (64, 64), seed=7))
    b = gpu.put(np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32))
    c = note(blas.gemm(a, b, alpha=0.5))
    kernel = jit.compile(gpu, DOUBLE, "twice")
    out = note(array.zeros(gpu, (64, 64), "float32"))
    kernel(16, 256, (c, out, 64 * 64))
    note(blas.axpy(out, c, alpha=-1.0))
    spectrum = note(fft.r2c(out))
    del a, b
    return note(fft.c2r(spectrum))


def recorded(*, note: bool = True) -> tuple[Recording, np.ndarray[Any, Any]]:
    with System("host") as lab:
        record = Recording(lab)
        keep = record.result if note else lambda ref: ref
        last = program(lab.devices[0], keep)
        value = lab.devices[0].get(last).result()
        list(record)
    return record, value


def plant(gpu: Device, at_call: int) -> None:
    """Have one call of the context's own Gemm give one element that is the next number."""

    def patch(at_call: int = at_call) -> None:
        from accel_lab.backends.host import blas as host

        right, calls = host.HostBlas.gemm, [0]

        def wrong(self: Any, a: Any, b: Any, c: Any, out: Any, **options: Any) -> None:
            right(self, a, b, c, out, **options)
            calls[0] += 1
            if calls[0] == at_call:
                out.flat[5] = np.nextafter(out.flat[5], np.float32(np.inf))

        host.HostBlas.gemm = wrong  # type: ignore[method-assign]

    gpu.run(patch).result()


def test_a_seeded_program_replays_bit_for_bit() -> None:
    require("compiler")
    record, value = recorded()
    with System("host") as lab:
        again = Recording(lab)
        report = replay(record, lab)
        made = [entry for entry in again if entry.name == "C2R"]
    assert (report.equal, report.within, report.differing) == (6, 0, [])
    assert report.ok
    assert (len(report.failed), len(report.not_run)) == (0, 0)
    assert report.skipped["Download"] == 7
    assert len(made) == 1
    assert "6 results: 6 equal bit for bit" in str(report)
    assert value.shape == (64, 64)


def test_the_same_numbers_come_out_of_a_replay_as_came_out_of_the_program() -> None:
    require("compiler")
    record, value = recorded(note=False)
    with System("host") as lab:
        steps = Replay(record, lab)
        made = next(step.entry for step in steps if step.entry.name == "C2R")
        ref = steps.buffer(made)
        assert ref is not None
        np.testing.assert_array_equal(lab.devices[0].get(ref).result(), value)
        report = steps.run()
    assert report.compared == 0
    assert report.uncompared > 0


@pytest.mark.parametrize("kept", ["values", "digests"])
@pytest.mark.parametrize("at_call", [1, 3, 8])
def test_one_ulp_in_one_operation_is_caught_at_that_entry(at_call: int, kept: str) -> None:
    values = kept == "values"
    with System("host") as lab:
        record = Recording(lab)
        gpu = lab.devices[0]
        a = record.result(rng.uniform(gpu, (16, 16), seed=3), values=values)
        for _ in range(8):
            a = record.result(blas.gemm(a, a, alpha=0.1), values=values)
        entries = list(record)
    with System("host") as lab:
        plant(lab.devices[0], at_call)
        report = replay(record, lab)
    where = numbers(entries, "Gemm")[at_call - 1]
    assert report.first_difference is not None
    assert report.first_difference.entry.number == where
    assert [comparison.entry.number for comparison in report.begun] == [where]
    assert report.equal == at_call
    assert f"entry {where}, Gemm" in str(report)
    if not values:
        assert report.first_difference.off is None
        return
    was, now = report.first_difference.recorded, report.first_difference.replayed
    assert was is not None
    assert now is not None
    assert report.first_difference.worst == (0, 5)
    assert report.first_difference.elements == 1
    assert now[0, 5] == np.nextafter(was[0, 5], np.float32(np.inf))
    assert report.first_difference.verdict == "within tolerance"
    assert report.ok


def test_a_result_beyond_its_tolerance_is_told_with_both_values() -> None:
    with System("host") as lab:
        record = Recording(lab)
        record.result(rng.uniform(lab.devices[0], (4,), seed=3))
        list(record)
    with System("host") as lab:

        def patch() -> None:
            from accel_lab.backends.host import rng as host

            right = host.HostRng.uniform

            def wrong(self: Any, out: Any, *args: Any, **options: Any) -> None:
                right(self, out, *args, **options)
                out[2] = np.nextafter(out[2], np.float32(1))

            host.HostRng.uniform = wrong  # type: ignore[method-assign]

        lab.devices[0].run(patch).result()
        report = replay(record, lab)
    assert not report.ok
    assert report.first_divergence is not None
    assert report.first_divergence.worst == (2,)
    assert report.first_divergence.may == 0.0
    assert "was recorded" in str(report.first_divergence)
    assert "Uniform" in report._repr_html_()


def test_uploads_large_and_small_are_made_of_what_was_kept() -> None:
    source = np.random.default_rng(2).standard_normal((1500, 1500))
    with System("host") as lab:
        record = Recording(lab)
        gpu = lab.devices[0]
        held = lab.empty((300, 300), "float64")
        held[:] = 3
        record.result(array.copy(gpu.put(source)))
        record.result(array.copy(gpu.put(held)))
        record.result(array.copy(gpu.put(source[:3])))
        list(record)
    with System("host") as lab:
        report = replay(record, lab)
    assert report.equal == 3
    assert not report.not_run


def test_what_was_not_kept_is_not_replayed_nor_what_depends_on_it() -> None:
    with System("host") as lab:
        record = Recording(lab)
        gpu = lab.devices[0]
        x, y = rng.uniform(gpu, (4,), seed=1), rng.uniform(gpu, (4,), seed=2)
        gpu.run(np.negative, x).result()
        blas.scal(x, 2.0)
        record.result(blas.scal(y, 2.0))
        part = (
            array.slice(x, (slice(0, 2),)) if hasattr(array, "slice") else array.reshape(x, (2, 2))
        )
        blas.scal(part, 2.0).result()
        entries = list(record)
    with System("host") as lab:
        report = replay(record, lab)
    reasons = {entry.number: why for entry, why in report.not_run}
    run, (first, second, third) = numbers(entries, "Run")[0], numbers(entries, "Scal")
    assert "pure=True" in reasons[run]
    assert reasons[first].startswith("it depends on buffer")
    assert third in reasons
    assert second not in reasons
    assert report.equal == 1
    assert report.failed == []


def test_what_had_failed_is_not_run() -> None:
    def wrong(x: Any) -> None:
        raise ValueError

    with System("host") as lab:
        record = Recording(lab)
        gpu = lab.devices[0]
        x = rng.uniform(gpu, (4,), seed=1)
        with pytest.raises(UserCodeError):
            gpu.run(wrong, x, pure=True).result()
        record.result(blas.scal(x, 3.0))
        list(record)
    with System("host") as lab:
        report = replay(record, lab)
        lab.check()
    assert report.had_failed == 1
    assert report.equal == 1


def test_a_lost_context_is_not_lost_again() -> None:
    with System("host") as lab:
        record = Recording(lab)
        gpu = lab.devices[0]
        rng.uniform(gpu, (4,), seed=1).result()
        with pytest.raises(ContextLost):
            lab.inject("kill").result()
        lab.ready()
        record.result(rng.uniform(gpu, (4,), seed=2))
        list(record)
    with System("host") as lab:
        report = replay(record, lab)
        assert lab.devices[0].generation == 1
    assert report.equal == 1
    assert report.had_failed == 1


def test_buffers_inside_an_answer_are_operands_again() -> None:
    with System("host") as lab:
        record = Recording(lab)
        gpu = lab.devices[0]
        x = rng.uniform(gpu, (4,), seed=1)
        pair = gpu.run(lambda x: {"sum": x + 1, "more": [x * 2, "text"]}, x, pure=True).result()
        record.result(blas.scal(pair["sum"], 3.0))
        record.result(blas.scal(pair["more"][0], 3.0))
        list(record)
    with System("host") as lab:
        report = replay(record, lab)
    assert report.equal == 2
    assert report.not_run == []


def test_code_of_another_process_is_refused_before_anything_runs() -> None:
    with System("host") as lab:
        record = Recording(lab)
        gpu = lab.devices[0]
        record.result(gpu.run(np.negative, rng.uniform(gpu, (4,), seed=1), pure=True))
        list(record)
    record.own = set()
    with System("host") as lab:
        again = Recording(lab)
        with pytest.raises(JournalError, match="allow_code=True"):
            replay(record, lab)
        assert list(again) == []
        assert replay(record, lab, allow_code=True).equal == 1


def test_a_part_brings_what_it_needs_from_before_and_nothing_else() -> None:
    with System("host") as lab:
        record = Recording(lab)
        gpu = lab.devices[0]
        x, other = rng.uniform(gpu, (8, 8), seed=1), rng.uniform(gpu, (8, 8), seed=2)
        blas.scal(x, 2.0, out=x)
        blas.scal(other, 2.0, out=other)
        y = record.result(blas.gemm(x, x))
        record.result(blas.gemm(y, x))
        entries = list(record)
    gemm = [entry for entry in entries if entry.name == "Gemm"]
    with System("host") as lab:
        again = Recording(lab)
        report = replay(record, lab, from_=gemm[1])
        names = [entry.name for entry in again if entry.kind == "message"]
        assert (report.before, report.equal) == (3, 1)
        assert [name for name in names if name != "Download"] == ["Uniform", "Scal", "Gemm", "Gemm"]
        report = replay(record, lab, to=gemm[1])
        assert (report.before, report.equal) == (0, 1)


def test_a_replay_goes_step_by_step() -> None:
    require("compiler")
    record, _ = recorded()
    with System("host") as lab:
        steps = [step for step in Replay(record, lab) if step.what == "run"]
        names = [step.entry.name for step in steps]
        compared = [step for step in steps if step.comparison is not None]
        seen: list[str] = []
        report = replay(record, lab, on_step=lambda step: seen.append(step.entry.name))
    assert names[:3] == ["Uniform", "Put", "Gemm"]
    assert len(compared) == 6
    assert all(step.comparison and step.comparison.verdict == "equal" for step in compared)
    assert [name for name in seen if name in names] == names
    assert report.equal == 6


def test_memory_is_freed_where_the_record_frees_it() -> None:
    with System("host") as lab:
        record = Recording(lab)
        gpu = lab.devices[0]
        for seed in range(20):
            rng.uniform(gpu, (1 << 20,), seed=seed).result()
        gpu.ping().result()
        list(record)
    with System("host", memory_bytes=24 << 20) as lab:
        report = replay(record, lab)
    assert report.failed == []
    assert report.run == 20


def test_a_fault_of_the_replay_is_told_and_ends_nothing_else() -> None:
    with System("host") as lab:
        record = Recording(lab)
        gpu = lab.devices[0]
        gpu.run(lambda: None, pure=True).result()
        x = rng.uniform(gpu, (4,), seed=1)
        gpu.run(np.negative, x, pure=True).result()
        list(record)
    with System("host") as lab:

        def patch() -> None:
            from accel_lab.backends.host import rng as host

            def crash(*_: Any, **__: Any) -> None:
                ctypes.string_at(0)

            host.HostRng.uniform = crash  # type: ignore[method-assign]

        lab.devices[0].run(patch).result()
        report = replay(record, lab)
    assert not report.ok
    assert report.failed[0][0].name == "Uniform"
    assert isinstance(report.failed[0][1], ContextLost)
