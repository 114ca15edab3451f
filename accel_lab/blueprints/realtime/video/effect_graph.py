"""Which effects there are on a frame, and which takes its frames from which."""

from typing import NamedTuple

from accel_lab.blueprints.realtime.video.effects import Effect, require_effect, sources_of
from accel_lab.blueprints.realtime.video.errors import EffectCycle
from accel_lab.errors import InvalidArgument

FRAME = "frame"
"""The source that is the frame itself."""
MOST_NODES = 256


class Node(NamedTuple):
    """An effect, and the nodes that it takes its frames from."""

    effect: Effect
    sources: tuple[str, ...]


class EffectGraph:
    """Effects by name, declared in any order.

    Attributes:
        nodes: what was declared.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}

    def node(self, name: str, effect: Effect, *sources: str) -> "EffectGraph":
        """Declare a node; return the graph.

        Parameters:
            sources: nodes whose frames it takes, which may be declared later; "frame", when none is
                given, is the frame itself. `Blend` and `Merge` take two, and `Mask` three.

        Raises:
            InvalidArgument: the name is taken, it is no effect, or one that takes another number
                of frames, or there are too many nodes.
        """
        if not name or name == FRAME or name in self.nodes:
            raise InvalidArgument(f"a node has a name of its own, and {name!r} is taken")
        if len(self.nodes) == MOST_NODES:
            raise InvalidArgument(f"node {name!r}: a graph has at most {MOST_NODES} nodes")
        require_effect(effect)
        sources = sources or (FRAME,)
        takes = sources_of(effect)
        if len(sources) != takes:
            raise InvalidArgument(
                f"node {name!r}: {type(effect).__name__} takes {takes} frames, not {len(sources)}"
            )
        self.nodes[name] = Node(effect, sources)
        return self

    def order(self, outputs: tuple[str, ...]) -> list[str]:
        """Return all nodes, each behind those that it takes frames from.

        Raises:
            InvalidArgument: a name is none of a node, or a node is for no output.
            EffectCycle: nodes take their frames from each other.
        """
        order: list[str] = []
        for name in outputs:
            self._visit(name, "outputs", [], order)
        spare = [name for name in self.nodes if name not in order]
        seen = list(order)
        for name in spare:  # a cycle that no output asks for is told as such
            self._visit(name, "outputs", [], seen)
        if spare:
            raise InvalidArgument(
                f"node {spare[0]!r} leads to none of the outputs {', '.join(outputs)}"
            )
        return order

    def _visit(self, name: str, asked_by: str, path: list[str], order: list[str]) -> None:
        """Put a node into the order behind its sources."""
        if name in path:
            cycle = (*path[path.index(name) :], name)[::-1]
            text = f"effects take their frames from each other: {' -> '.join(cycle)}"
            raise EffectCycle(text, path=cycle)
        if name in order or name == FRAME:
            return
        if name not in self.nodes:
            raise InvalidArgument(f"{asked_by} names {name!r}, and there is no such node")
        path.append(name)
        for source in self.nodes[name].sources:
            self._visit(source, f"node {name!r}", path, order)
        path.pop()
        order.append(name)
