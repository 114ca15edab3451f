"""A drawn graph as an SVG file, for pages that run no script; it follows the page's dark mode."""

from html import escape

from accel_lab.views.widget.view import State

_STYLE = """
text{font:12px system-ui,sans-serif;text-anchor:middle;fill:#1f2328}.u{fill:#57606a;font-size:11px}
.n{fill:#fff;stroke:#8c959f}.r{stroke:#0b5cad;stroke-width:2.5}.f{stroke:#b3261e}
.e{fill:none;stroke:#8c959f;stroke-width:1.5}.c{stroke-dasharray:5 4}.h{fill:#57606a}
.l{paint-order:stroke;stroke:#fff;stroke-width:7px}
@media(prefers-color-scheme:dark){text{fill:#e6e9ed}.u,.h{fill:#a3adb8}.n{fill:#1c2128}
.r{stroke:#79b8ff}.f{stroke:#ff938a}.l{stroke:#1c2128}}
"""
LONGEST = 20
"""So many characters of a node's name are drawn."""


def picture(agent: State) -> str:
    """Return the graph of an agent as SVG."""
    width, height = agent["width"], agent["height"]
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    drawn = (*map(_edge, agent["edges"]), *map(_node, agent["nodes"]))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{_STYLE}</style>'
    return f"{head}{''.join(drawn)}</svg>"


def under(node: State) -> str:
    """Say below a node's name what runs, is done and failed."""
    said = [f"{node['running']:,} running"] if "running" in node else []
    if "done" in node:
        said.append(f"{node['done']:,} done")
    if "failed" in node:
        said.append(f"{node['failed']:,} failed")
    return ", ".join(said)


def label(edge: State) -> str:
    """Say at an edge how often it was taken, and whether all must have come."""
    taken = f"{edge['taken']:,}" if "taken" in edge else ""
    return " ".join(filter(None, ("all" if "joins" in edge else "", taken)))


def shortened(name: str) -> str:
    """Return a name as long as a node is wide."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _node(one: State) -> str:
    x, y, width, height = one["x"], one["y"], one["width"], one["height"]
    tone = " r" if "running" in one else " f" if "failed" in one else ""
    said = under(one) if one["name"] not in ("START", "END") else ""
    corner = 7 if said or tone else height / 2 if height < 30 else 7  # noqa: PLR2004 - a pill
    text = f'<text x="{x}" y="{y + (-2 if said else 4):g}">{escape(shortened(one["name"]))}</text>'
    more = f'<text class="u" x="{x}" y="{y + 14:g}">{escape(said)}</text>' if said else ""
    left, top = x - width / 2, y - height / 2
    return (
        f'<rect class="n{tone}" x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" '
        f'rx="{corner:g}"/>{text}{more}'
    )


def _edge(one: State) -> str:
    x, y = one["end"]
    head = f"{x},{y} {x + 7},{y - 4} {x + 7},{y + 4}" if "back" in one else _down(x, y)
    said = label(one)
    at = one["label"]
    text = f'<text class="u l" x="{at[0]}" y="{at[1] + 4:g}">{said}</text>' if said else ""
    kind = "e c" if "chosen" in one else "e"
    return f'<path class="{kind}" d="{one["path"]}"/><polygon class="h" points="{head}"/>{text}'


def _down(x: float, y: float) -> str:
    return f"{x},{y} {x - 4},{y - 7} {x + 4},{y - 7}"
