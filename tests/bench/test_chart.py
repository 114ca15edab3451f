"""A report as a figure: a bar for each budget, on the side of the line where its row is."""

import io

import msgspec
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

from accel_lab.bench.chart import KEPT, MISSED
from accel_lab.bench.machine import Machine
from accel_lab.bench.report import Report
from accel_lab.bench.row import Budget, Row, judged
from accel_lab.errors import InvalidArgument
from tests.cells import outputs_of

HERE = Machine(
    accel_lab="1", python="3", system="s", cpu="c", cores=2, device="d", driver="", libraries={}
)


def row(title: str, ratio: float | None, ours: float, budget: Budget | None) -> Row:
    made = Row(
        name=title,
        group="a",
        title=title,
        unit="s",
        ours=ours,
        ratio=ratio,
        budget=budget,
        rounds=1,
    )
    return judged(made)


ROWS = (
    row("kept", 0.9, 1.0, Budget(0.6, "at least")),
    row("missed", 6.0, 1.0, Budget(3.0, "at most")),
    row("faster", 0.05, 1.0, Budget(10, "at least", "speedup")),
    row("of ours", None, 0.25, Budget(0.5, "at most", "ours")),
    row("kept", 0.6, 1.0, Budget(0.6, "at least")),
    row("without one", 2.0, 1.0, None),
    row("without a ratio", None, 1.0, Budget(1, "at least")),
)
REPORT = Report(backend="host", quick=True, machine=HERE, rows=ROWS)


def test_each_budget_has_a_bar_from_the_line_to_what_its_row_has_reached() -> None:
    figure = Figure()
    FigureCanvasAgg(figure)
    axes = REPORT.plot(figure.subplots())
    assert axes.figure is figure
    (bars,) = axes.containers
    assert isinstance(bars, BarContainer)
    titles = [label.get_text() for label in axes.get_yticklabels()]
    assert titles == ["kept", "missed", "faster", "of ours", "kept"]
    assert [bar.get_y() + bar.get_height() / 2 for bar in bars] == pytest.approx(range(5))
    assert [bar.get_x() for bar in bars] == [1] * 5
    ends = [bar.get_x() + bar.get_width() for bar in bars]
    assert ends == pytest.approx([1.5, 0.5, 2.0, 2.0, 1.0])
    for bar, one in zip(bars, ROWS, strict=False):
        assert to_hex(bar.get_facecolor()) == (KEPT if one.met else MISSED)
        assert bool(bar.get_hatch()) is not one.met
    labels = [text.get_text() for text in axes.texts]
    assert labels == ["✓ ≥ 0.6", "✗ ≤ 3", "✓ ≥ 10x faster", "✓ ≤ 0.5 s", "✓ ≥ 0.6"]
    figure.savefig(drawn := io.BytesIO())
    assert drawn.getvalue().startswith(b"\x89PNG")


def test_a_report_without_budgets_is_not_drawn() -> None:
    with pytest.raises(InvalidArgument, match="none of these rows has a budget"):
        msgspec.structs.replace(REPORT, rows=ROWS[-2:]).plot()


def test_a_cell_shows_one_figure() -> None:
    load = (
        "import msgspec\nfrom accel_lab.bench.report import Report\n"
        f"report = msgspec.json.decode({REPORT.to_json()!r}, type=Report)"
    )
    _, shown = outputs_of(load, "report.plot();")
    assert [set(one.data) & {"image/png"} for one in shown] == [{"image/png"}]
