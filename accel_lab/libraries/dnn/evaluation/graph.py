"""Graphs of the user's nodes, one node after the other."""

from collections.abc import Callable
from typing import Any

import numpy as np

from accel_lab.libraries.dnn.activation import ACTIVATIONS
from accel_lab.libraries.dnn.evaluation import activating, convolving
from accel_lab.libraries.dnn.evaluation.kit import Kit
from accel_lab.libraries.dnn.graph import NODE_REDUCTIONS, ConvNode, Node, RunGraph
from accel_lab.libraries.dnn.windows import windows


class Graphs:
    """Graphs of nodes.

    Parameters:
        kit: the backend's arrays.
    """

    def __init__(self, kit: Kit) -> None:
        self.kit = kit

    @np.errstate(all="ignore")
    def run_graph(
        self, m: RunGraph, operands: list[Any], out: Any, workspace: Callable[[int], Any]
    ) -> None:
        """Write what the last node makes."""
        del workspace  # what is between are arrays
        dtype = m.tensors[0].dtype
        values = [self.kit.widened(x, dtype) for x in operands]
        for node in m.nodes:
            values.append(self._made(node, [values[at] for at in node[1]]))
        self.kit.store(values[-1], out, dtype)

    def _made(self, node: Node, given: list[Any]) -> Any:
        """Return what a node makes."""
        op, _, options = node
        xp = self.kit.xp
        if op in ACTIVATIONS:
            return activating.activated(self.kit, op, given[0])
        if op in NODE_REDUCTIONS:
            return getattr(given[0], op)(axis=options[0], keepdims=True)
        if op == "conv":
            x, w = given
            return convolving.forward(xp, x, w, windows(ConvNode(*options), w.shape[2:]), 1)
        return getattr(xp, op)(*given)
