"""The training view as lines of text, and as pictures with semantic tables."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape

from accel_lab.display.clock import time_of_day
from accel_lab.display.table import as_html, as_text, folded
from accel_lab.views.training.picture import picture
from accel_lab.views.training.state import PARTS, RESTARTS
from accel_lab.views.widget.view import State

WIDE = 32
"""So many characters a curve has."""
LEVELS = "▁▂▃▄▅▆▇█"
TIMES = ("Rank", *PARTS)
NOTE = (
    "Communication: in collectives that all ranks had begun. Waiting: for ranks that had not. Both "
    "by the notebook's clock. Computing: all else."
)


def text(state: State) -> str:
    """Draw a state as aligned lines, a paragraph a trainer."""
    lines = [_caption(state)]
    for one in state["runs"]:
        lines += ["", *folded(headline(one))]
        lines.append(f"  loss {sparkline(one['curve']['loss'])} {_span(one)}")
        lines += [f"  {line}" for line in as_text(TIMES, _ranks(one), PARTS)]
        lines += folded(f"  {_mean(one)}", "  ")
        for line in restarts(one):
            lines += folded(f"  {line}", "    ")
    return "\n".join(lines)


def html(state: State) -> str:
    """Draw of each trainer the picture of its curve, and tables of its ranks and restarts."""
    parts = [f"<p>{escape(_caption(state))}</p>"]
    for one in state["runs"]:
        data = b64encode(picture(one).encode()).decode()
        alt = escape(f"The loss of {one['name']}, {_span(one)}", quote=True)
        parts.append(
            f'<figure><img alt="{alt}" src="data:image/svg+xml;base64,{data}">'
            f"<figcaption>{escape(headline(one))}</figcaption></figure>"
        )
        parts.append(as_html(f"{one['name']}: {_mean(one)}", TIMES, _ranks(one)))
        if "restarts" in one:
            items = "".join(f"<li>{escape(line)}</li>" for line in restarts(one))
            parts.append(f"<ul>{items}</ul>")
    return "".join(parts)


def headline(one: State) -> str:
    """Say how far a trainer is, in a line."""
    said = [f"{one['name']}: step {one['step']:,}", f"loss {one.get('loss', 'not finite')}"]
    said.append(f"learning rate {one['rate']}")
    if "norm" in one:
        said.append(f"gradient norm {one['norm']}")
    if "speed" in one:
        said.append("{} {}/s".format(*one["speed"]))
    return ", ".join((*said, f"{one['took']} a step"))


def sparkline(values: Sequence[float | None], wide: int = WIDE) -> str:
    """Draw values as characters of eight heights; a cell is a mean, and empty where none is."""
    cells = []
    count = min(wide, len(values))
    for cell in range(count):
        part = values[cell * len(values) // count : (cell + 1) * len(values) // count]
        known = [one for one in part if one is not None]
        cells.append(sum(known) / len(known) if known else None)
    seen = [one for one in cells if one is not None]
    low, high = min(seen, default=0.0), max(seen, default=0.0)
    scale = (len(LEVELS) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if one is None else LEVELS[round((one - low) * scale)] for one in cells)


def restarts(one: State) -> Iterator[str]:
    """Yield the newest steps that were done again, and why."""
    for told in one.get("restarts", ())[:RESTARTS]:
        back = f", and {told['again'] - 1:,} before it" if told.get("again", 0) > 1 else ""
        yield (
            f"{time_of_day(told['at'])} step {told['step']:,} was done again{back}: "
            f"{'; '.join(told['why'])}"
        )


def _span(one: State) -> str:
    steps, losses = one["curve"]["steps"], one["curve"]["loss"]
    known = [loss for loss in losses if loss is not None]
    went = f"{known[0]:.4g} → {known[-1]:.4g}, " if known else ""
    return f"{went}step {steps[0]:,} to {steps[-1]:,}"


def _mean(one: State) -> str:
    many = one["mean_of"]
    return f"Mean of {many} steps. {NOTE}" if many > 1 else f"The last step. {NOTE}"


def _ranks(one: State) -> Iterator[tuple[str, ...]]:
    for rank in one["ranks"]:
        yield rank["device"], *rank["words"]


def _caption(state: State) -> str:
    ending = " (closed)" if state["closed"] else ""
    title = f"{state['lab'] or 'training'}: training{ending}"
    return title if state["runs"] else f"{title}, no step was trained"
