"""Draw the gallery's pictures: `python -m docs.images.gallery`, at the root.

It runs the examples of `docs/gallery.md` one after the other, and draws each picture where it
stands, of what the examples have made so far. It needs the `test` extra.
"""

import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from PIL import Image

from accel_lab.blueprints import realtime
from accel_lab.blueprints.train.exchange.schedule import Work, in_turn

IMAGES = Path(__file__).parent
PAGE = IMAGES.parent / "gallery.md"
PART = re.compile(
    r"^```python\n(?P<code>.*?)^```$|!\[[^]]+\]\(images/gallery-(?P<picture>[\w-]+)\.png\)",
    re.MULTILINE | re.DOTALL,
)
COLOURS = 128
SIZE_IN, DPI = (4.8, 2.4), 120
KILLED_AT = 15  # the step, as the page has it
BLUE, ORANGE, GREY = "#0b5cad", "#c2570c", "#8a939d"

Names = dict[str, Any]
Draw = Callable[[Names], Image.Image]


def main() -> None:
    """Run the page, and draw all pictures."""
    names: Names = {}
    for part in PART.finditer(PAGE.read_text()):
        if part["code"] is not None:
            exec(compile(part["code"], PAGE.name, "exec"), names)  # noqa: S102 - the project's own page
            continue
        path = IMAGES / f"gallery-{part['picture']}.png"
        picture = DRAWN[part["picture"]](names)
        picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB")


def painted(name: str) -> Draw:
    """Return what fetches the picture of a simulation; none is smaller than 320 pixels."""

    def draw(names: Names) -> Image.Image:
        picture = Image.fromarray(names[name].ask(realtime.Picture()).result())
        times = max(1, 320 // picture.width)
        return picture.resize((times * picture.width, times * picture.height), Image.Resampling.BOX)

    return draw


def chart(draw: Callable[[Axes, Names], None], size_in: tuple[float, float] = SIZE_IN) -> Draw:
    """Return what draws on axes."""

    def whole(names: Names) -> Image.Image:
        figure = Figure(figsize=size_in, dpi=DPI, layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes, names)
        data = BytesIO()
        figure.savefig(data)
        return Image.open(data).convert("RGB")

    return whole


def same_curve(name: str, devices: str) -> Draw:
    """Return what draws the losses of a trainer over those of one device."""

    def draw(axes: Axes, names: Names) -> None:
        found, expected = np.array(names[name].losses), np.array(names["undisturbed"])
        axes.plot(expected, color=GREY, lw=4, alpha=0.5, label="one device")
        axes.plot(found, "o", color=BLUE, ms=4, label=devices)
        apart = np.abs(found - expected[: len(found)]).max()
        axes.set(xlabel="step", ylabel="loss", xlim=(-0.5, len(found) + 0.5))
        axes.set_title(f"largest difference {apart:.1e}", fontsize=9, color=GREY)
        axes.legend(frameon=False)

    return chart(draw)


def filtered(names: Names) -> Image.Image:
    """Return the edges as a picture."""
    return Image.fromarray((255 * names["edges"].clip(0, 1)).astype("uint8"))


def indexed(axes: Axes, names: Names) -> None:
    """Draw points, and those that are near to a centre."""
    points, near, centres = names["points"], names["near"], names["centres"]
    axes.plot(*points.T, ".", color=GREY, ms=2.5)
    axes.plot(*points[near].T, ".", color=BLUE, ms=4)
    for centre in centres:
        axes.add_patch(Circle(tuple(centre), 0.12, fill=False, color=ORANGE, lw=1.5))
    axes.set(aspect="equal", xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def inserted(axes: Axes, names: Names) -> None:
    """Draw how many keys a map has, and how many are expected."""
    counts = names["counts"]
    rounds = np.arange(1, len(counts) + 1)
    axes.plot(rounds, 1000 * (1 - 0.999 ** (200 * rounds)), color=GREY, lw=4, alpha=0.5)
    axes.plot(rounds, counts, "o", color=BLUE, ms=4)
    axes.set(xlabel="inserts of 200 keys", ylabel="keys", ylim=(0, 1050))


def warmed(axes: Axes, names: Names) -> None:
    """Draw how warm each cell is, and the wall."""
    n, wall = names["n"], names["wall"]
    heat = names["heat"].get().reshape(n, n)
    axes.imshow(np.ma.masked_where(wall, heat), cmap="inferno")
    axes.set(xticks=[], yticks=[], facecolor=GREY)


def known(axes: Axes, names: Names) -> None:
    """Draw the mean of what was counted so far, within its standard error."""
    totals = names["totals"]
    count = np.array([one.count for one in totals])
    mean = np.array([one.mean for one in totals])
    error = np.sqrt([one.variance for one in totals] / count)
    axes.fill_between(count, mean - error, mean + error, color=BLUE, alpha=0.25, lw=0)
    axes.plot(count, mean, color=BLUE)
    axes.axhline(5, color=GREY, lw=1, ls="--")
    axes.set(xlabel="numbers so far", ylabel="mean")


def passed(axes: Axes, names: Names) -> None:
    """Draw a signal, and what a pass has found in it."""
    signal, outliers = names["signal"], names["outliers"]
    inside = signal.copy()
    inside[outliers] = np.nan
    axes.plot(inside, color=BLUE, lw=1)
    axes.plot(outliers, signal[outliers], "o", color=ORANGE, ms=4, label="outliers")
    axes.set(xlabel="place", ylabel="value")
    axes.legend(frameon=False)


def trailed(names: Names) -> Image.Image:
    """Return the last frame."""
    frame = names["shown"].get().clip(0, 1)
    picture = Image.fromarray((255 * frame).astype("uint8"))
    return picture.resize((2 * picture.width, 2 * picture.height), Image.Resampling.BOX)


def killed(axes: Axes, names: Names) -> None:
    """Draw the losses of the trainer whose device was killed."""
    losses = names["trainer"].losses
    axes.plot(losses, color=BLUE)
    axes.axvline(KILLED_AT, color=ORANGE, ls="--", lw=1)
    axes.annotate(
        "killed", (KILLED_AT, max(losses)), (4, -8), textcoords="offset points", color=ORANGE
    )
    axes.set(xlabel="step", ylabel="loss")


def scheduled(axes: Axes, names: Names) -> None:
    """Draw which micro-batch each stage works on, where a backward takes as long as a forward."""
    shape = names["pipeline"].statistics()
    ends: dict[Work, int] = {}
    free = [0] * shape.stages
    for work in in_turn(shape.stages, shape.micro_batches):
        before = work.waits_for(shape.stages)
        begin = max(free[work.stage], 0 if before is None else ends[before])
        ends[work] = free[work.stage] = begin + 1
        colour = BLUE if work.is_forward else ORANGE
        axes.barh(work.stage, 1, left=begin, color=colour, edgecolor="white")
        axes.text(begin + 0.5, work.stage, work.micro, color="white", ha="center", va="center")
    axes.set(yticks=range(shape.stages), ylabel="stage", xlabel="time")
    axes.set_title(f"idle at best {shape.at_best:.0%}", fontsize=9, color=GREY)
    axes.invert_yaxis()


def pushed(axes: Axes, names: Names) -> None:
    """Draw the loss of each push."""
    pushes = names["server"].pushes
    for staleness, colour in enumerate((BLUE, GREY, ORANGE)):
        found = [(i, one.loss) for i, one in enumerate(pushes) if one.staleness == staleness]
        axes.plot(
            *zip(*found or [(np.nan, np.nan)], strict=True),
            "o",
            color=colour,
            ms=4,
            label=str(staleness),
        )
    axes.set(xlabel="push", ylabel="loss")
    axes.legend(title="staleness", frameon=False)


SQUARE_IN = (2.7, 2.7)
DRAWN: dict[str, Draw] = {
    "particles": painted("discs"),
    "fluid": painted("fluid"),
    "cloth": painted("cloth"),
    "filters": filtered,
    "index": chart(indexed, SQUARE_IN),
    "keys": chart(inserted),
    "heat": chart(warmed, SQUARE_IN),
    "totals": chart(known),
    "passes": chart(passed),
    "effects": trailed,
    "trainer": chart(killed),
    "data": same_curve("data_parallel", "four devices"),
    "sharded": same_curve("sharded", "four devices"),
    "pipeline": chart(scheduled),
    "tensor": same_curve("tensor", "two devices"),
    "grid": same_curve("grid_trainer", "four devices"),
    "server": chart(pushed),
}

if __name__ == "__main__":
    main()
