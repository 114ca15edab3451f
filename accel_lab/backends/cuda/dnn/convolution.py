"""Convolutions and graphs on cuda: cuDNN where it has them, else cuBLAS and CuPy's kernels."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import cupy

from accel_lab.backends.cuda.dnn.cudnn import DTYPES, Key, built
from accel_lab.backends.cuda.dnn.kit import CudaKit
from accel_lab.backends.cuda.dnn.nodes import NodesKey
from accel_lab.backends.cuda.handles.cudnn_graphs import (
    CudnnGraphs,
    cudnn_graphs,
    is_packed,
    packed,
)
from accel_lab.libraries.dnn.convolution import (
    Conv,
    ConvDataGradient,
    ConvFilterGradient,
    ConvTranspose,
)
from accel_lab.libraries.dnn.evaluation.graph import Graphs
from accel_lab.libraries.dnn.evaluation.layers import Convolutions
from accel_lab.libraries.dnn.graph import RunGraph, node_shapes
from accel_lab.libraries.dnn.message import as_layout, channels_first, moved
from accel_lab.libraries.dnn.windows import windows

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

Workspace: TypeAlias = Callable[[int], Any]


class CudaConvolutions:
    """Enqueues on the device's active stream; used by the dispatcher thread."""

    def __init__(self, device: "CudaDevice", kit: CudaKit) -> None:
        self._device = device
        self._kit = kit
        self._by_products = Convolutions(kit)
        self._by_kernels = Graphs(kit)
        self._cudnn: CudnnGraphs | None = None
        self._is_looked_for = False
        self._convolved = {"by cuDNN": 0, "by cuBLAS": 0}

    def conv(self, m: Conv, x: Any, w: Any, bias: Any, out: Any, workspace: Workspace) -> None:
        """Write the sums, with their bias, and activated (cudnn.pygraph.conv_fprop)."""
        x_, w_, y_ = (channels_first(one.shape, m.layout) for one in (x, w, out))
        plain = Key("forward", m.x.dtype, m.layout, x_, w_, y_, windows(m, w_[2:]))
        relu = m.activation == "relu"
        if m.activation in ("identity", "relu"):
            fused = plain._replace(bias=bias is not None, relu=relu)
            operands = [x, w] if bias is None else [x, w, bias]
            if self._run(fused, operands, out, workspace):
                return
        if bias is not None or m.activation != "identity":
            y = cupy.ndarray(out.shape, out.dtype)
            if self._run(plain, [x, w], y, workspace):
                wide = self._kit.widened(y, m.x.dtype)
                self._by_products.finish(m, moved(wide, m.layout), bias, out)
                return
        self._fall_back(out)
        self._by_products.conv(m, x, w, bias, out, workspace)

    def conv_data_gradient(
        self, m: ConvDataGradient, dy: Any, w: Any, out: Any, workspace: Workspace
    ) -> None:
        """Write the gradient by what was convolved (cudnn.pygraph.conv_dgrad)."""
        x_, w_, y_ = (channels_first(one.shape, m.layout) for one in (out, w, dy))
        key = Key("data", m.dy.dtype, m.layout, x_, w_, y_, windows(m, w_[2:]))
        if not self._run(key, [dy, w], out, workspace):
            self._fall_back(out)
            self._by_products.conv_data_gradient(m, dy, w, out, workspace)

    def conv_filter_gradient(
        self, m: ConvFilterGradient, x: Any, dy: Any, out: Any, workspace: Workspace
    ) -> None:
        """Write the gradient by the filters (cudnn.pygraph.conv_wgrad)."""
        x_, w_, y_ = (channels_first(one.shape, m.layout) for one in (x, out, dy))
        key = Key("filter", m.x.dtype, m.layout, x_, w_, y_, windows(m, m.window))
        if not self._run(key, [x, dy], out, workspace):
            self._fall_back(out)
            self._by_products.conv_filter_gradient(m, x, dy, out, workspace)

    def conv_transpose(
        self, m: ConvTranspose, x: Any, w: Any, bias: Any, out: Any, workspace: Workspace
    ) -> None:
        """Write the data gradient, with its bias; it may be rounded before that is added."""
        x_, w_, y_ = (channels_first(one.shape, m.layout) for one in (out, w, x))
        key = Key("data", m.x.dtype, m.layout, x_, w_, y_, windows(m, w_[2:]))
        made = out if bias is None else cupy.ndarray(out.shape, out.dtype)
        if not self._run(key, [x, w], made, workspace):
            self._fall_back(out)
            self._by_products.conv_transpose(m, x, w, bias, out, workspace)
        elif bias is not None:
            wide, add = self._kit.widened(made, m.x.dtype), self._kit.widened(bias, m.x.dtype)
            along = as_layout((1, add.size, *(1,) * (wide.ndim - 2)), m.layout)
            self._kit.store(wide + add.reshape(along), out, m.x.dtype)

    def run_graph(self, m: RunGraph, operands: list[Any], out: Any, workspace: Workspace) -> None:
        """Write what the last node makes (cudnn.pygraph)."""
        key = NodesKey(m.tensors[0].dtype, tuple(node_shapes(m)), m.nodes)
        if not key.fits or not self._run(key, operands, out, workspace):
            self._device.active.enqueuing()
            self._by_kernels.run_graph(m, operands, out, workspace)

    def _run(
        self, key: Key | NodesKey, operands: list[Any], out: Any, workspace: Workspace
    ) -> bool:
        """Enqueue it by cuDNN, and return whether that has it."""
        if key.dtype not in DTYPES or not all(x.size for x in (*operands, out)):
            return False
        library = self._found()
        if library is None:
            return False
        self._device.active.enqueuing()
        arrays = [packed(x) for x in operands]
        to = out if is_packed(out) else cupy.ndarray(out.shape, out.dtype)
        if not library.run(key, [*arrays, to], workspace):
            return False
        if to is not out:
            out[...] = to
        self._convolved["by cuDNN"] += 1
        return True

    def _fall_back(self, out: Any) -> None:
        self._device.active.enqueuing()
        self._convolved["by cuBLAS"] += bool(out.size)

    def _found(self) -> CudnnGraphs | None:
        """Return cuDNN, which is large and loaded when it is first needed; None without it."""
        if not self._is_looked_for:
            self._is_looked_for = True
            self._cudnn = cudnn_graphs(self._device, built)
        return self._cudnn

    def lend(self) -> int | None:
        """Return cuDNN's handle on the active stream, for the user's code; None without it."""
        graphs = self._found()
        return None if graphs is None else graphs.lend()

    def take_back(self) -> None:
        """Have its stream set anew."""
        if self._cudnn is not None:
            self._cudnn.take_back()

    def statistics(self) -> Mapping[str, int]:
        """Count the convolutions and graphs that each did, and cuDNN's plans; any thread."""
        planned = {} if self._cudnn is None else self._cudnn.statistics()
        return {**self._convolved, **planned}

    def close(self) -> None:
        """Destroy what cuDNN has; waits for the device."""
        if self._cudnn is not None:
            self._cudnn.close()
