"""Layers of neural networks and their gradients: cuDNN and CuPy on `cuda`, NumPy on `host`.

On `cuda` convolutions and graphs of float16, bfloat16 and float32 are cuDNN's where it is installed
and has an engine that gives the same bits each time, with plans that are kept on disk; all other
products are cuBLAS's. Everything else is CuPy's kernels. float16 and bfloat16 are computed in
float32; float32 is not rounded to tf32.
"""

from typing import Any, ClassVar

from accel_lab.compute.execution.launch import Launch, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.authoring.default_actor import DefaultActor
from accel_lab.libraries.authoring.operand import output
from accel_lab.libraries.dnn.activation import *  # noqa: F403 - dnn.relu and the like
from accel_lab.libraries.dnn.convolution import *  # noqa: F403 - dnn.conv and the like
from accel_lab.libraries.dnn.convolution import (
    Conv,
    ConvDataGradient,
    ConvFilterGradient,
    ConvTranspose,
)
from accel_lab.libraries.dnn.graph import *  # noqa: F403 - dnn.Graph
from accel_lab.libraries.dnn.graph import RunGraph
from accel_lab.libraries.dnn.normalization import *  # noqa: F403 - dnn.normalization
from accel_lab.libraries.dnn.pooling import *  # noqa: F403 - dnn.pooling
from accel_lab.libraries.dnn.recurrence import *  # noqa: F403 - dnn.lstm and the like
from accel_lab.libraries.dnn.response import *  # noqa: F403 - dnn.local_response_norm
from accel_lab.libraries.dnn.softmax import *  # noqa: F403 - dnn.softmax
from accel_lab.libraries.dnn.training import *  # noqa: F403 - dnn.training
from accel_lab.libraries.dnn.weights import *  # noqa: F403 - dnn.Weights


class DnnActor(DefaultActor):
    """Gives convolutions and graphs a workspace; all else is read, and written at once."""

    library: ClassVar[str] = "dnn"

    @handles(Conv)
    def conv(self, m: Conv, launch: Launch) -> None:
        """Enqueue a convolution."""
        out = output(launch, "x", "w", "bias")
        self.lib.conv(m, *_read(launch, m.x, m.w, m.bias), out, launch.workspace)

    @handles(ConvDataGradient)
    def conv_data_gradient(self, m: ConvDataGradient, launch: Launch) -> None:
        """Enqueue a data gradient."""
        out = output(launch, "dy", "w")
        self.lib.conv_data_gradient(m, *_read(launch, m.dy, m.w), out, launch.workspace)

    @handles(ConvFilterGradient)
    def conv_filter_gradient(self, m: ConvFilterGradient, launch: Launch) -> None:
        """Enqueue a filter gradient."""
        out = output(launch, "x", "dy")
        self.lib.conv_filter_gradient(m, *_read(launch, m.x, m.dy), out, launch.workspace)

    @handles(ConvTranspose)
    def conv_transpose(self, m: ConvTranspose, launch: Launch) -> None:
        """Enqueue a transposed convolution."""
        out = output(launch, "x", "w", "bias")
        self.lib.conv_transpose(m, *_read(launch, m.x, m.w, m.bias), out, launch.workspace)

    @handles(RunGraph)
    def run_graph(self, m: RunGraph, launch: Launch) -> None:
        """Enqueue a graph of nodes."""
        self.lib.run_graph(m, _read(launch, *m.tensors), launch.empty(), launch.workspace)


def _read(launch: Launch, *refs: AccelRef | None) -> list[Any]:
    return [None if ref is None else launch.read(ref) for ref in refs]
