"""CUPTI's records joined to messages, by a package that stands in for `cupti-python`."""

import json
import sys
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from accel_lab import System, array, blas, views
from accel_lab.backends.cuda import activity
from accel_lab.backends.cuda.activity import CuptiActivity
from accel_lab.compute.events.device_work import DeviceWork
from accel_lab.compute.output import cell_origin
from accel_lab.compute.output.cell_origin import Origin
from accel_lab.compute.supervision.device_records import DeviceRecords, Done, Profile
from accel_lab.compute.wire.side_channel import Recorded
from accel_lab.errors import ContextLost, InvalidArgument, TelemetryUnavailable
from tests.compute.tracing.packages.cupti import cupti

WAIT_S = 60.0


def test_each_kernel_has_its_message_and_its_cell(
    told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.time()
    with System("recorded", 2, trace=("cupti", "nvtx")) as lab:
        first, second = lab.devices
        monkeypatch.setattr(cell_origin, "_current", Origin(4))
        x = first.put(np.ones((4, 4)))
        out = blas.gemm(x, x)
        monkeypatch.setattr(cell_origin, "_current", Origin(7))
        array.exp(out)
        y = second.put(np.ones((4, 4)))
        array.exp(y)
        done = lab.profile(timeout_s=WAIT_S).done
        sent = {device.name: device.requests.queue.last for device in lab.devices}
        for device in lab.devices:
            mine = [one for one in done if one.device == device.name]
            # Each message of this made-up card is a kernel that is named for it.
            assert sorted(one.work.seq for one in mine) == list(range(1, sent[device.name] + 1))
            assert all(one.work.name == f"kernel of {one.work.seq}" for one in mine)
        assert [one.cell for one in done if one.device == "cpu0"] == [4, 4, 7]
        assert {one.cell for one in done if one.device == "cpu1"} == {7}
        assert all(one.work.duration_ns == 1000 for one in done)
        assert all(began - 1 < one.work.start < time.time() + 1 for one in done)
        assert [one.work.end for one in done] == sorted(one.work.end for one in done)
        assert lab.profile(timeout_s=WAIT_S).done == done  # each is recorded once
        array.exp(y)
        assert len(lab.profile(timeout_s=WAIT_S).done) == len(done) + 1
        if find_spec("duckdb") is not None and find_spec("pandas") is not None:
            rows = lab.sql(
                "select device, cell, count(*) n from kernels group by all order by 1, 2"
            )
            assert rows.values.tolist() == [["cpu0", 4, 2], ["cpu0", 7, 1], ["cpu1", 7, 3]]
            (wide,) = lab.sql("select distinct grid, block, nbytes from kernels").values.tolist()
            assert wide[:2] == ["4x2x1", "32x1x1"]


def test_many_records_come_whole(told: Path) -> None:
    """More than one packet of the side channel holds."""
    with System("recorded", 1, trace="cupti") as lab:
        x = lab.devices[0].put(np.ones(4))
        for _ in range(2_000):
            array.exp(x)
        profile = lab.profile(timeout_s=WAIT_S)
    assert [one.work.seq for one in profile.done] == list(range(1, 2_002))
    assert repr(profile) == "<Profile of 2001 records>"


def test_a_lost_context_takes_what_it_had_not_told_and_the_next_is_recorded(told: Path) -> None:
    with System("recorded", 1, trace="cupti") as lab:
        x = lab.devices[0].put(np.ones(4))
        before = lab.profile(timeout_s=WAIT_S)
        assert (len(before.done), before.losses) == (1, 0)
        with pytest.raises(ContextLost):
            lab.inject("kill").result(WAIT_S)
        array.exp(x).result(WAIT_S)
        after = lab.profile(timeout_s=WAIT_S)
        last = lab.devices[0].requests.queue.last
        assert after.losses == 1
        assert after.done[0] == before.done[0]
        assert after.done[-1].work.seq == last
        lab.devices[0]._supervisor.process.kill()  # type: ignore[union-attr]
        lab.profile(timeout_s=WAIT_S)  # it is answered, whether by the old or the new one


def test_a_late_answer_is_kept_and_ends_no_later_question() -> None:
    asked: list[Any] = []

    def ask(packet: Any) -> bool:
        asked.append(packet)
        return True

    records = DeviceRecords("gpu0", ask, {2: 9}.get)
    with pytest.raises(TimeoutError, match="gpu0 tells no records"):
        records.take(0.01)
    work = DeviceWork(2, "k", "kernel", 7, 1.0, 2.0, 1_000_000_000)
    records.heard(Recorded(asked[0].number, [work], 0, last=True))
    with pytest.raises(TimeoutError):
        records.take(0.01)
    records.heard(Recorded(asked[0].number, [], 0, last=True))
    answer = threading.Timer(
        0.05, lambda: records.heard(Recorded(asked[-1].number, [work], 3, last=True))
    )
    answer.start()
    assert records.take(WAIT_S) == Profile((Done("gpu0", 9, work),) * 2, 3, 0)
    failing = threading.Timer(
        0.05, lambda: records.heard(Recorded(asked[-1].number, [], 0, last=True, why="no leave"))
    )
    failing.start()
    with pytest.raises(TelemetryUnavailable, match="gpu0: no leave"):
        records.take(WAIT_S)


def test_a_device_that_is_recorded_is_not_suspended(told: Path) -> None:
    refused = pytest.raises(InvalidArgument, match="that CUPTI records cannot be suspended")
    with System("recorded", 1, trace="cupti") as lab, refused:
        lab.suspend()
    with pytest.raises(InvalidArgument, match="suspend_after_s is 5: a device that CUPTI"):
        System("recorded", 1, trace="cupti", suspend_after_s=5.0)
    with System("recorded", 1, trace="nvtx") as lab:
        assert lab.suspend()[0].lost == ()


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[CuptiActivity]:
    package = ModuleType("cupti")
    package.cupti = cupti  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupti", package)
    cupti.waiting.clear()
    yield CuptiActivity()
    cupti.waiting.clear()


def given(recorder: CuptiActivity, *records: Any) -> list[tuple[int, str, str, int]]:
    cupti.waiting.extend(records[::-1])  # they come in this order
    works, _ = recorder.take()
    return [(one.seq, one.name, one.kind, one.duration_ns) for one in works]


def test_a_call_s_message_is_found_whichever_record_comes_first(recorder: CuptiActivity) -> None:
    assert given(
        recorder,
        cupti.kernel(1, 100, 250, "early"),
        cupti.correlated(1, 11),
        cupti.correlated(2, 12),
        cupti.kernel(2, 300, 301, "late"),
        cupti.kernel(2, 302, 304, "of the same graph"),
        cupti.kernel(3, 305, 306, "nobody's"),
        cupti.correlated(4, 14, cupti.ExternalCorrelationKind.CUSTOM1),
        cupti.kernel(4, 307, 308, "another tool's"),
    ) == [
        (11, "early", "kernel", 150),
        (12, "late", "kernel", 1),
        (12, "of the same graph", "kernel", 2),
        (0, "nobody's", "kernel", 1),
        (0, "another tool's", "kernel", 1),
    ]
    assert given(recorder, cupti.kernel(2, 400, 401)) == [(12, "kernel", "kernel", 1)]


def test_what_has_not_ended_is_no_record(recorder: CuptiActivity) -> None:
    assert given(recorder, cupti.kernel(1, 100, 0)) == []


def test_copies_and_fills_say_what_they_moved(recorder: CuptiActivity) -> None:
    one = cupti.kernel(1, 0, 5)
    one.bytes, one.copy_kind = 4096, 2
    one.kind = cupti.ActivityKind.MEMCPY
    other = cupti.kernel(1, 6, 9)
    other.bytes, other.kind = 16, cupti.ActivityKind.MEMSET
    cupti.waiting.extend([other, one])
    (copy, fill), _ = recorder.take()
    assert (copy.name, copy.kind, copy.nbytes, copy.grid) == ("DTOH", "copy", 4096, ())
    assert (fill.name, fill.kind, fill.nbytes, fill.block) == ("memset", "fill", 16, ())


def test_calls_of_cuda_and_overhead_are_told_where_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, recorder: CuptiActivity
) -> None:
    records = (
        cupti.correlated(1, 11),
        cupti.called(1, 90, 100),
        cupti.called(2, 100, 130, 211, cupti.ActivityKind.RUNTIME),
        cupti.called(1, 140, 150, 9999),
        cupti.called(1, 160, 0),
        cupti.kernel(1, 120, 125),
        cupti.overhead(200, 230),
        cupti.overhead(240, 250, 77),
    )
    assert given(recorder, *records) == [(11, "kernel", "kernel", 5)]
    enabled = set(cupti.enabled)
    calling = CuptiActivity(calls=True)
    monkeypatch.setattr(cupti, "enabled", enabled)  # so that it adds no overhead of its own
    assert given(calling, *records) == [
        (11, "cuLaunchKernel", "driver", 10),
        (0, "cudaLaunchKernel_v7000", "runtime", 30),
        (11, "function 9999", "driver", 10),
        (11, "kernel", "kernel", 5),
        (0, "CUPTI_BUFFER_FLUSH", "overhead", 30),
        (0, "overhead 77", "overhead", 10),
    ]


def test_calls_stand_beside_the_kernels_in_the_timelines_file(told: Path, tmp_path: Path) -> None:
    with System("recorded", 1, trace="cupti-calls") as lab:
        view = views.timeline(lab)
        x = lab.devices[0].put(np.ones((4, 4)))
        blas.gemm(x, x).result(WAIT_S)
        profile = lab.profile(timeout_s=WAIT_S)
        assert lab.trace == ("cupti-calls", "cupti")
        found = json.loads(view.export(tmp_path / "trace.json", profile=profile).read_text())
        plain = json.loads(view.export(tmp_path / "plain.json").read_text())
    assert {one.work.kind for one in profile.done} == {"kernel", "driver", "overhead"}
    events = found["traceEvents"]
    assert not [one for one in plain["traceEvents"] if one["pid"] and one["ph"] == "X"]
    rows = {one["tid"]: one["args"]["name"] for one in events if one["name"] == "thread_name"}
    (gemm,) = {one.work.seq for one in profile.done if one.work.kind == "kernel"} & {2}
    ours = {
        rows[one["tid"]]: (one["name"], one["dur"])
        for one in events
        if one["ph"] == "X" and one["args"].get("seq") == gemm and one["cat"] != "copy"
    }
    assert ours["card stream 7"] == ("kernel of 2", 1.0)
    assert ours["calls of thread 4242"] == ("cuLaunchKernel", 0.5)
    assert "CUPTI" in rows.values()


def test_what_is_too_much_is_dropped_and_counted(
    recorder: CuptiActivity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "KEPT", 3)
    monkeypatch.setattr(activity, "IDS", 2)
    for call in range(1, 6):
        cupti.waiting[:0] = [
            cupti.kernel(call, 10 * call, 10 * call + 1),
            cupti.correlated(call, call),
        ]
    works, dropped = recorder.take()
    assert dropped == 2
    assert [one.seq for one in works] == [0, 4, 5]  # the call of the first was forgotten
    assert recorder.take() == ([], 0)
