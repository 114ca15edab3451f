"""Where a graph's nodes stand: nothing overlaps, and edges lead down unless they lead back."""

import re
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab.views.agents.layout import END, START, Box, Edge, layout


@st.composite
def graphs(draw: st.DrawFn) -> tuple[tuple[str, ...], tuple[Edge, ...]]:
    """Draw a graph in which START leads to a node, and each node leads on."""
    nodes = tuple(f"n{k}" for k in range(draw(st.integers(1, 9))))
    edges = {(START, nodes[0])}
    for node in nodes:
        for target in draw(st.sets(st.sampled_from((*nodes, END)), min_size=1, max_size=3)):
            edges.add((node, target))
    return nodes, tuple(sorted(edges))


def apart(one: Box, other: Box) -> bool:
    x, y = abs(one.x - other.x), abs(one.y - other.y)
    return x >= (one.width + other.width) / 2 - 1e-6 or y >= (one.height + other.height) / 2


@settings(max_examples=60, deadline=None)
@given(graph=graphs())
def test_nothing_overlaps_and_all_is_inside(
    graph: tuple[tuple[str, ...], tuple[Edge, ...]],
) -> None:
    nodes, edges = graph
    drawn = layout(nodes, edges)
    assert set(drawn.boxes) == {START, *nodes, END}
    assert set(drawn.lines) == set(edges)
    for one, other in combinations(drawn.boxes.values(), 2):
        assert apart(one, other)
    for box in drawn.boxes.values():
        assert box.width / 2 <= box.x <= drawn.width - box.width / 2
        assert box.height / 2 <= box.y <= drawn.height - box.height / 2
    for line in drawn.lines.values():
        numbers = [float(one) for one in re.findall(r"-?\d+\.\d", line.path)]
        assert all(-1e-6 <= x <= drawn.width for x in numbers[::2])
        assert all(0 <= y <= drawn.height for y in numbers[1::2])


@settings(max_examples=60, deadline=None)
@given(graph=graphs())
def test_without_the_edges_that_lead_back_all_lead_down(
    graph: tuple[tuple[str, ...], tuple[Edge, ...]],
) -> None:
    nodes, edges = graph
    drawn = layout(nodes, edges)
    for (source, target), line in drawn.lines.items():
        above, below = drawn.boxes[source].y, drawn.boxes[target].y
        assert (above < below) != line.is_back


def test_a_chain_is_straight_and_a_fork_is_even() -> None:
    edges = ((START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", END))
    boxes = layout(("a", "b", "c", "d"), edges).boxes
    assert boxes[START].x == boxes["a"].x == boxes["d"].x == boxes[END].x
    assert boxes["b"].y == boxes["c"].y
    assert abs(boxes["b"].x + boxes["c"].x - 2 * boxes["a"].x) < 1e-6


def test_an_edge_that_skips_a_layer_passes_beside_its_node() -> None:
    drawn = layout(("a", "b"), ((START, "a"), ("a", "b"), ("b", END), ("a", END)))
    box = drawn.boxes["b"]
    numbers = [float(one) for one in re.findall(r"-?\d+\.\d", drawn.lines["a", END].path)]
    beside = [x for x, y in zip(numbers[::2], numbers[1::2], strict=True) if abs(y - box.y) < 24]
    assert beside
    assert all(abs(x - box.x) > box.width / 2 for x in beside)
