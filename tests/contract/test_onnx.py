"""`onnx.load`: graphs against onnxruntime and against NumPy, what stays on the device, laws."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import onnx
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from tests.conftest import require
from tests.contract.onnx_models import FLOAT, INT64, Nodes, model, onnxruntime, value

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")


@pytest.fixture(autouse=True)
def _packages() -> None:
    require("onnx")
    require("onnxruntime")


def small_network() -> Any:
    """Return convolution, pooling and a product, with shapes computed in the graph."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((6, 3, 3, 3)).astype("float32"),
        "b": rng.standard_normal(6).astype("float32"),
        "v": rng.standard_normal((6 * 16, 10)).astype("float32"),
        "first": np.zeros(1, np.int64),
        "one": np.ones(1, np.int64),
        "rest": np.array([-1]),
    }
    nodes: Nodes = [
        ("Conv", ["x", "w", "b"], ["c"], {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ("Relu", ["c"], ["r"], {}),
        ("MaxPool", ["r"], ["p"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("Shape", ["p"], ["s"], {}),
        ("Slice", ["s", "first", "one"], ["n"], {}),
        ("Concat", ["n", "rest"], ["t"], {"axis": 0}),
        ("Reshape", ["p", "t"], ["f"], {}),
        ("MatMul", ["f", "v"], ["m"], {}),
        ("Softmax", ["m"], ["y"], {"axis": -1}),
    ]
    return model(
        nodes, [value("x", FLOAT, ["n", 3, 16, 16])], [value("y", FLOAT, ["n", 10])], weights
    )


def test_a_network_gives_what_onnxruntime_gives(device: Device) -> None:
    proto = small_network()
    network = onnx.load(proto, device)
    for count in (1, 3):
        x = np.random.default_rng(count).standard_normal((count, 3, 16, 16)).astype("float32")
        y = network(x=x)
        assert isinstance(y, AccelRef)
        np.testing.assert_allclose(y.get(), onnxruntime(proto, x=x)[0], rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(network(device.put(x)).get(), y.get())


def test_weights_are_put_once(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    network = onnx.load(small_network(), device)
    x = device.put(np.zeros((1, 3, 16, 16), "float32"))
    network(x).get()  # what is small is put when it is first needed
    put: list[Any] = []
    really = type(device).put

    def counted(self: Device, y: Any) -> Any:
        put.append(y)
        return really(self, y)

    monkeypatch.setattr(type(device), "put", counted)
    network(x).get()
    assert put == []


def test_what_is_made_of_constants_is_computed_once(device: Device) -> None:
    quantized = np.random.default_rng(0).integers(-127, 127, (8, 12)).astype("int8")
    nodes: Nodes = [
        ("DequantizeLinear", ["q", "scale"], ["w"], {}),
        ("Transpose", ["w"], ["wt"], {}),
        ("MatMul", ["x", "wt"], ["y"], {}),
    ]
    constants = {"q": quantized, "scale": np.array(0.5, "float32")}
    proto = model(nodes, [value("x", FLOAT, [2, 12])], [value("y", FLOAT, [2, 8])], constants)
    network = onnx.load(proto, device)
    assert [node.op_type for node in network._graph.nodes] == ["MatMul"]
    assert [*network._graph.constants] == ["wt"]
    x = np.ones((2, 12), "float32")
    np.testing.assert_allclose(network(x).get(), x @ (quantized.T * np.float32(0.5)))


def test_shapes_are_computed_in_the_notebook(device: Device) -> None:
    """Nothing waits: no handle is fetched."""
    network = onnx.load(small_network(), device)
    x = device.put(np.zeros((2, 3, 16, 16), "float32"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AccelRef, "get", None)
        y = network(x)
    assert y.get().shape == (2, 10)


@given(
    shape=st.tuples(*[st.integers(0, 5)] * 2),
    begin=st.tuples(*[st.integers(-7, 7)] * 2),
    end=st.tuples(*[st.integers(-7, 7)] * 2),
    step=st.tuples(*[st.sampled_from([-3, -1, 1, 2])] * 2),
)
@settings(max_examples=30)
def test_a_slice_is_onnxruntimes(
    device: Device,
    shape: tuple[int, int],
    begin: tuple[int, int],
    end: tuple[int, int],
    step: tuple[int, int],
) -> None:
    names = ["starts", "ends", "axes", "steps"]
    ports = [value(name, INT64, [2]) for name in names]
    inputs = [value("x", FLOAT, [None, None]), *ports]
    proto = model([("Slice", ["x", *names], ["y"], {})], inputs, [value("y", FLOAT, [None, None])])
    x = np.arange(shape[0] * shape[1], dtype="float32").reshape(shape)
    given = dict(zip(names, map(np.array, (begin, end, (0, 1), step)), strict=True))
    got = onnx.load(proto, device)(x, **given).get()
    np.testing.assert_array_equal(got, onnxruntime(proto, x=x, **given)[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_erf_is_scipys(device: Device, dtype: str) -> None:
    from scipy.special import erf

    code = {"float32": FLOAT, "float64": 11}[dtype]
    network = onnx.load(
        model([("Erf", ["x"], ["y"], {})], [value("x", code, [None])], [value("y", code, [None])]),
        device,
    )
    x = np.concatenate([np.linspace(-6, 6, 4001), [0.0, -0.0, 1e-30, -np.inf, np.inf, np.nan]])
    got = network(x.astype(dtype)).get()
    exact = erf(x.astype(dtype).astype("float64"))
    np.testing.assert_allclose(got, exact, rtol=float(4 * np.finfo(dtype).eps), atol=0)


POOLS = [
    ("AveragePool", {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1}),
    ("AveragePool", {"kernel_shape": [2, 3], "pads": [1, 0, 0, 1], "count_include_pad": 1}),
    ("MaxPool", {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ("MaxPool", {"kernel_shape": [2, 2], "strides": [3, 3], "pads": [0, 0, 1, 1], "ceil_mode": 1}),
    ("LpPool", {"kernel_shape": [2, 2], "strides": [2, 2], "p": 2}),
]


@pytest.mark.parametrize(("op", "attributes"), POOLS)
def test_pooling_is_onnxruntimes(device: Device, op: str, attributes: dict[str, Any]) -> None:
    ports = [value("x", FLOAT, [2, 2, 8, 7])], [value("y", FLOAT, [None] * 4)]
    proto = model([(op, ["x"], ["y"], attributes)], *ports)
    x = np.random.default_rng(0).standard_normal((2, 2, 8, 7)).astype("float32")
    wanted = onnxruntime(proto, x=x)[0]
    np.testing.assert_allclose(onnx.load(proto, device)(x).get(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("places", ["half_pixel", "asymmetric", "align_corners"])
@pytest.mark.parametrize("sizes", [(7, 11), (3, 2)])
def test_resizing_is_onnxruntimes(
    device: Device, mode: str, places: str, sizes: tuple[int, int]
) -> None:
    nodes: Nodes = [
        (
            "Resize",
            ["x", "", "", "sizes"],
            ["y"],
            {"mode": mode, "coordinate_transformation_mode": places, "nearest_mode": "floor"},
        )
    ]
    constants = {"sizes": np.array([1, 2, *sizes])}
    proto = model(
        nodes, [value("x", FLOAT, [1, 2, 5, 6])], [value("y", FLOAT, [None] * 4)], constants
    )
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 6)).astype("float32")
    wanted = onnxruntime(proto, x=x)[0]
    np.testing.assert_allclose(onnx.load(proto, device)(x).get(), wanted, rtol=1e-4, atol=1e-5)


def branching() -> Any:
    """Return a graph that adds or multiplies, of a value of the graph around it."""
    import onnx as package

    make = package.helper
    branches = {}
    for name, op in (("then_branch", "Add"), ("else_branch", "Mul")):
        node = make.make_node(op, ["x", "two"], [name])
        branches[name] = make.make_graph([node], name, [], [value(name, FLOAT, [3])])
    nodes: Nodes = [
        ("ReduceSum", ["x"], ["total"], {"keepdims": 0}),
        ("Greater", ["total", "zero"], ["is_more"], {}),
        ("If", ["is_more"], ["y"], branches),
    ]
    constants = {"two": np.array(2, "float32"), "zero": np.array(0, "float32")}
    return model(nodes, [value("x", FLOAT, [3])], [value("y", FLOAT, [3])], constants)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_branch_uses_what_is_around_it(device: Device, sign: int) -> None:
    x = np.arange(3, dtype="float32") * sign
    got = onnx.load(branching(), device)(x).get()
    np.testing.assert_array_equal(got, x + 2 if x.sum() > 0 else x * 2)


def test_a_loop_carries_and_gathers(device: Device) -> None:
    """x, x^2, x^4, ... while the largest is below a limit."""
    import onnx as package

    make = package.helper
    body = make.make_graph(
        [
            make.make_node("Mul", ["old", "old"], ["new"]),
            make.make_node("ReduceMax", ["new"], ["most"], keepdims=0),
            make.make_node("Less", ["most", "limit"], ["on"]),
            make.make_node("Identity", ["new"], ["seen"]),
        ],
        "body",
        [value("i", INT64, []), value("was", 9, []), value("old", FLOAT, [2])],
        [value("on", 9, []), value("new", FLOAT, [2]), value("seen", FLOAT, [2])],
    )
    nodes: Nodes = [("Loop", ["", "true", "x"], ["last", "all"], {"body": body})]
    constants = {"limit": np.array(100, "float32"), "true": np.array(True)}  # noqa: FBT003
    outputs = [value("last", FLOAT, [2]), value("all", FLOAT, [None, 2])]
    network = onnx.load(model(nodes, [value("x", FLOAT, [2])], outputs, constants), device)
    last, every = network(np.array([2, 3], "float32"))
    np.testing.assert_array_equal(last.get(), [2**8, 3**8])
    np.testing.assert_array_equal(every.get(), [[2**k, 3**k] for k in (2, 4, 8)])


def test_functions_of_the_model_are_written_out(device: Device) -> None:
    import onnx as package

    make = package.helper
    square = make.make_node("Mul", ["a", "a"], ["b"])
    imports = [make.make_opsetid("", 18)]
    function = make.make_function("mine", "Square", ["a"], ["b"], [square], imports)
    node = make.make_node("Square", ["x"], ["y"], domain="mine")
    graph = make.make_graph([node], "g", [value("x", FLOAT, [2])], [value("y", FLOAT, [2])])
    proto = make.make_model(
        graph, functions=[function], opset_imports=[*imports, make.make_opsetid("mine", 1)]
    )
    np.testing.assert_array_equal(
        onnx.load(proto, device)(np.array([2, 3], "float32")).get(), [4, 9]
    )


@pytest.mark.parametrize("is_inside", [False, True])
def test_a_default_of_a_function_is_said(device: Device, is_inside: bool) -> None:  # noqa: FBT001
    """HannWindow is periodic unless it says otherwise, also inside a function of the model."""
    import onnx as package

    make = package.helper
    proto = model(
        [("HannWindow", ["n"], ["y"], {})],
        [value("n", INT64, [])],
        [value("y", FLOAT, [None])],
    )
    if is_inside:
        (node,) = proto.graph.node
        own = make.make_opsetid("mine", 1)
        window = make.make_node("HannWindow", ["n"], ["y"])
        made = make.make_function("mine", "W", ["n"], ["y"], [window], proto.opset_import)
        proto.functions.append(made)
        node.op_type, node.domain = "W", "mine"
        proto.opset_import.append(own)
    wanted = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(8) / 8)
    np.testing.assert_allclose(onnx.load(proto, device)(np.array(8)).get(), wanted, atol=1e-6)


LAYERS: list[tuple[str, int, dict[str, Any]]] = [
    ("LSTM", 4, {"direction": "bidirectional", "clip": 1.5}),
    ("LSTM", 4, {"activations": ["HardSigmoid", "Softsign", "Tanh"], "direction": "reverse"}),
    ("GRU", 3, {"direction": "bidirectional"}),
    ("GRU", 3, {"linear_before_reset": 1}),
    ("RNN", 1, {"activations": ["Relu"], "direction": "reverse"}),
]


@pytest.mark.parametrize(("op", "gates", "attributes"), LAYERS)
def test_a_recurrent_layer_is_onnxruntimes(
    device: Device, op: str, gates: int, attributes: dict[str, Any]
) -> None:
    """With weights that all differ, sequences of several lengths, states, and peepholes."""
    rng, size = np.random.default_rng(0), 5
    d = 2 if attributes.get("direction") == "bidirectional" else 1

    def drawn(*shape: int) -> Any:
        return rng.standard_normal(shape).astype("float32")

    constants = {
        "w": drawn(d, gates * size, 3),
        "r": drawn(d, gates * size, size),
        "b": drawn(d, 2 * gates * size),
        "lengths": np.array([6, 2, 4], np.int32),
        "h": drawn(d, 3, size),
    }
    names, outputs = ["x", *constants], ["y", "last"]
    if op == "LSTM":
        constants |= {"c": drawn(d, 3, size), "p": drawn(d, 3 * size)}
        names, outputs = [*names, "c", "p"], [*outputs, "cell"]
    ports = [value(name, FLOAT, [None] * (4 if name == "y" else 3)) for name in outputs]
    nodes: Nodes = [(op, names, outputs, {"hidden_size": size, **attributes})]
    proto = model(nodes, [value("x", FLOAT, [6, 3, 3])], ports, constants)
    x = drawn(6, 3, 3)
    made = onnx.load(proto, device)(x)
    for got, wanted in zip(made, onnxruntime(proto, x=x), strict=True):
        np.testing.assert_allclose(got.get(), wanted, rtol=1e-4, atol=1e-5)


def test_an_input_may_have_a_default(device: Device) -> None:
    ports = [value("x", FLOAT, [2]), value("k", FLOAT, [2])]
    constants = {"k": np.array([10, 20], "float32")}
    proto = model([("Mul", ["x", "k"], ["y"], {})], ports, [value("y", FLOAT, [2])], constants)
    network, x = onnx.load(proto, device), np.ones(2, "float32")
    assert network(x).get().tolist() == [10, 20]
    assert network(x, k=np.array([3, 4], "float32")).get().tolist() == [3, 4]
    assert network(x).get().tolist() == [10, 20]


def test_a_model_outlives_its_context(device: Device) -> None:
    network = onnx.load(small_network(), device)
    x = np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype("float32")
    before = network(x).get()
    device.replace()
    np.testing.assert_array_equal(network(x).get(), before)


def test_scattered_sums_are_numpys(device: Device) -> None:
    nodes: Nodes = [("ScatterElements", ["x", "i", "u"], ["y"], {"axis": 1, "reduction": "add"})]
    ports = [value("x", FLOAT, [3, 5]), value("i", INT64, [3, 4]), value("u", FLOAT, [3, 4])]
    rng = np.random.default_rng(0)
    x, u = rng.standard_normal((3, 5)), rng.standard_normal((3, 4))
    at = rng.integers(-5, 5, (3, 4))
    wanted = x.copy()
    np.add.at(wanted, (np.arange(3)[:, None], at), u)
    network = onnx.load(model(nodes, ports, [value("y", FLOAT, [3, 5])]), device)
    got = network(x.astype("float32"), device.put(at), u.astype("float32"))
    np.testing.assert_allclose(got.get(), wanted, rtol=1e-5)


def test_what_a_model_says_of_itself(device: Device) -> None:
    network = onnx.load(small_network(), device)
    assert network.inputs["x"].shape == ("n", 3, 16, 16)
    assert network.opset == 18
    assert "x: float32[n, 3, 16, 16]" in repr(network)
    assert network.device is device


def test_a_constant_that_comes_back_may_be_written_to(device: Device) -> None:
    weights = np.arange(100, dtype="float32")
    proto = model([("Identity", ["w"], ["y"], {})], [], [value("y", FLOAT, [100])], {"w": weights})
    network = onnx.load(proto, device)
    network()[:] = 7.0
    np.testing.assert_array_equal(network().get(), weights)
