"""A graph of nodes that is written as an ONNX model computes what the graph does."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import dnn, onnx, tensorrt
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.dnn.graph import NODE_BINARY, NODE_REDUCTIONS, NODE_UNARY
from tests.conftest import require
from tests.contract.onnx_models import onnxruntime
from tests.contract.samples import seeds


@pytest.fixture(autouse=True)
def _packages() -> None:
    require("onnx")
    require("onnxruntime")


def port(name: str, *shape: int | str, dtype: str = "float32") -> onnx.Port:
    return onnx.Port(name, dtype, shape)


def positive(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).uniform(0.2, 2, shape).astype("float32")


@pytest.mark.parametrize("op", NODE_UNARY)
def test_a_function_of_each_element(device: Device, op: str) -> None:
    graph = dnn.Graph(1)
    graph.apply(op, graph.operands[0])
    x = positive(0, 4, 30) if op in ("log", "sqrt") else np.linspace(-9, 9, 120).reshape(4, 30)
    x = x.astype("float32")
    proto = onnx.export(graph, [port("x", "n", 30)])
    made = onnxruntime(proto, x=x)[0]
    np.testing.assert_allclose(made, graph(device.put(x)).get(), rtol=2e-5, atol=2e-6)


@given(seed=seeds, op=st.sampled_from(NODE_BINARY), on=st.sampled_from(NODE_REDUCTIONS))
@settings(max_examples=10)
def test_a_combination_that_is_reduced(device: Device, seed: int, op: str, on: str) -> None:
    graph = dnn.Graph(2)
    x, y = graph.operands
    graph.combine("add", graph.reduce(on, graph.combine(op, x, y), (0, -1)), x)
    a, b = positive(seed, 3, 4, 5), positive(seed + 1, 3, 1, 5)
    proto = onnx.export(graph, [port("x", 3, "n", 5), b])
    wanted = graph(device.put(a), device.put(b)).get()
    np.testing.assert_allclose(onnxruntime(proto, x=a)[0], wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("spatial", [(9,), (9, 8), (5, 6, 4)])
def test_a_convolution(device: Device, spatial: tuple[int, ...]) -> None:
    count = len(spatial)
    options: dict[str, Any] = {"padding": [1, 2, 1][:count], "stride": [2, 1, 1][:count]}
    graph = dnn.Graph(3)
    x, w, bias = graph.operands
    made = graph.conv(x, w, **options, dilation=[1, 2, 1][:count])
    graph.apply("relu", made + bias)
    a, b = positive(0, 2, 3, *spatial) - 1, positive(1, 4, 3, *[3] * count) - 1
    c = positive(2, 1, 4, *[1] * count)
    proto = onnx.export(graph, [port("x", "n", 3, *spatial), b, c])
    wanted = graph(*map(device.put, (a, b, c))).get()
    np.testing.assert_allclose(onnxruntime(proto, x=a)[0], wanted, rtol=2e-5, atol=2e-5)
    assert onnx.load(proto, device).outputs["y"].shape == ("n", *wanted.shape[1:])


def test_16_bits_are_computed_in_float32(device: Device) -> None:
    """In float16 the square would be infinite, and in bfloat16 the sum would lose the ones."""
    graph = dnn.Graph(2)
    x, y = graph.operands
    graph.apply("sqrt", graph.combine("add", graph.combine("multiply", x, x), y))
    for dtype, kind in (("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)):
        a, b = np.full((2, 3), 300, kind), np.ones((2, 3), kind)
        proto = onnx.export(graph, [port("x", 2, 3, dtype=dtype), b])
        made = onnx.load(proto, device)(device.put(a))
        np.testing.assert_array_equal(made.get(), graph(device.put(a), device.put(b)).get())
        assert float(made.get()[0, 0]) == 300


def test_a_product_is_built_by_tensorrt(device: Device) -> None:
    require("tensorrt")
    graph = dnn.Graph(2)
    x, w = graph.operands
    graph.apply("gelu", x @ w)
    proto = onnx.export(graph, [port("x", "n", 8), positive(0, 8, 4)], output="z")
    engine = tensorrt.build(device, proto, profiles={"x": ((1, 8), (2, 8), (4, 8))})
    assert engine.outputs == {"z": tensorrt.Tensor("z", "float32", (None, 4))}


def test_what_does_not_fit_is_refused() -> None:
    graph = dnn.Graph(2)
    x, w = graph.operands
    with pytest.raises(InvalidArgument, match="the graph has no node"):
        onnx.export(graph, [port("x", 2, 3), port("w", 3, 4)])
    x @ w
    with pytest.raises(InvalidArgument, match="1 operands for a graph of 2"):
        onnx.export(graph, [port("x", 2, 3)])
    with pytest.raises(InvalidArgument, match="the operands do not fit"):
        onnx.export(graph, [port("x", 2, 3), port("w", 2, 4)])
    for other in (np.ones((3, 4)), np.ones((3, 4, 1), "float32")):
        with pytest.raises(InvalidArgument, match=r"one dtype of .* and one number of axes"):
            onnx.export(graph, [port("x", 2, 3), other])
    with pytest.raises(InvalidArgument, match="the names x, x, y are not unique"):
        onnx.export(graph, [port("x", 2, 3), port("x", 3, 4)])
