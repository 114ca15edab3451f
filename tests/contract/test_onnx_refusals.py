"""What `onnx.load` refuses when a model is loaded, and a model when it is called."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import onnx
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from accel_lab.onnx import ModelError, UnsupportedModel
from tests.conftest import require
from tests.contract.onnx_models import FLOAT, INT64, Nodes, model, value


@pytest.fixture(autouse=True)
def _package() -> None:
    require("onnx")


def unary(nodes: Nodes, **more: Any) -> Any:
    return model(nodes, [value("x", FLOAT, ["n", 2])], [value("y", FLOAT, ["n", 2])], **more)


def test_an_operator_that_there_is_not_is_named_with_its_node(device: Device) -> None:
    nodes: Nodes = [
        ("Relu", ["x"], ["r"], {}),
        ("TfIdfVectorizer", ["r"], ["t"], {"max_gram_length": 1, "max_skip_count": 0, "mode": "TF",
                                           "min_gram_length": 1, "ngram_counts": [0],
                                           "ngram_indexes": [0], "pool_int64s": [1]}),
        ("RoiAlign", ["t", "r", "r"], ["y"], {"mode": "max"}),
    ]  # fmt: skip
    with pytest.raises(UnsupportedModel) as caught:
        onnx.load(unary(nodes), device)
    assert caught.value.node == "the_t"
    assert caught.value.operator == "TfIdfVectorizer of operator set 18"
    assert caught.value.missing == ("operator TfIdfVectorizer", "RoiAlign: mode 'max'")
    assert "the_t" in str(caught.value)


def test_another_domains_operator_is_named(device: Device) -> None:
    import onnx as package

    proto = unary([("Relu", ["x"], ["y"], {})])
    proto.graph.node[0].domain, proto.graph.node[0].op_type = "com.microsoft", "FusedGemm"
    proto.opset_import.append(package.helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(UnsupportedModel, match=r"com\.microsoft\.FusedGemm"):
        onnx.load(proto, device)


def test_a_dtype_that_there_is_not_is_named(device: Device) -> None:
    import onnx as package

    proto = model(
        [("Identity", ["x"], ["y"], {})],
        [value("x", package.TensorProto.STRING, [1])],
        [value("y", package.TensorProto.STRING, [1])],
    )
    with pytest.raises(UnsupportedModel) as caught:
        onnx.load(proto, device)
    assert caught.value.missing == ("dtype string of x", "dtype string of y")
    to = package.TensorProto.INT4
    with pytest.raises(UnsupportedModel, match="Cast: dtype int4"):
        onnx.load(unary([("Cast", ["x"], ["y"], {"to": to})], version=21), device)


def test_an_old_operator_set_is_refused(device: Device) -> None:
    with pytest.raises(UnsupportedModel, match="version 6 of the operator set"):
        onnx.load(unary([("Relu", ["x"], ["y"], {})], version=6), device)
    clip = unary([("Clip", ["x"], ["y"], {"min": 0.0})], version=10)
    with pytest.raises(UnsupportedModel, match="Clip before version 11"):
        onnx.load(clip, device)


def test_what_is_no_model_is_refused(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    with pytest.raises(ModelError, match="No such file"):
        onnx.load(path, device)
    path.write_bytes(b"\x08\xff" * 100)
    with pytest.raises(ModelError):
        onnx.load(path, device)
    with pytest.raises(ModelError, match="nothing"):
        onnx.load(unary([("Relu", ["nothing"], ["y"], {})]), device)


def test_without_the_package_the_error_says_how_to_install_it(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModelError, match=r"pip install \"accel-lab\[onnx\]\""):
        onnx.load("model.onnx", device)


def test_a_file_with_its_weights_beside_it_is_read(device: Device, tmp_path: Path) -> None:
    import onnx as package

    weights = np.random.default_rng(0).standard_normal((2, 2)).astype("float32")
    proto = unary([("MatMul", ["x", "w"], ["y"], {})], constants={"w": weights})
    path, whole = tmp_path / "model.onnx", proto.SerializeToString()
    package.save(proto, path, save_as_external_data=True, location="weights", size_threshold=0)
    x = np.ones((3, 2), "float32")
    np.testing.assert_allclose(onnx.load(path, device)(x).get(), x @ weights, rtol=1e-6)
    np.testing.assert_allclose(onnx.load(whole, device)(x).get(), x @ weights, rtol=1e-6)


@pytest.fixture(scope="module")
def summing(device: Device) -> onnx.Model:
    require("onnx")
    ports = [value("x", FLOAT, ["n", 2]), value("k", FLOAT, ["n", 1])]
    made = [value("y", FLOAT, ["n", 2])]
    return onnx.load(model([("Add", ["x", "k"], ["y"], {})], ports, made), device)


X, K = np.zeros((3, 2), "float32"), np.zeros((3, 1), "float32")


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ({"x": X}, r"input k, float32\[n, 1\], is missing"),
        ({"x": X, "k": K, "z": K}, "no input 'z', but x, k"),
        ({"x": X.astype("float64"), "k": K}, r"x is float32\[n, 2\], not float64\[3, 2\]"),
        ({"x": X[0], "k": K}, r"x is float32\[n, 2\], not float32\[2\]"),
        ({"x": X, "k": X}, r"k is float32\[n, 1\], with n = 3, not float32\[3, 2\]"),
        ({"x": X, "k": K[:2]}, r"k is float32\[n, 1\], with n = 3, not float32\[2, 1\]"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(
    summing: onnx.Model, inputs: dict[str, Any], text: str
) -> None:
    with pytest.raises(InvalidArgument, match=text):
        summing(**inputs)


def test_too_many_inputs_are_refused(summing: onnx.Model) -> None:
    with pytest.raises(InvalidArgument, match="takes 2 inputs, not 3"):
        summing(X, K, K)
    with pytest.raises(InvalidArgument, match="x is given twice"):
        summing(X, x=X)


def test_what_fails_in_a_node_says_in_which(device: Device) -> None:
    ports = [value("x", FLOAT, [None, 2]), value("shape", INT64, [2])]
    made = [value("y", FLOAT, [None, None])]
    network = onnx.load(model([("Reshape", ["x", "shape"], ["y"], {})], ports, made), device)
    with pytest.raises(InvalidArgument) as caught:
        network(X, np.array([4, 4]))
    assert "the_y (Reshape)" in "".join([str(caught.value), *caught.value.__notes__])


def test_a_place_that_a_sequence_lacks_is_refused(device: Device) -> None:
    """A sequence that has no such place is an error of the node, not of Python."""
    nodes: Nodes = [
        ("SequenceConstruct", ["x", "x"], ["s"], {}),
        ("SequenceAt", ["s", "at"], ["y"], {}),
    ]
    ports = [value("x", FLOAT, [2]), value("at", INT64, [])]
    network = onnx.load(model(nodes, ports, [value("y", FLOAT, [2])]), device)
    x = np.array([1, 2], "float32")
    assert network(x, np.array(-1)).get().tolist() == [1, 2]
    with pytest.raises(InvalidArgument, match=r"the_y \(SequenceAt\)"):
        network(x, np.array(5))
