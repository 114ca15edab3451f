"""A curve as an SVG file, for pages that run no script; it follows the page's dark mode."""

from collections.abc import Iterable, Iterator, Sequence

from accel_lab.views.widget.view import State

WIDE, HIGH = 600, 150
LEFT, FOOT, TOP = 58, 20, 10
_STYLE = """
text{font:11px system-ui,sans-serif;fill:#57606a}.a{stroke:#d9dee4}
.r{stroke:#b3261e;stroke-dasharray:4 3}
.l{fill:none;stroke:#0b5cad;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}
@media(prefers-color-scheme:dark){text{fill:#a3adb8}.a{stroke:#3a4149}.l{stroke:#79b8ff}
.r{stroke:#ff938a}}
"""


def picture(run: State) -> str:
    """Return the loss of a trainer as SVG, with a line at each step that was done again."""
    steps: Sequence[int] = run["curve"]["steps"]
    losses: Sequence[float | None] = run["curve"]["loss"]
    known = [one for one in losses if one is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    first, span = steps[0], max(1, steps[-1] - steps[0])

    def x(step: int) -> float:
        return LEFT + (step - first) / span * (WIDE - LEFT - 8)

    def y(loss: float) -> float:
        share = (loss - low) / (high - low) if high > low else 0.5
        return TOP + (1 - share) * (HIGH - TOP - FOOT)

    foot = HIGH - FOOT
    down = [None if loss is None else y(loss) for loss in losses]
    path = "".join(_path(zip(map(x, steps), down, strict=True)))
    marks = "".join(
        f'<path class="r" d="M{x(one["step"]):.1f} {TOP}V{foot}"/>'
        for one in run.get("restarts", ())
        if first <= one["step"] <= steps[-1]
    )
    texts = [(2, TOP + 8, f"{high:.4g}"), (2, foot, f"{low:.4g}")] if known else []
    texts += [(LEFT, HIGH - 5, f"step {first:,}")]
    said = "".join(f'<text x="{at}" y="{down}">{words}</text>' for at, down, words in texts)
    end = f'<text x="{WIDE - 8}" y="{HIGH - 5}" text-anchor="end">{steps[-1]:,}</text>'
    size = f'width="{WIDE}" height="{HIGH}" viewBox="0 0 {WIDE} {HIGH}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{_STYLE}</style>'
        f'<path class="a" d="M{LEFT} {foot}H{WIDE - 8}"/>{marks}'
        f'<path class="l" d="{path}"/>{said}{end}</svg>'
    )


def _path(points: Iterable[tuple[float, float | None]]) -> Iterator[str]:
    """Yield lines through points, with a gap where there is none; a lone point is a dot."""
    is_down = False
    for x, y in points:
        if y is not None:
            yield f"L{x:.1f} {y:.1f}" if is_down else f"M{x:.1f} {y:.1f}h0"
        is_down = y is not None
