"""A graph that runs: its nodes in order, values let go after their last use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.libraries.array import library as array
from accel_lab.onnx.node import Call, Node, is_there, on_device, on_host
from accel_lab.onnx.values import SMALL, Value


class Scope:
    """The values of one run of a graph, inside those of the graph around it."""

    __slots__ = ("_around", "_graph", "_values")

    def __init__(self, graph: "Graph", values: dict[str, Value], around: "Scope | None") -> None:
        self._graph, self._values, self._around = graph, values, around

    def __getitem__(self, name: str) -> Value:
        if name in self._values:
            return self._values[name]
        if name in self._graph.constants:
            return self._graph.constants[name]
        assert self._around is not None
        return self._around[name]

    def placed(self, name: str, value: Value, device: Device) -> Value:
        """Return a value on the device; a constant is put once."""
        if not isinstance(value, np.ndarray | list):
            return value
        graph = self.home(name)
        if graph is None:
            return on_device(device, value)
        if name not in graph.placed:
            graph.placed[name] = on_device(device, value)
        return graph.placed[name]

    def home(self, name: str) -> "Graph | None":
        """Return the graph of which a name is a constant."""
        if name in self._values:
            return None
        if name in self._graph.constants:
            return self._graph
        return self._around.home(name) if self._around is not None else None

    def keep(self, names: Iterable[str], values: Iterable[Value]) -> None:
        """Take in what a node made."""
        self._values.update((n, v) for n, v in zip(names, values, strict=False) if n)

    def let_go(self, names: Iterable[str]) -> None:
        """Let go of what nobody uses any more."""
        for name in names:
            self._values.pop(name, None)


@dataclass(slots=True)
class Graph:
    """A graph as it was loaded.

    Attributes:
        captured: the names it uses of the graphs around it.
        constants: what is the same in every run; after `fold` it also has what is made of them.
        placed: those of the constants in the notebook that were put on the device.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: list[Node]
    captured: frozenset[str]
    constants: dict[str, Value]
    placed: dict[str, Value] = field(default_factory=dict)
    last: list[tuple[str, ...]] = field(default_factory=list)

    def fold(self, device: Device, around: Mapping[str, Value]) -> None:
        """Put large constants, and compute once what is made of constants alone.

        Parameters:
            around: the constants of the graphs around it.
        """
        for name, value in self.constants.items():
            if isinstance(value, np.ndarray) and value.size > SMALL:
                self.constants[name] = device.put(value)
        fixed = {n: v for n, v in self.constants.items() if n not in self.inputs}  # no defaults
        known = {**around, **fixed}
        scope, left = Scope(self, dict(around), None), []
        for node in self.nodes:
            graphs = subgraphs(node)
            if node.operator.pure and not graphs and all(n in known for n in node.inputs if n):
                made = run_node(node, scope, device)
                known.update((n, v) for n, v in zip(node.outputs, made, strict=False) if n)
                self.constants.update((n, known[n]) for n in node.outputs if n in known)
                continue
            for graph in graphs:
                graph.fold(device, known)
            left.append(node)
        self.nodes = left
        self._find_last_uses()
        used = {*self.outputs}.union(*map(used_by, left))
        self.constants = {n: v for n, v in self.constants.items() if n in used}

    def _find_last_uses(self) -> None:
        """Note behind each node what it was the last to use."""
        self.last, seen = [()] * len(self.nodes), {*self.outputs}
        for at in reversed(range(len(self.nodes))):
            node = self.nodes[at]
            used = ({*node.outputs} | used_by(node)) - {""}
            self.last[at] = tuple(name for name in used - seen)
            seen |= used

    def run(
        self, device: Device, inputs: Mapping[str, Value], around: Scope | None = None
    ) -> list[Value]:
        """Run all nodes in order, and return the outputs; does not block, but for shapes.

        An output that is a constant is a copy: it may be written to.
        """
        scope = Scope(self, dict(inputs), around)
        for node, last in zip(self.nodes, self.last, strict=True):
            scope.keep(node.outputs, run_node(node, scope, device))
            scope.let_go(last)
        return [self._own(name, scope) for name in self.outputs]

    def _own(self, name: str, scope: Scope) -> Value:
        value = scope[name]
        is_constant = name in self.constants and value is self.constants[name]
        return array.copy(value) if is_constant and isinstance(value, AccelRef) else value


def used_by(node: Node) -> set[str]:
    """Return the names that a node uses, also inside its subgraphs."""
    return {*node.inputs}.union(*(graph.captured for graph in subgraphs(node))) - {""}


def subgraphs(node: Node) -> list[Graph]:
    """Return the graphs that a node has as attributes."""
    return [value for value in node.attributes.values() if isinstance(value, Graph)]


def run_node(node: Node, scope: Scope, device: Device) -> tuple[Value, ...]:
    """Compute one node; an error says which it was."""
    operator = node.operator
    values = [scope[name] if name else None for name in node.inputs]
    flowing = [value for at, value in enumerate(values) if at not in operator.host]
    here = operator.anywhere and not any(map(is_there, flowing))
    for at, name in enumerate(node.inputs):
        if at in operator.host:
            values[at] = on_host(values[at])
        elif not here:
            values[at] = scope.placed(name, values[at], device)
    call = Call(node, device, np if here else array, scope)
    try:
        if not here:
            made = operator.function(call, *values)
        else:
            with np.errstate(all="ignore"):
                made = operator.function(call, *values)
    except AccelError as error:
        error.add_note(f"in node {node} ({node.op_type}) of an ONNX model")
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        text = f"node {node} ({node.op_type}) of an ONNX model: {error}"
        raise InvalidArgument(text) from error
    results = made if isinstance(made, tuple) else (made,)
    return tuple(np.asarray(one) if isinstance(one, np.generic) else one for one in results)
