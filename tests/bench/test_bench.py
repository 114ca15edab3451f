"""The benchmark as its users run it: quick here, and only as exact as a shared machine allows."""

import ast
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from rich.console import Console

from accel_lab import AccelRef, System
from accel_lab.bench import effort, peer, suite
from accel_lab.bench.operands import SMALL
from accel_lab.bench.page import Page
from accel_lab.bench.report import Report, figure
from accel_lab.bench.rounds import compare, latencies
from accel_lab.bench.row import Budget, Row, judged
from accel_lab.bench.rows import compiling, completion, libraries, pipelined, rebuilt, watched
from accel_lab.bench.rows import workloads as workload_rows
from accel_lab.bench.workloads import WORKLOADS
from accel_lab.errors import InvalidArgument
from accel_lab.views.lab import LabView
from accel_lab.views.tree import TreeView
from accel_lab.views.widget.publisher import Publisher
from tests.cells import outputs_of
from tests.project import PACKAGE, ROOT

pytestmark = pytest.mark.timeout(300)  # every benchmark, on a machine that others use too

ROWS = {
    "gemm-64",
    "axpy-64",
    "matmul-512",
    "ask-p50",
    "ask-p99",
    "await-p50",
    "await-p99",
    "ping-result-p50",
    "ping-result-p99",
    "ping-await-p50",
    "ping-await-p99",
    *(
        f"completion-{way}-{size}{of}"
        for way in completion.WAYS
        for size in completion.SIZES["host"]
        for of in ("", "-cpu")
    ),
    "busy-cell",
    *(
        f"{library}-{case.name}{of}"
        for library, cases in libraries.CASES.items()
        for case in cases
        for of in ("", "-ask-p50", "-ask-p99")
    ),
    *(
        workload_rows.name_of(name, size)
        for name, workload in WORKLOADS.items()
        for size in workload.host
    ),
    "compile-cold",
    "compile-warm",
    "compile-first",
    "upload-lab",
    "upload-any",
    "download-lab",
    "download-any",
    "restart-kill-p50",
    "restart-kill-p99",
    "restart-segfault-p50",
    "restart-segfault-p99",
    "restart-poison-p50",
    "restart-poison-p99",
    "rebuilt-kill-error",
    "rebuilt-kill-result",
    "rebuilt-kill-messages",
    "rebuilt-kill-equal",
    "rebuilt-segfault-error",
    "rebuilt-segfault-result",
    "rebuilt-segfault-messages",
    "rebuilt-segfault-equal",
    "rebuilt-poison-error",
    "rebuilt-poison-result",
    "rebuilt-poison-messages",
    "rebuilt-poison-equal",
    *(f"eager-{name}-{size}" for name in ("add", "chain", "loop") for size in (64, 512)),
    "views-tree",
    "views-lab",
    "views-lab-core",
    "journal-memory",
    "journal-sqlite",
    "journal-replay",
    "journal-loop-p99",
}


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "accel_lab.cli", "bench", "--backend", "host", *arguments],
        cwd=ROOT,
        env=os.environ | {"NO_COLOR": "1", "COLUMNS": "140"},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


@pytest.fixture(scope="module")
def report() -> Report:
    done = bench("--quick", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schema"] == 1
    return msgspec.json.decode(done.stdout, type=Report)


def test_quick_run_has_every_row(report: Report) -> None:
    assert {row.name for row in report.rows} == ROWS
    assert [*dict.fromkeys(row.group for row in report.rows)] == list(suite.NAMES)


def test_every_figure_is_finite_and_positive(report: Report) -> None:
    for row in report.rows:
        for value in (row.ours, row.theirs, row.ratio, row.low, row.high):
            assert value is None or (math.isfinite(value) and value > 0), row
        assert (row.theirs is None) == (row.ratio is None) == (not row.peer), row
        if row.low is not None:
            assert row.ratio is not None
            assert row.high is not None
            assert row.low <= row.ratio <= row.high


def test_report_names_what_it_was_measured_on(report: Report) -> None:
    here = report.machine
    assert report.backend == "host"
    assert report.quick
    assert here.cores == len(os.sched_getaffinity(0))
    assert here.python == ".".join(map(str, sys.version_info[:3]))
    assert here.cpu in here.device
    assert {"numpy", "scipy", "msgspec", "blas"} <= here.libraries.keys()


@pytest.mark.parametrize("fault", ["kill", "segfault", "poison"])
def test_buffers_that_come_back_are_all_equal(report: Report, fault: str) -> None:
    equal = report[f"rebuilt-{fault}-equal"]
    assert (equal.ours, equal.unit, equal.met) == (20, "buffers", True)
    first, error = report[f"rebuilt-{fault}-result"], report[f"rebuilt-{fault}-error"]
    again = report[f"rebuilt-{fault}-messages"]
    assert error.ours < first.ours
    assert again.ours < first.ours
    assert again.peer == "sent by hand"


def test_buffers_that_come_back_otherwise_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second loss finds one buffer changed behind the back of the record."""
    turns = 0

    def digests(buffers: list[AccelRef]) -> list[str]:
        nonlocal turns
        turns += 1
        if turns == 3:
            cpu = buffers[4].device
            cpu.run(_add_one, buffers[4], pure=True).result()
        return right(buffers)

    right = rebuilt._digests
    monkeypatch.setattr(rebuilt, "_digests", digests)
    with System("host", devices=1) as lab:
        rows = rebuilt.rebuilt(peer.Peer(lab.devices[0], "host"), effort.QUICK)
    equal = {row.name: judged(row) for row in rows if row.unit == "buffers"}
    assert (equal["rebuilt-kill-equal"].ours, equal["rebuilt-kill-equal"].met) == (19, False)
    assert equal["rebuilt-poison-equal"].met


def _add_one(x: Any) -> None:
    x += 1


def test_table_shows_every_row_and_whether_its_budget_is_kept(report: Report) -> None:
    text = str(report)
    assert all(row.title in text for row in report.rows)
    said = re.findall(r"\b(?:met|missed)\b", text)
    assert len(said) == sum(row.met is not None for row in report.rows)


@pytest.mark.parametrize("columns", [80, 120, 200])
@pytest.mark.parametrize("ours", [None, 0.08041])
def test_terminal_gets_one_line_a_row_and_nothing_is_cut(
    report: Report, columns: int, ours: float | None
) -> None:
    """On a machine with long figures, too."""
    if ours is not None:
        rows = [
            msgspec.structs.replace(row, ours=ours, theirs=None if row.theirs is None else 0.0201)
            for row in report.rows
        ]
        report = msgspec.structs.replace(report, rows=rows)
    console = Console(width=columns, color_system=None, force_terminal=False)
    with console.capture() as shown:
        console.print(report, crop=False)
    lines = [line.rstrip() for line in shown.get().splitlines()]
    assert max(map(len, lines)) <= columns
    assert "…" not in shown.get()
    for row in report.rows:
        (line,) = [one for one in lines if one.startswith((f"{row.name} ", f"{row.title} "))]
        assert figure(row.ours, row.unit) in line
        assert row.budget is None or str(row.budget) in line


def test_only_what_is_named_runs_and_people_get_a_table() -> None:
    done = bench("--quick", "--only", "axpy")
    assert done.returncode == 0, done.stderr
    assert "pipelined Axpy 64x64 with out" in done.stdout
    assert "Gemm" not in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_benchmark_of_kernels_without_a_compiler_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setenv("ACCEL_LAB_CACHE", "/nowhere")
    done = bench("--quick", "--json", "--only", "jit,axpy")
    assert done.returncode == 0, done.stderr
    found = msgspec.json.decode(done.stdout, type=Report)
    assert [row.name for row in found.rows] == ["axpy-64"]
    (note,) = found.notes
    assert note.startswith("jit is not measured: there is no C++ compiler (no-such-compiler)")


def test_kernels_that_are_measured_leave_the_users_cache_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCEL_LAB_CACHE", str(tmp_path / "mine"))
    rows = {row.name: row for row in compiling.compiling("host", effort.QUICK)}
    assert os.environ["ACCEL_LAB_CACHE"] == str(tmp_path / "mine")
    assert not (tmp_path / "mine").exists()
    assert rows["compile-warm"].ours < rows["compile-cold"].ours
    assert rows["compile-warm"].ours < rows["compile-first"].ours


def test_cell_measures_what_awaits_and_shows_one_plain_report() -> None:
    """The loop of the cell runs; a loop that measures is another."""
    _, (shown,), (printed,) = outputs_of(
        "from accel_lab.bench import suite\nreport = suite.run('host', quick=True, only=['await'])",
        "report",
        "print(report, end='')",
    )
    assert set(shown.data) == {"text/plain", "text/html"}
    for text in (*shown.data.values(), printed.text):
        assert "\x1b" not in text
        assert "await" in text


def test_unknown_benchmark_is_refused_before_anything_starts() -> None:
    with pytest.raises(InvalidArgument, match=r"axpi.*there are gemm, axpy"):
        suite.run("host", only=["axpi"])


def test_an_interrupt_leaves_what_was_measured_by_then() -> None:
    def began(name: str) -> None:
        if name == "await":
            signal.raise_signal(signal.SIGINT)

    report = suite.run("host", quick=True, only=["ask", "await", "ping"], began=began)
    assert {row.group for row in report.rows} == {"ask"}
    assert report.notes == ("interrupted: await, ping not measured",)


def test_both_backends_have_the_same_baseline() -> None:
    functions: dict[str, dict[str, list[tuple[str, list[str]]]]] = {"host": {}, "cuda": {}}
    for backend, files in functions.items():
        for path in (PACKAGE / "backends" / backend / "baseline").glob("[a-z]*.py"):
            files[path.name] = [
                (node.name, [ast.unparse(one.annotation or one) for one in node.args.args])
                for node in ast.parse(path.read_text()).body
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
            ]
    torch = functions["cuda"].pop("torch.py")
    assert functions["host"] == functions["cuda"]
    assert {name for name, _ in torch} <= {
        name for file in functions["host"].values() for name, _ in file
    }


def test_ratio_is_the_median_of_rounds_that_change_their_order() -> None:
    order: list[str] = []
    theirs, ours = iter([9.0, 1.0, 2.0, 4.0]), iter([9.0, 2.0, 2.0, 16.0])

    def their_turn() -> float:
        order.append("theirs")
        return next(theirs)

    def our_turn() -> float:
        order.append("ours")
        return next(ours)

    found = compare(their_turn, our_turn, rounds=3)
    assert (found.theirs, found.ours, found.ratio) == (2.0, 2.0, 2.0)
    assert (found.low, found.high, found.rounds) == (1.5, 3.0, 3)
    assert order[:4] == ["theirs", "ours", "ours", "theirs"]


@pytest.mark.parametrize(
    ("budget", "ratio", "ours", "met"),
    [
        (Budget(0.6, "at least"), 0.6, 9.0, True),
        (Budget(0.6, "at least"), 0.59, 9.0, False),
        (Budget(3.0, "at most"), 3.1, 1.0, False),
        (Budget(0.5, "at most", "ours"), 9.0, 0.4, True),
        (Budget(2.0, "at most", "ours", "%"), 9.0, 2.1, False),
        (Budget(10, "at least", "speedup"), 0.09, 1.0, True),
        (Budget(10, "at least", "speedup"), 0.11, 1.0, False),
        (None, 1.0, 1.0, None),
    ],
)
def test_budget_judges_the_ratio_or_our_own_figure(
    budget: Budget | None, ratio: float, ours: float, *, met: bool | None
) -> None:
    row = Row(
        name="a",
        group="a",
        title="a",
        unit="s",
        theirs=1.0,
        ours=ours,
        ratio=ratio,
        budget=budget,
        rounds=1,
    )
    assert judged(row).met is met


def test_tails_are_of_all_rounds_and_medians_of_each() -> None:
    theirs = iter([[9.0], [1.0, 2.0, 3.0], [2.0, 4.0, 90.0]])
    ours = iter([[1.0], [4.0, 4.0, 4.0], [4.0, 2.0, 6.0]])
    median, tail = latencies(lambda: next(theirs), lambda: next(ours), rounds=2)
    assert (median.theirs, median.ours, median.ratio) == (3.0, 4.0, 1.5)
    assert tail.theirs == pytest.approx(np.percentile([1, 2, 3, 2, 4, 90], 99))
    assert tail.ours == pytest.approx(np.percentile([4, 4, 4, 4, 2, 6], 99))


def test_budgets_and_figures_of_a_share_are_written_for_people() -> None:
    assert str(Budget(2.0, "at most", "ours", "%")) == "≤ 2 %"
    assert str(Budget(0.5, "at most", "ours")) == "≤ 0.5 s"
    assert figure(1.234, "%") == "1.23 %"


def test_a_page_hears_each_update_that_a_widget_sends() -> None:
    pytest.importorskip("anywidget", reason="anywidget comes with the lab extra")
    from accel_lab.views.widget.live import widget_class

    with System("host", devices=1) as lab:
        widget = widget_class(TreeView)(lab)
        with Page() as page:
            page.show(widget)
            for _ in range(3):
                widget.send_state()
            widget.close()
        assert page.heard >= 4


def test_what_the_publisher_takes_grows_with_its_samples() -> None:
    publisher = Publisher()
    assert publisher.cpu_s == 0.0
    with System("host", devices=1) as lab:
        reader = watched.Reader(LabView(lab))
        publisher.add(reader, rate_hz=30)
        until = time.monotonic() + 30
        while publisher.cpu_s == 0.0 and time.monotonic() < until:
            time.sleep(0.01)
        used_s = publisher.cpu_s
        assert used_s > 0.0
        while publisher.cpu_s < used_s + 0.005 and time.monotonic() < until:
            time.sleep(0.01)
        assert publisher.cpu_s >= used_s + 0.005
        reader.close()
        publisher.close()


def test_figures_are_written_for_people() -> None:
    assert figure(172_345, "messages/s") == "172 k/s"
    assert figure(12.3456, "messages/s") == "12.3 /s"
    assert figure(4652.2, "µs") == "4.65 ms"


def test_small_messages_reach_a_twentieth_of_numpy_itself() -> None:
    """Fails when a message costs three times what it does: the best of many short rounds of both.

    What else runs on the machine only adds to either.
    """
    raw_s = ours_s = math.inf
    rounds, until = 0, time.monotonic() + 30
    with System("host", devices=1) as lab:
        numpy = peer.Peer(lab.devices[0], "host")
        ask = pipelined.axpy_of(lab.devices[0], SMALL)
        count = effort.QUICK.messages["host"]
        while rounds < 100 or (raw_s < 0.05 * ours_s and time.monotonic() < until):
            raw_s = min(raw_s, numpy.many("blas.axpy", (SMALL,), count))
            ours_s = min(ours_s, pipelined.seconds_of(ask, count))
            rounds += 1
    assert raw_s >= 0.05 * ours_s, f"{raw_s / ours_s:.3f} of NumPy's own loop"
