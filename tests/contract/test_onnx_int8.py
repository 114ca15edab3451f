"""Calibration: what observers choose, and int8 models against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import onnx
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from accel_lab.onnx.calibration.observers import BINS
from accel_lab.onnx.calibration.quantization import symmetric
from tests.conftest import require
from tests.contract.onnx_models import FLOAT, Nodes, model, onnxruntime, value
from tests.contract.samples import seeds

OBSERVERS = ["minmax", "entropy", "percentile"]


def histogram(x: Any) -> tuple[float, Any]:
    most = float(np.abs(x).max())
    return most, np.histogram(np.abs(x), BINS, (0, most))[0]


@given(seed=seeds, share=st.floats(50, 100))
@settings(max_examples=20)
def test_a_percentile_is_numpys_to_a_bin(seed: int, share: float) -> None:
    x = np.random.default_rng(seed).standard_normal(5000)
    most, counts = histogram(x)
    limit = onnx.Percentile(share).limit(most, counts)
    exact = np.percentile(np.abs(x), share, method="inverted_cdf")
    assert exact <= limit * (1 + 1e-12)
    assert limit <= exact + 2 * most / BINS


def test_entropy_cuts_off_outliers_and_keeps_what_is_even() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(200_000)
    with_outliers = np.concatenate([x, [40.0, -60.0]])
    assert 2.5 < onnx.Entropy().limit(*histogram(with_outliers)) < 12
    even = rng.uniform(-1, 1, 200_000)
    assert onnx.Entropy().limit(*histogram(even)) > 0.97
    assert onnx.MinMax().limit(60.0, None) == 60.0


def test_a_share_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="share is 0"):
        onnx.Percentile(0)


@given(seed=seeds, axis=st.integers(0, 2))
@settings(max_examples=20)
def test_a_constant_in_int8_is_within_half_a_step(seed: int, axis: int) -> None:
    whole = np.random.default_rng(seed).standard_normal((3, 4, 5)).astype("float32")
    whole[0, 0] = 0
    small, scales = symmetric(whole, axis)
    shape = [-1 if k == axis else 1 for k in range(3)]
    steps = scales.reshape(shape)
    assert (np.abs(small * steps - whole) <= steps * 0.5001).all()
    assert np.abs(small).max() <= 127


def network() -> Any:
    rng = np.random.default_rng(1)
    weights = {
        "w": (rng.standard_normal((8, 3, 3, 3)) * 0.3).astype("float32"),
        "v": (rng.standard_normal((8, 6)) * 0.3).astype("float32"),
        "u": (rng.standard_normal((5, 6)) * 0.3).astype("float32"),
        "c": rng.standard_normal(5).astype("float32"),
    }
    nodes: Nodes = [
        ("Conv", ["x", "w"], ["a"], {"pads": [1, 1, 1, 1]}),
        ("Relu", ["a"], ["r"], {}),
        ("GlobalAveragePool", ["r"], ["g"], {}),
        ("Flatten", ["g"], ["f"], {}),
        ("MatMul", ["f", "v"], ["m"], {}),
        ("Gemm", ["m", "u", "c"], ["y"], {"transB": 1}),
    ]
    return model(nodes, [value("x", FLOAT, ["n", 3, 8, 8])], [value("y", FLOAT, ["n", 5])], weights)


def samples(count: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(2)
    return [{"x": rng.standard_normal((4, 3, 8, 8)).astype("float32")} for _ in range(count)]


@pytest.mark.parametrize("observer", OBSERVERS)
def test_a_model_in_int8_is_onnxruntimes_and_near_the_first_one(
    device: Device, observer: str
) -> None:
    require("onnx")
    require("onnxruntime")
    proto = network()
    small = onnx.quantize(proto, device, samples(4), observer)
    kinds = [node.op_type for node in small.graph.node]
    assert kinds.count("QuantizeLinear") == 3
    assert {one.name for one in small.graph.initializer}.isdisjoint({"w", "v", "u"})
    assert small.ByteSize() < proto.ByteSize() + 1500
    x = samples(5)[-1]["x"]
    got = onnx.load(small, device)(x).get()
    # A number on the edge between two steps may fall on either side.
    np.testing.assert_allclose(got, onnxruntime(small, x=x)[0], atol=0.02)
    wanted = onnxruntime(proto, x=x)[0]
    assert np.abs(got - wanted).max() < 0.05 * np.abs(wanted).max()
    assert np.abs(got - wanted).max() > 0


def test_what_was_quantized_is_quantized_on_the_device(device: Device) -> None:
    """The scale is the largest absolute value over 127, and the result is that of NumPy."""
    require("onnx")
    weights = np.random.default_rng(0).standard_normal((6, 4)).astype("float32")
    proto = model(
        [("MatMul", ["x", "w"], ["y"], {})],
        [value("x", FLOAT, [2, 6])],
        [value("y", FLOAT, [2, 4])],
        {"w": weights},
    )
    x = np.random.default_rng(1).standard_normal((2, 6)).astype("float32")
    small = onnx.load(onnx.quantize(proto, device, [{"x": x}, {"x": x / 2}], "minmax"), device)
    scale = np.float32(np.abs(x).max() / 127)
    steps = np.abs(weights).max(axis=0) / 127
    expected = (np.rint(x / scale) * scale) @ (np.rint(weights / steps) * steps)
    np.testing.assert_allclose(small(x).get(), expected, rtol=1e-5, atol=1e-6)


def test_what_cannot_be_calibrated_is_refused(device: Device) -> None:
    require("onnx")
    with pytest.raises(InvalidArgument, match="observer is 'best'; it may be minmax, entropy"):
        onnx.quantize(network(), device, samples(1), "best")
    with pytest.raises(InvalidArgument, match="no sample"):
        onnx.quantize(network(), device, [])
    bad = samples(1)
    bad[0]["x"][0, 0, 0, 0] = np.nan
    with pytest.raises(InvalidArgument, match="x is nan in a sample"):
        onnx.quantize(network(), device, bad)
    ports = [value("x", FLOAT, [2])], [value("y", FLOAT, [2])]
    with pytest.raises(InvalidArgument, match="no Conv, MatMul, Gemm to quantize"):
        onnx.quantize(model([("Relu", ["x"], ["y"], {})], *ports), device, [{"x": np.zeros(2)}])
    old = network()
    old.opset_import[0].version = 11
    with pytest.raises(onnx.ModelError, match="operator set 11"):
        onnx.quantize(old, device, samples(1))
