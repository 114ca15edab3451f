"""Traces, logs and metrics arrive at a collector that reads OTLP's own messages."""

import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("opentelemetry.sdk") is None:
    pytest.skip("opentelemetry comes with the observability extra", allow_module_level=True)

from accel_lab import views
from accel_lab.compute.events.lifecycle import ContextLost, ContextStarted
from accel_lab.compute.events.samples import CellRun, NotebookSampled, Slice, WorkTraced
from accel_lab.errors import InvalidArgument, TelemetryUnavailable
from accel_lab.telemetry import otlp
from tests.cells import outputs_of
from tests.telemetry.collector import collecting, plain
from tests.views.made_up import Lab
from tests.views.made_up import lab as made_up

T0 = 1_700_000_000.0


def worked(lab: Lab, device: str, generation: int, *done: Slice, cell: int | None = 7) -> None:
    lab.seen.append(
        WorkTraced(
            at=T0 + 5, device=device, generation=generation, done=done, running=(),
            cells=((1, cell),),
        )
    )  # fmt: skip


def ran(seq: int, name: str, **more: object) -> Slice:
    return Slice(seq, name, "blas", "kernel", T0 + 1, T0 + 1.5, **more)  # type: ignore[arg-type]


OPENS = """
import numpy as np
from accel_lab import System, array, telemetry
lab = System("host", 2)
export = telemetry.otlp(lab, {endpoint!r}, headers={{"x-token": "abc"}}, every=True)
gpu0, gpu1 = lab.devices
"""
COMPUTES = """
secret = "s3cr3t"
x, y = (array.exp(gpu.put(np.ones((8, 8), np.float32))) for gpu in lab.devices)
x.get(), y.get()
"""
CLOSES = """
import time
for _ in range(3):
    time.sleep(0.15)
    export.flush()
print(*(node.pid for node in lab.tree().walk() if node.kind == "context"))
export.close()
lab.close()
"""


def test_a_notebooks_trace_has_its_cell_as_root_and_messages_below() -> None:
    """In a real kernel, to a collector in another process."""
    with collecting() as collector:
        *_, last = outputs_of(OPENS.format(endpoint=collector.endpoint), COMPUTES, CLOSES)
    pids = dict(zip(("cpu0", "cpu1"), map(int, last[0]["text"].split()), strict=True))
    (notebook, root), *_ = collector.named("cell 2")
    found = collector.named("Unary")
    assert {resource["accel_lab.device"] for resource, _ in found} == {"cpu0", "cpu1"}
    for resource, span in found:
        assert (span.trace_id, span.parent_span_id) == (root.trace_id, root.span_id)
        assert resource["process.pid"] == pids[resource["accel_lab.device"]]
        assert resource["process.pid"] != notebook["process.pid"]
        assert span.start_time_unix_nano < span.end_time_unix_nano
        assert root.start_time_unix_nano <= span.start_time_unix_nano
        assert plain(span.attributes)["accel_lab.cell.number"] == 2
    assert not root.parent_span_id
    assert root.start_time_unix_nano < root.end_time_unix_nano
    assert plain(root.attributes)["accel_lab.cell.ended"] == "done"
    assert "s3cr3t" not in str(collector.spans)
    assert collector.headers[0]["x-token"] == "abc"
    assert collector.metrics["accel_lab.generation"].gauge.data_points[0].as_int == 1
    histogram = collector.metrics["accel_lab.message.duration"].histogram
    assert sum(point.count for point in histogram.data_points) >= 2


def test_parts_of_one_message_link_and_what_is_rerun_links_to_what_was_lost() -> None:
    lab = made_up(2)
    with collecting() as collector, otlp(lab, collector.endpoint) as export:
        worked(lab, "gpu0", 1, ran(1, "AllReduce", place=(5, 0, 2)), ran(2, "Gemm", queued=T0))
        worked(lab, "gpu1", 1, ran(1, "AllReduce", place=(5, 1, 2)))
        running = Slice(3, "Solve", "solver", "kernel", T0 + 2, None)
        lab.seen.append(
            WorkTraced(at=T0 + 6, device="gpu0", generation=1, done=(), running=(running,))
        )
        export.publish(0)
        lab.events.publish(ContextStarted(device="gpu0", generation=2, pid=77, seconds=0.1))
        lab.restart(0)
        worked(lab, "gpu0", 2)
        export.publish(0)
        worked(lab, "gpu0", 2, ran(3, "Solve"))
        export.flush()
    first, second = collector.named("AllReduce")
    assert not first[1].links
    assert [link.span_id for link in second[1].links] == [first[1].span_id]
    assert {first[0]["accel_lab.device"], second[0]["accel_lab.device"]} == {"gpu0", "gpu1"}
    lost, again = collector.named("Solve")
    assert (lost[0]["accel_lab.generation"], again[0]["accel_lab.generation"]) == (1, 2)
    assert "process.pid" not in lost[0]
    assert again[0]["process.pid"] == 77
    assert lost[1].status.code == 2
    assert plain(again[1].links[0].attributes) == {"accel_lab.link": "rerun"}
    assert again[1].links[0].span_id == lost[1].span_id
    assert again[1].links[0].trace_id == lost[1].trace_id
    (_, gemm), *_ = collector.named("Gemm")
    assert plain(gemm.attributes)["accel_lab.message.queued"] == 1.0


def test_a_fault_is_a_log_record_under_the_cell_that_ran() -> None:
    lab = made_up(1)
    with collecting() as collector, otlp(lab, collector.endpoint, code=True) as export:
        told = NotebookSampled(cells=(CellRun(3, "boom()", T0, T0 + 9, "failed"),))
        assert export._observer is not None
        with export._observer.lock:
            export._observer._take(told)
        lab.events.publish(
            ContextLost(at=T0 + 1, device="gpu0", generation=1, cause="SIGKILL", in_flight=2)
        )
        lab.events.publish(
            ContextLost(at=T0 + 2, device="gpu0", generation=1, cause="x", in_flight=0, asked=True)
        )
        export.flush()
    (_, cell), *_ = collector.named("cell 3")
    assert cell.status.code == 2
    assert plain(cell.attributes)["accel_lab.cell.line"] == "boom()"
    assert cell.end_time_unix_nano - cell.start_time_unix_nano == 9_000_000_000
    (resource, fault), (_, asked) = collector.logs
    assert resource["service.name"] == "accel_lab"
    assert (fault.severity_text, asked.severity_text) == ("ERROR", "INFO")
    assert "SIGKILL" in fault.body.string_value
    assert fault.event_name == "accel_lab.ContextLost"
    assert (fault.trace_id, fault.span_id) == (cell.trace_id, cell.span_id)
    losses = collector.metrics["accel_lab.context_losses"].sum
    assert (losses.is_monotonic, losses.data_points[0].as_int) == (True, 2)


def test_a_recording_tells_the_collector_the_same(tmp_path: Path) -> None:
    lab = made_up(1)
    path = tmp_path / "session.jsonl"
    with views.record(lab, path) as recording:
        worked(lab, "gpu0", 1, *(ran(seq, "Gemm") for seq in range(1, 41)), cell=None)
        recording._recorder.publish(0)  # type: ignore[union-attr]
    with collecting() as collector:
        export = otlp(views.Recording.open(path), collector.endpoint)
        assert export.ended
    (_, session), *_ = collector.named("session lab")
    found = [span for _, span in collector.named("Gemm")]
    assert sorted(plain(one.attributes)["accel_lab.message.number"] for one in found) == [
        *range(1, 41)
    ]
    assert {one.parent_span_id for one in found} == {session.span_id}
    assert {one.start_time_unix_nano for one in found} == {int((T0 + 1) * 1e9)}


def test_of_a_long_recording_no_span_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accel_lab.telemetry.pipeline.QUEUE", 512)
    monkeypatch.setattr("accel_lab.telemetry.spans.EVERY", 256)
    lab = made_up(1)
    path = tmp_path / "session.jsonl"
    with views.record(lab, path) as recording:
        worked(lab, "gpu0", 1, *(ran(seq, "Gemm") for seq in range(3000)), cell=None)
        recording._recorder.publish(0)  # type: ignore[union-attr]
    with collecting() as collector:
        otlp(views.Recording.open(path), collector.endpoint)
    assert len(collector.named("Gemm")) == 3000


def test_it_ends_with_its_system_and_holds_nobody_up_without_a_collector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("accel_lab.telemetry.pipeline.TIMEOUT_S", 0.5)
    lab = made_up(1)
    begun = time.monotonic()
    export = otlp(lab, "http://127.0.0.1:9")  # the port of "discard": nobody listens
    worked(lab, "gpu0", 1, ran(1, "Gemm"))
    export.publish(0)
    lab.closed = True
    export.publish(0)
    assert export.ended
    assert time.monotonic() - begun < 2
    assert "ended" in repr(export)
    export.close()
    assert time.monotonic() - begun < 20


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="endpoint is 'collector:4318'; expected an address"):
        otlp(made_up(1), "collector:4318")


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel_lab.telemetry.installed.find_spec", lambda _: None)
    with pytest.raises(TelemetryUnavailable, match="observability"):
        otlp(made_up(1))


def test_off_it_follows_nothing_and_imports_nothing() -> None:
    code = (
        "import sys; from accel_lab import System, telemetry, views\n"
        "with System('host', 1) as lab:\n"
        "    before = lab.events._subscriptions\n"
        "    lab.devices[0].put([1.0]).get()\n"
        "    assert lab.events._subscriptions == before\n"
        "    assert lab.devices[0]._outbox.watch is None\n"
        "heavy = {'opentelemetry', 'duckdb', 'pandas', 'requests'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
