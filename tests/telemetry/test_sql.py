"""SQL over a system and over a recording: the answers are those of plain Python."""

import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

if find_spec("duckdb") is None or find_spec("pandas") is None:
    pytest.skip("duckdb and pandas come with the observability extra", allow_module_level=True)

from accel_lab import System, array, views
from accel_lab.compute.events.lifecycle import ContextLost
from accel_lab.compute.events.samples import (
    Block,
    HealthSampled,
    MemorySampled,
    Reading,
    Slice,
    WorkTraced,
)
from accel_lab.errors import InvalidArgument, TelemetryUnavailable
from accel_lab.telemetry import sql
from accel_lab.telemetry.tables import COLUMNS
from tests.views.made_up import Lab
from tests.views.made_up import lab as made_up

T0 = 1_700_000_000.0
TOOK = [0.25, 0.5, 0.125]


def filled() -> Lab:
    lab = made_up(2)
    done = tuple(
        Slice(seq, name, "blas", "kernel", T0 + seq, T0 + seq + took, queued=T0 + seq - 0.5)
        for seq, (name, took) in enumerate(zip(["Gemm", "Gemm", "Axpy"], TOOK, strict=True))
    )
    lab.seen.append(
        WorkTraced(
            at=T0, device="gpu0", generation=1, done=done, running=(), cells=((0, 4), (2, 5))
        )
    )
    block = Block((1, 2), 0, 64, "Gemm #1", "float32", (4, 4), ("a", "b"))
    lab.seen.append(
        MemorySampled(
            at=T0, device="gpu0", generation=1, used_bytes=64, total_bytes=None, blocks=(block,)
        )
    )
    lab.events.publish(
        ContextLost(at=T0, device="gpu1", generation=1, cause='it\'s "gone"', in_flight=3)
    )
    lab.events.publish(
        ContextLost(at=T0, device="gpu1", generation=2, cause="asked", in_flight=0, asked=True)
    )
    return lab


def check(source: Lab | views.Recording) -> None:
    sums = sql(source, "select kernel, sum(duration_ns) ns from launches group by 1 order by 1")
    assert dict(zip(sums["kernel"], sums["ns"], strict=True)) == {
        "Axpy": TOOK[2] * 1e9,
        "Gemm": (TOOK[0] + TOOK[1]) * 1e9,
    }
    cells = sql(source, "select cell, count(*) n, max(queued_ns) q from launches group by 1")
    assert sorted(cells.itertuples(index=False, name=None)) == [(4, 2, 5e8), (5, 1, 5e8)]
    (fault,) = sql(source, "from faults").itertuples(index=False)
    assert (fault.device, fault.cause, fault.generation) == ("gpu1", 'it\'s "gone"', 1)
    lost = sql(source, "select count(*) n from events where event = 'ContextLost'")
    assert lost["n"][0] == 2
    buffers = sql(source, "select id, owner, shape, kept_by from buffers order by id")
    assert list(buffers.itertuples(index=False, name=None)) == [
        (1, "Gemm #1", "4x4", "a, b"),
        (2, "Gemm #1", "4x4", "a, b"),
    ]
    losses = sql(
        source,
        "select value from metrics where source='gpu1' and metric='accel_lab.context_losses'",
    )
    assert losses["value"][0] == 2


def test_a_system_answers() -> None:
    lab = filled()
    sql(lab, "from events")
    lab.closed = True  # its devices are made up, and would be waited for each time
    check(lab)


def test_a_recording_answers_the_same(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    with views.record(filled(), path):
        pass
    check(views.Recording.open(path))


def test_readings_are_metrics_in_base_units(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    lab = made_up(1)
    with views.record(lab, path) as recording:
        readings = (Reading("power", 300.0, "W"), Reading("SM clock", 1980, "MHz"))
        sample = HealthSampled(at=T0, source="gpu0", model="H100", readings=readings)
        assert recording._recorder is not None
        with recording._recorder._observer.lock:
            recording._recorder._observer._take(sample)
    found = sql(
        views.Recording.open(path),
        "select metric, value, unit from metrics where metric like 'accel_lab.card.%' order by 1",
    )
    assert list(found.itertuples(index=False, name=None)) == [
        ("accel_lab.card.power", 300.0, "W"),
        ("accel_lab.card.sm_clock", 1.98e9, "Hz"),
    ]


def test_a_real_system_tells_its_launches_and_buffers() -> None:
    with System("host", 1) as lab:
        assert len(lab.sql("from launches")) == 0
        x = lab.devices[0].put(np.ones((64, 64)))
        for _ in range(3):
            y = array.exp(x)
        y.get()
        found = lab.sql(
            "select count(*) n, min(duration_ns) least from launches where kernel='Unary'"
        )
        assert found["n"][0] >= 1
        assert found["least"][0] > 0
        sizes = lab.sql("select id, nbytes, dtype from buffers")
        assert (y.id, 64 * 64 * 8, "float64") in list(sizes.itertuples(index=False, name=None))
        assert lab.sql("select count(*) n from events where event='ContextStarted'")["n"][0] == 1


def test_work_goes_on_being_traced_between_two_calls() -> None:
    lab = made_up(1)
    sql(lab, "from launches")
    one = Slice(1, "Gemm", "blas", "kernel", T0, T0 + 1)
    lab.seen.append(WorkTraced(at=T0, device="gpu0", generation=1, done=(one,), running=()))
    deadline = time.monotonic() + 10
    while lab.seen:  # until the publisher has looked
        assert time.monotonic() < deadline
        time.sleep(0.01)
    lab.closed = True
    assert sql(lab, "select count(*) n from launches")["n"][0] == 1


def test_empty_tables_have_their_columns() -> None:
    lab = made_up(1)
    lab.closed = True
    for name, columns in COLUMNS.items():
        assert list(sql(lab, f"from {name}").columns) == list(columns)


@pytest.mark.parametrize(
    "query",
    ["selec 1", "select * from nowhere", "", "from '/etc/passwd'", "copy launches to '/tmp/x.csv'",
     "set enable_external_access=true", "install httpfs", "attach '/tmp/x.db'",
     "select * from read_text('/etc/passwd')", "from COLUMNS"],
)  # fmt: skip
def test_what_is_no_query_or_reaches_outside_is_refused(query: str) -> None:
    lab = made_up(1)
    lab.closed = True  # nobody is waited for
    with pytest.raises(InvalidArgument, match="sql: "):
        sql(lab, query)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="query is of type int; expected SQL as text"):
        sql(made_up(1), 3)  # type: ignore[arg-type]


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel_lab.telemetry.installed.find_spec", lambda _: None)
    with pytest.raises(TelemetryUnavailable, match="sql needs duckdb"):
        sql(made_up(1), "from launches")
