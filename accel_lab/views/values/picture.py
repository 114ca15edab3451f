"""A series as an SVG file, for pages that run no script; it follows the page's dark mode."""

from collections.abc import Iterator
from itertools import pairwise

from accel_lab.views.values.state import LEVELS
from accel_lab.views.widget.view import State

WIDE, HIGH = 600, 160
LEFT, FOOT, TOP = 66, 20, 10
SHADES = (2, 4, 7, LEVELS)
"""Up to which level each shade goes."""
_STYLE = """
text{font:11px system-ui,sans-serif;fill:#57606a}.a{stroke:#d9dee4}
.h{fill:#0b5cad}.m{fill:none;stroke:#1f2328;stroke-width:1.4}.b{fill:#b3261e}
@media(prefers-color-scheme:dark){text{fill:#a3adb8}.a{stroke:#3a4149}.h{fill:#79b8ff}
.m{stroke:#e6e9ed}.b{fill:#ff938a}}
"""


def picture(one: State) -> str:
    """Return a histogram a look, side by side, the mean as a line, and dots for NaN and Inf."""
    curve = one["curve"]
    looks = curve["looks"]
    low = min((value for value in curve["least"] if value is not None), default=0.0)
    high = max((value for value in curve["most"] if value is not None), default=0.0)
    foot, width = HIGH - FOOT, (WIDE - LEFT - 8) / len(looks)

    def y(value: float) -> float:
        share = (value / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.5
        return TOP + (1 - share) * (foot - TOP)

    cells: list[list[str]] = [[] for _ in SHADES]
    for at, levels in enumerate(curve["levels"]):
        least, most = curve["least"][at], curve["most"][at]
        if least is None or not levels:
            continue
        x, top, below = LEFT + at * width, y(most), y(least)
        high_of = max(below - top, 1.5) / len(levels)
        for number, level in enumerate(map(int, levels), start=1):
            if level:
                shade = next(i for i, most_of in enumerate(SHADES) if level <= most_of)
                begin = max(below, top + 1.5) - number * high_of
                cells[shade].append(f"M{x:.1f} {begin:.1f}h{width:.2f}v{high_of:.2f}h-{width:.2f}z")
    heat = "".join(
        f'<path class="h" opacity="{(shade + 1) / len(SHADES):g}" d="{"".join(drawn)}"/>'
        for shade, drawn in enumerate(cells)
        if drawn
    )
    middles = [LEFT + (at + 0.5) * width for at in range(len(looks))]
    mean = "".join(_line(middles, [None if m is None else y(m) for m in curve["mean"]]))
    bad = "".join(
        f'<circle class="b" cx="{x:.1f}" cy="{TOP - 4}" r="3"/>'
        for x, count in zip(middles, curve["bad"], strict=True)
        if count
    )
    texts = [(2, TOP + 8, f"{high:.4g}"), (2, foot, f"{low:.4g}")] if "least" in one else []
    texts.append((LEFT, HIGH - 5, f"look {looks[0]:,}"))
    said = "".join(f'<text x="{at}" y="{down}">{words}</text>' for at, down, words in texts)
    end = f'<text x="{WIDE - 8}" y="{HIGH - 5}" text-anchor="end">{looks[-1]:,}</text>'
    size = f'width="{WIDE}" height="{HIGH}" viewBox="0 0 {WIDE} {HIGH}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{_STYLE}</style>'
        f'<path class="a" d="M{LEFT} {foot}H{WIDE - 8}"/>{heat}'
        f'<path class="m" d="{mean}"/>{bad}{said}{end}</svg>'
    )


def _line(xs: list[float], ys: list[float | None]) -> Iterator[str]:
    """Yield lines through points, with a gap where there is none."""
    for before, (x, y) in pairwise([(0.0, None), *zip(xs, ys, strict=True)]):
        if y is not None:
            yield f"M{x:.1f} {y:.1f}h0" if before[1] is None else f"L{x:.1f} {y:.1f}"
