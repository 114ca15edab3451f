"""A graph for people: Graphviz's language, and a page with a box for each message."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Protocol

WIDTH, HEIGHT, GAP = 190, 44, 22
MOST_DRAWN = 200


class Drawn(Protocol):
    """A recorded step, for people."""

    @property
    def title(self) -> str:
        """What it is called."""

    @property
    def made(self) -> str:
        """What it makes."""

    @property
    def reads(self) -> tuple[int, ...]:
        """The buffers that it names."""

    @property
    def writes(self) -> tuple[int, ...]:
        """Those that it writes or makes."""

    @property
    def depth(self) -> int:
        """In how many branches it stands."""


def edges(nodes: Sequence[Drawn]) -> Iterator[tuple[int, int]]:
    """Yield which node follows which: it names what the other has written last."""
    writer: dict[int, int] = {}
    for at, node in enumerate(nodes):
        before = {writer[slot] for slot in (*node.reads, *node.writes) if slot in writer}
        yield from ((one, at) for one in sorted(before))
        writer.update(dict.fromkeys(node.writes, at))


def as_dot(nodes: Sequence[Drawn], seconds: Sequence[float] | None) -> str:
    """Return the graph in Graphviz's language."""
    lines = ["digraph accel_lab {", "  node [shape=box];"]
    for at, node in enumerate(nodes):
        text = "\\n".join(_quoted(line) for line in _texts(node, at, seconds))
        style = ", style=dashed" if node.depth else ""
        lines.append(f'  n{at} [label="{text}"{style}];')
    lines += [f"  n{one} -> n{other};" for one, other in edges(nodes)]
    return "\n".join([*lines, "}"])


def as_page(title: str, nodes: Sequence[Drawn], seconds: Sequence[float] | None) -> str:
    """Return the graph as HTML with a drawing: each message stands below what it follows."""
    nodes = nodes[:MOST_DRAWN]
    links = list(edges(nodes))
    row = [0] * len(nodes)
    for one, other in links:
        row[other] = max(row[other], row[one] + 1)
    column = [row[:at].count(level) for at, level in enumerate(row)]
    place = [
        (GAP + across * (WIDTH + GAP), GAP + level * (HEIGHT + GAP))
        for across, level in zip(column, row, strict=True)
    ]
    longest = max(seconds, default=0.0) if seconds else 0.0
    parts = [
        f'<line x1="{place[one][0] + WIDTH // 2}" y1="{place[one][1] + HEIGHT}" '
        f'x2="{place[other][0] + WIDTH // 2}" y2="{place[other][1]}" stroke="currentColor" '
        'stroke-opacity="0.4"/>'
        for one, other in links
    ]
    for at, node in enumerate(nodes):
        parts += _box(place[at], _texts(node, at, seconds), node.depth)
        if longest and seconds and at < len(seconds):
            share = int(WIDTH * seconds[at] / longest)
            x, y = place[at]
            parts.append(f'<rect x="{x}" y="{y + HEIGHT - 4}" width="{share}" height="4"/>')
    width = max((x for x, _ in place), default=0) + WIDTH + GAP
    height = max((y for _, y in place), default=0) + HEIGHT + GAP
    drawn = "\n".join(parts)
    return (
        f"<div><b>{escape(title)}</b><div style='overflow:auto; max-height:40em'>"
        f'<svg width="{width}" height="{height}" fill="currentColor" font-size="12">\n{drawn}\n'
        "</svg></div></div>"
    )


def _box(place: tuple[int, int], texts: Sequence[str], depth: int) -> list[str]:
    x, y = place
    dashed = ' stroke-dasharray="4"' if depth else ""
    frame = f'fill="none" stroke="currentColor"{dashed}'
    found = [f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" {frame}/>']
    for line, text in enumerate(texts[:2]):
        found.append(f'<text x="{x + 6}" y="{y + 16 + 16 * line}">{escape(text)}</text>')
    return found


def _texts(node: Drawn, at: int, seconds: Sequence[float] | None) -> list[str]:
    """Return the lines of a box: what it is and what it makes, with its time."""
    took = f"{seconds[at] * 1e6:.1f} µs" if seconds and at < len(seconds) else ""
    return [node.title, "  ".join(filter(None, (node.made, took)))]


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
