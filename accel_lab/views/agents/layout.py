"""Where the nodes and edges of an agent's graph stand: in layers, from START down to END.

Edges that lead back are set aside. A node stands below all that lead to it, an edge that crosses
layers bends around their nodes, and each layer is ordered by the mean place of its neighbours
(Sugiyama, Tagawa and Toda, 1981). Lengths are pixels.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

START, END = "START", "END"
NODE = 148, 46
END_OF_ALL = 64, 24
BEND = 18, 0
"""How wide and how high a node is, START and END, and an edge where it passes a layer."""
ACROSS, DOWN, LANE = 26, 42, 20
"""From a node to the next one, from a layer to the next one, and between edges that lead back."""
MARGIN = 14
SWEEPS = 8

Edge = tuple[str, str]
Point = tuple[float, float]


class Box(NamedTuple):
    """A node: the middle, and how large it is."""

    x: float
    y: float
    width: float
    height: float


class Line(NamedTuple):
    """An edge: a path as SVG writes it, where its arrow ends, whether that points left, a label."""

    path: str
    end: Point
    is_back: bool
    label: Point


class Layout(NamedTuple):
    """All of a graph."""

    width: float
    height: float
    boxes: Mapping[str, Box]
    lines: Mapping[Edge, Line]


@lru_cache(maxsize=64)
def layout(nodes: tuple[str, ...], edges: tuple[Edge, ...]) -> Layout:
    """Place nodes and the edges between them, START and END included."""
    names = (START, *nodes, END)
    onward: dict[str, list[str]] = {name: [] for name in names}
    for source, target in edges:
        onward[source].append(target)
    back = _leading_back(names, onward)
    forth = [edge for edge in edges if edge not in back]
    depth = _depths(names, forth)
    layers: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for name in names:
        layers[depth[name]].append(name)
    chains = {edge: _chain(edge, depth, layers) for edge in forth}
    above: dict[str, list[str]] = {name: [] for layer in layers for name in layer}
    below: dict[str, list[str]] = {name: [] for layer in layers for name in layer}
    for chain in chains.values():
        for one, other in pairwise(chain):
            below[one].append(other)
            above[other].append(one)
    x = _across(layers, above, below)
    return _drawn(x, layers, chains, back)


def _size(name: str) -> tuple[int, int]:
    if name in (START, END):
        return END_OF_ALL
    return BEND if "\0" in name else NODE


def _leading_back(names: Sequence[str], onward: Mapping[str, Sequence[str]]) -> list[Edge]:
    """Return the edges to a node on the way to which they begin, by a search in depth."""
    back: list[Edge] = []
    done: set[str] = set()
    for first in names:
        if first in done:
            continue
        path, ahead = [first], [iter(onward[first])]
        while path:
            for name in ahead[-1]:
                if name in path:
                    back.append((path[-1], name))
                elif name not in done:
                    path.append(name)
                    ahead.append(iter(onward[name]))
                    break
            else:
                done.add(path.pop())
                ahead.pop()
    return back


def _depths(names: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """Return the layer of each node: one below the lowest that leads to it, and END below all."""
    depth = dict.fromkeys(names, 0)
    for _ in names:
        for source, target in edges:
            depth[target] = max(depth[target], depth[source] + 1)
    depth[END] = max(depth[END], *(1 + depth[name] for name in names if name != END))
    return depth


def _chain(edge: Edge, depth: Mapping[str, int], layers: list[list[str]]) -> list[str]:
    """Return what an edge passes, and put its bends into the layers between."""
    source, target = edge
    between = range(depth[source] + 1, depth[target])
    bends = [f"{source}\0{target}\0{level}" for level in between]
    for level, bend in zip(between, bends, strict=True):
        layers[level].append(bend)
    return [source, *bends, target]


def _across(
    layers: list[list[str]], above: Mapping[str, Sequence[str]], below: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Order each layer, and return where each node is from left to right."""
    x: dict[str, float] = {}
    for layer in layers:
        _place(layer, dict.fromkeys(layer, 0.0), x)
    for sweep in range(SWEEPS):
        neighbours = below if sweep % 2 else above
        for layer in layers[::-1] if sweep % 2 else layers:
            wish = {
                name: sum(x[one] for one in neighbours[name]) / len(neighbours[name])
                if neighbours[name]
                else x[name]
                for name in layer
            }
            if sweep < SWEEPS // 2:
                layer.sort(key=wish.__getitem__)
            _place(layer, wish, x)
    return x


def _place(layer: Sequence[str], wish: Mapping[str, float], x: dict[str, float]) -> None:
    """Put a layer's nodes as near to their wishes as they fit beside each other.

    That is isotonic regression: neighbours that would overlap become one block at its mean wish.
    """
    offsets, at = [], 0.0
    for place, name in enumerate(layer):
        half = _size(name)[0] / 2
        at += half + (ACROSS if place else 0)
        offsets.append(at)
        at += half
    blocks: list[tuple[float, int]] = []
    for name, offset in zip(layer, offsets, strict=True):
        mean, count = wish[name] - offset, 1
        while blocks and blocks[-1][0] >= mean:
            before, size = blocks.pop()
            mean = (mean * count + before * size) / (count + size)
            count += size
        blocks.append((mean, count))
    shifts = [mean for mean, count in blocks for _ in range(count)]
    for name, offset, shift in zip(layer, offsets, shifts, strict=True):
        x[name] = shift + offset


def _drawn(
    x: Mapping[str, float],
    layers: Sequence[Sequence[str]],
    chains: Mapping[Edge, Sequence[str]],
    back: Sequence[Edge],
) -> Layout:
    left = min(x[name] - _size(name)[0] / 2 for name in x) - MARGIN
    boxes: dict[str, Box] = {}
    y = float(MARGIN)
    for layer in layers:
        height = max(_size(name)[1] for name in layer)
        for name in layer:
            boxes[name] = Box(x[name] - left, y + height / 2, *_size(name))
        y += height + DOWN
    right = max(box.x + box.width / 2 for box in boxes.values())
    lines = {edge: _down([boxes[name] for name in chain]) for edge, chain in chains.items()}
    for number, (source, target) in enumerate(back):
        box = boxes[source]
        lane = right + LANE * (number + 1)
        if source == target:
            lane = box.x + box.width / 2 + LANE
        lines[source, target] = _up(boxes[source], boxes[target], lane)
    width = right + LANE * len(back) + MARGIN
    shown = {name: box for name, box in boxes.items() if "\0" not in name}
    return Layout(round(width, 1), y - DOWN + MARGIN, shown, lines)


def _down(boxes: Sequence[Box]) -> Line:
    """Lead from the foot of a box through bends to the head of another."""
    first, last = boxes[0], boxes[-1]
    points: list[Point] = [(first.x, first.y + first.height / 2)]
    for box in boxes[1:-1]:
        points += [(box.x, box.y - NODE[1] / 2), (box.x, box.y + NODE[1] / 2)]
    points.append((last.x, last.y - last.height / 2 - 6))
    path = f"M{_at(points[0])}"
    for before, point in pairwise(points):
        middle = (before[1] + point[1]) / 2
        path += f"C{_at((before[0], middle))} {_at((point[0], middle))} {_at(point)}"
    first_stop = points[1]
    label = (points[0][0] + first_stop[0]) / 2, (points[0][1] + first_stop[1]) / 2
    return Line(path, (last.x, last.y - last.height / 2), is_back=False, label=label)


def _up(source: Box, target: Box, lane: float) -> Line:
    """Lead around the right side, back up to a box or to where it began."""
    apart = 8 if source is target else 0
    start = source.x + source.width / 2, source.y + apart
    end = target.x + target.width / 2, target.y - apart
    foot, head = (lane, start[1]), (lane, end[1])
    path = f"M{_at(start)}C{_at(foot)} {_at(foot)} {_at((lane, start[1] - 10))}"
    path += f"L{_at((lane, end[1] + 10))}C{_at(head)} {_at(head)} {_at((end[0] + 6, end[1]))}"
    return Line(path, end, is_back=True, label=(lane, (start[1] + end[1]) / 2))


def _at(point: Point) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"
