"""The collectives view as lines of text and as semantic tables."""

from collections.abc import Iterator

from accel_lab.display.clock import time_of_day
from accel_lab.display.counts import counted
from accel_lab.display.table import aligned, as_html, as_text, folded
from accel_lab.views.widget.view import State

GLYPHS = {
    "ready": "○",
    "arrived": "●",
    "waited for": "◐",
    "queued": "○",
    "joining": "◌",
    "starting": "◌",
    "suspended": "☾",
    "lost": "⊗",
    "out": "■",
    "formed": "●",
    "broken": "⊗",
    "given up": "▲",
}
FAILED = "▲ failed"
RANKS = ("Rank", "Device", "State", "Began", "Usually")
OPERATIONS = ("Operation", "Of", "Way", "Took", "Bus bandwidth", "Last to begin")
HEALING = ("Time", "Epoch", "", "What")
NUMBERS = {"Rank", "Epoch", "Began", "Usually", "Took", "Bus bandwidth"}


def text(state: State) -> str:
    """Draw a state as aligned lines, a paragraph a world."""
    lines = [_caption(state)]
    for world in state["worlds"]:
        lines += ["", *_paragraph(world)]
    return "\n".join(lines)


def html(state: State) -> str:
    """Draw a state as tables: of each world its ranks, its operations and its healing."""
    if not state["worlds"]:
        return f"<p>{_caption(state)}</p>"
    tables = []
    for world in state["worlds"]:
        caption = f"{_caption(state)}: {'; '.join((headline(world), *sentences(world)))}"
        tables.append(as_html(caption, RANKS, _ranks(world), head=1))
        if "ended" in world:
            tables.append(as_html(f"{world['name']}: last operations", OPERATIONS, _ended(world)))
        if "healing" in world:
            tables.append(as_html(f"{world['name']}: epochs", HEALING, _healing(world)))
    return "".join(tables)


def headline(world: State) -> str:
    """Say what a world is, in a line."""
    ranks = counted(len(world["ranks"]), "rank")
    return f"{world['name']}: {world['state']}, epoch {world['epoch']}, {ranks}"


def sentences(world: State) -> Iterator[str]:
    """Say what is under way, who is late, and how fast it was."""
    if "op" in world:
        yield under_way(world["op"])
    if "late" in world:
        late = world["late"]
        yield f"{late['device']} begins last, by {late['by']} (median of {late['of']})"
    if "bus" in world:
        bus = world["bus"]
        link = f", slowest link {bus['link']} as measured" if "link" in bus else ""
        yield f"bus bandwidth {bus['newest']}, best {bus['best']}{link}"
    if "ring" in world:
        ring = world["ring"]
        count = counted(len(ring["steps"]), "step")
        yield f"{ring['call']} in {count}: each rank sends {ring['part']} at most to the next one"
    failed = f", {world['failed']:,} failed" if "failed" in world else ""
    yield f"{world['done']:,} done{failed}"


def under_way(op: State) -> str:
    """Say what is under way: all_reduce of 4 MiB float32, ring, for 1.2 s; waits for cpu1."""
    said = f"{op['call']} of {op['what']}" if op["what"] else op["call"]
    said += "".join(f", {op[name]}" for name in ("algorithm",) if name in op)
    said += f", for {op['for']}" if "for" in op else ", not begun"
    if "missing" in op:
        said += f"; waits for {', '.join(op['missing'])}"
    if "more" in op:
        said += f"; {op['more']:,} more queued, {op['bytes']} in all"
    return said


def _paragraph(world: State) -> Iterator[str]:
    yield headline(world)
    yield from (f"  {line}" for line in as_text(RANKS, _ranks(world), NUMBERS))
    yield from (f"  {said}" for said in sentences(world))
    if "ended" in world:
        yield "  last operations:"
        rows = [[" ".join(row[:2]), *row[2:]] for row in _ended(world, FAILED)]
        for one, line in zip(world["ended"], aligned(rows), strict=True):
            yield f"    {line}"
            if "failure" in one:
                yield from folded(f"      {one['failure']}", "      ")
    for at, epoch, word, what in _healing(world):
        yield f"  {at} {word} (epoch {epoch}) {what}"


def _ranks(world: State) -> Iterator[tuple[str, ...]]:
    for number, rank in enumerate(world["ranks"]):
        word = f"{GLYPHS.get(rank['word'], '?')} {rank['word']}"
        yield str(number), rank["device"], word, rank.get("after", ""), rank.get("usual", "")


def _ended(world: State, failed: str = "") -> Iterator[tuple[str, ...]]:
    """Yield what stands in each column.

    Parameters:
        failed: what is said of an operation that failed; without it the reason.
    """
    for one in world["ended"]:
        took = one.get("took") or failed or f"{FAILED}: {one['failure']}"
        rest = (took, one.get("bandwidth", ""), one.get("last", ""))
        yield one["call"], one["what"], one.get("algorithm", ""), *rest


def _healing(world: State) -> Iterator[tuple[str, ...]]:
    for one in world.get("healing", ()):
        word = f"{GLYPHS[one['word']]} {one['word']}"
        yield time_of_day(one["at"]), str(one["epoch"]), word, one["what"]


def _caption(state: State) -> str:
    ending = " (closed)" if state["closed"] else ""
    title = f"{state['lab'] or 'collectives'}: collectives{ending}"
    return title if state["worlds"] else f"{title}, no world was opened"
