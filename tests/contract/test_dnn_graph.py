"""The contract of graphs of nodes: PyTorch, the same messages one by one, refusals."""

from typing import Any

import numpy as np
import pytest

from accel_lab import array, dnn
from accel_lab.compute.device import Device
from accel_lab.errors import UnsupportedDtype
from tests.contract.samples import LAYOUTS, place, reals, refused, value
from tests.contract.tolerances import EPS

of_each_dtype = pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])


def near(got: Any, exact: Any, dtype: str) -> None:
    """Compare with a result in double precision that is rounded once."""
    assert got.shape == exact.shape
    eps = EPS["float64" if dtype == "float64" else "float32"]
    bound = EPS[dtype] * 0.51 * np.abs(exact) + 256 * eps * np.abs(exact).max()
    assert np.all(np.abs(got.astype("float64") - exact) <= bound)


@of_each_dtype
@pytest.mark.parametrize("extents", [(9,), (6, 7), (4, 5, 3)])
def test_a_convolution_with_what_is_behind_it_is_pytorchs(
    device: Device, extents: Any, dtype: str
) -> None:
    torch = pytest.importorskip("torch")
    n = len(extents)
    shapes = [(2, 8, *extents), (16, 8, *(3,) * n), (1, 16, *(1,) * n), (1, 16, *(1,) * n)]
    given = [reals(seed, shape, dtype) for seed, shape in enumerate(shapes)]
    graph = dnn.Graph(4)
    x, w, scale, bias = graph.operands
    options: Any = {"padding": 1, "stride": 2, "dilation": 2}
    graph.apply("relu", graph.conv(x, w, **options) * scale + bias)
    wide = [torch.tensor(one.astype("float64")) for one in given]
    convolve = getattr(torch.nn.functional, f"conv{n}d")
    y = torch.relu(convolve(wide[0], wide[1], **options) * wide[2] + wide[3])
    got = value(device, graph(*[device.put(one) for one in given]))
    assert got.dtype == given[0].dtype
    near(got, y.numpy(), dtype)


@of_each_dtype
def test_a_product_and_softmax_of_nodes_are_pytorchs(device: Device, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    shapes = [(3, 4, 8), (3, 8, 16), (1, 1, 16)]
    given = [reals(seed, shape, dtype) for seed, shape in enumerate(shapes)]
    graph = dnn.Graph(3)
    a, b, bias = graph.operands
    logits = a @ b + bias
    e = graph.apply("exp", logits - graph.reduce("max", logits, -1))
    e / graph.reduce("sum", e, axes=(2,))  # the last node is the result
    wide = [torch.tensor(one.astype("float64")) for one in given]
    exact = torch.softmax(wide[0] @ wide[1] + wide[2], -1)
    near(value(device, graph(*[device.put(one) for one in given])), exact.numpy(), dtype)


@pytest.mark.parametrize("op", dnn.NODE_UNARY)
def test_functions_are_those_of_messages(device: Device, op: str) -> None:
    x = reals(1, (40,), "float64") * 3
    x = np.abs(x) if op in ("log", "sqrt") else x
    graph = dnn.Graph(1)
    graph.apply(op, graph.operands[0])
    at, message = device.put(x), getattr(dnn, op, None)
    expected = getattr(np, op)(x) if message is None else value(device, message(at))
    np.testing.assert_allclose(value(device, graph(at)), expected, rtol=1e-13)


@pytest.mark.parametrize("op", dnn.NODE_BINARY)
def test_pairs_are_numpys_and_an_extent_of_one_goes_with_any(device: Device, op: str) -> None:
    x, y = reals(1, (3, 1, 5), "float64"), reals(2, (1, 4, 5), "float64")
    graph = dnn.Graph(2)
    graph.combine(op, *graph.operands)
    got = value(device, graph(device.put(x), device.put(y)))
    np.testing.assert_array_equal(got, getattr(np, op)(x, y))


@pytest.mark.parametrize("op", dnn.NODE_REDUCTIONS)
def test_reductions_are_numpys_and_keep_their_axes(device: Device, op: str) -> None:
    x = reals(1, (3, 4, 5), "float64")
    graph = dnn.Graph(1)
    graph.reduce(op, graph.operands[0], (0, -1))
    got = value(device, graph(device.put(x)))
    np.testing.assert_allclose(got, getattr(np, op)(x, (0, 2), keepdims=True), rtol=1e-13)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_are_views_and_a_graph_runs_again(device: Device, layout: Any) -> None:
    graph = dnn.Graph(2)
    a, b = graph.operands
    graph.apply("tanh", a @ b)
    for seed in (1, 2):
        x, y = reals(seed, (5, 8), "float32"), reals(seed + 9, (8, 6), "float32")
        got = value(device, graph(place(device, x, layout), place(device, y, layout)))
        near(got, np.tanh(x.astype("float64") @ y), "float32")
    empty = graph(array.zeros(device, (0, 8)), array.zeros(device, (8, 6)))
    assert value(device, empty).shape == (0, 6)


def test_an_operand_that_no_node_reads_changes_nothing(device: Device) -> None:
    graph = dnn.Graph(2)
    graph.apply("exp", graph.operands[1])
    graph.apply("relu", graph.operands[1])
    x = reals(1, (3, 4), "float32")
    got = value(device, graph(array.zeros(device, (7,)), device.put(x)))
    np.testing.assert_array_equal(got, np.maximum(x, 0))


def test_mistakes_are_refused_with_what_and_what_was_expected(device: Device) -> None:
    x, y = array.zeros(device, (3, 4)), array.zeros(device, (5, 4))
    image, filters = array.zeros(device, (1, 2, 4, 4)), array.zeros(device, (3, 2, 5, 5))
    wide, whole = array.zeros(device, (3, 4), "float64"), array.zeros(device, (3, 4), "int32")
    graph, other = dnn.Graph(2), dnn.Graph(1)
    a, b = graph.operands
    with refused(device, "0 nodes", "one of each"):
        graph(x, x)
    with refused(device, "op is 'cosine'", "gelu"):
        graph.apply("cosine", a)
    with refused(device, "op is 'relu'", "maximum"):
        graph.combine("relu", a, b)
    with refused(device, "values of this graph"):
        graph.combine("add", a, other.operands[0])
    with refused(device, "values of this graph", "2"):
        graph.combine("multiply", a, 2)  # type: ignore[arg-type]
    assert not graph.nodes
    a + b
    with refused(device, "1 operands for a graph of 2"):
        graph(x)
    with refused(device, "node 0: add of shapes [3, 4] and [5, 4]"):
        graph(x, y)
    with refused(device, "one dtype", "float64"):
        graph(x, wide)
    graph.reduce("sum", a, 2)
    with refused(device, "node 1: sum of shapes [3, 4]", "((2,),)"):
        graph(x, x)
    of_conv = dnn.Graph(2)
    of_conv.conv(*of_conv.operands)
    with refused(device, "node 0: conv of shapes [1, 2, 4, 4] and [3, 2, 5, 5]"):
        of_conv(image, filters)
    padded = dnn.Graph(2)
    padded.conv(*padded.operands, padding=-1)
    with refused(device, "padding is (-1,)"):
        padded(image, filters)
    with refused(device, "node 0 is 'add' of (0,)", "there is not"):
        dnn.run_graph((x,), (("add", (0,), ()),))
    with refused(device, "node 0 is 'relu' of (1,)", "there is not"):
        dnn.run_graph((x,), (("relu", (1,), ()),))
    with refused(device, "no operand"):
        dnn.run_graph((), ())
    other.apply("relu", other.operands[0])
    with pytest.raises(UnsupportedDtype, match="int32"):
        other(whole)
