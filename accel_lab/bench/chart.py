"""Rows as bars against their budgets: to the right of the line a budget is kept."""

from collections.abc import Iterable

from matplotlib.axes import Axes

from accel_lab.bench.row import Row
from accel_lab.errors import InvalidArgument

KEPT, MISSED = "#0072b2", "#d55e00"
"""Of Okabe and Ito's colours, which everybody tells apart; what is missed is hatched, too."""


def draw(rows: Iterable[Row], axes: Axes | None = None) -> Axes:
    """Draw a bar for each row with a budget, from the budget to how many times better it is.

    Raises:
        InvalidArgument: no row has a budget.
    """
    drawn = [(row, row.margin) for row in rows if row.margin is not None]
    if not drawn:
        raise InvalidArgument("there is nothing to draw: none of these rows has a budget")
    if axes is None:
        from matplotlib import pyplot as plt

        size = (9.0, 1.2 + 0.3 * len(drawn))
        axes = plt.subplots(figsize=size, layout="constrained")[1]
    places = range(len(drawn))
    bars = axes.barh(
        places,
        [margin - 1 for _, margin in drawn],
        left=1,
        color=[KEPT if row.met else MISSED for row, _ in drawn],
        hatch=["" if row.met else "///" for row, _ in drawn],
        edgecolor="white",
    )
    labels = [f"{'✓' if row.met else '✗'} {row.budget}" for row, _ in drawn]
    axes.bar_label(bars, labels, padding=4)
    axes.set_yticks(places, [row.title for row, _ in drawn])
    axes.invert_yaxis()
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:.3g}")
    axes.axvline(1, color="black", linewidth=1)
    axes.margins(x=0.2)
    axes.set_xlabel("times better than the budget")
    return axes
