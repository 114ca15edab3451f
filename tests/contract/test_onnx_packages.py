"""Models that come with packages give what onnxruntime gives; each skips without its own."""

from importlib.metadata import PackageNotFoundError, files
from typing import Any

import numpy as np
import pytest

from accel_lab import onnx
from accel_lab.compute.device import Device
from tests.conftest import require
from tests.contract.onnx_models import onnxruntime


def path_of(package: str, name: str) -> str:
    """Return the file of a package's model; skip without it."""
    require("onnx")
    require("onnxruntime")
    try:
        found = [one for one in files(package) or () if one.name == name]
    except PackageNotFoundError:
        found = []
    if not found:
        pytest.skip(f"{package} is not installed, or has no {name}: it is of the models extra")
    return str(found[0].locate())


def compare(device: Device, path: str, inputs: dict[str, Any], atol: float) -> list[Any]:
    """Compare all outputs of a model with onnxruntime's, and return them."""
    made = [one.get() for one in onnx.load(path, device).run(inputs).values()]
    for got, wanted in zip(made, onnxruntime(path, **inputs), strict=True):
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=atol)
    return made


@pytest.mark.parametrize("rate", [8000, 16000])
def test_silero_vad_listens_to_several_parts(device: Device, rate: int) -> None:
    """Its state goes from call to call, and stays on the device."""
    path = path_of("silero-vad", "silero_vad.onnx")
    model, rng = onnx.load(path, device), np.random.default_rng(0)
    size = 288 if rate == 8000 else 576
    state: Any = np.zeros((2, 1, 128), "float32")
    expected = state
    for k in range(4):
        tone = np.sin(np.arange(size) * 2 * np.pi * 200 / rate) * (0.3 if k % 2 else 0.0)
        part = (tone + rng.standard_normal(size) * 0.01).astype("float32")[None]
        speech, state = model(input=part, state=state, sr=np.array(rate))
        wanted, expected = onnxruntime(path, input=part, state=expected, sr=np.array(rate))
        np.testing.assert_allclose(speech.get(), wanted, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(state.get(), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "name",
    ["silero_vad_16k_op15.onnx", "silero_vad_half.onnx", "silero_vad_op18_ifless.onnx"],
)
def test_silero_vad_of_other_operator_sets(device: Device, name: str) -> None:
    path = path_of("silero-vad", name)
    inputs = {
        "input": np.random.default_rng(0).standard_normal((1, 576)).astype("float32") * 0.1,
        "state": np.zeros((2, 1, 128), "float32"),
    }
    if "half" not in name:
        inputs["sr"] = np.array(16000)
    compare(device, path, inputs, 1e-5)


def test_magika_knows_what_a_text_is(device: Device) -> None:
    path = path_of("magika", "model.onnx")
    text = (b"import numpy as np\n\n\ndef double(x):\n    return np.asarray(x) * 2\n" * 40)[:2048]
    taken = np.full((2, 2048), 256, np.int32)
    taken[0, : len(text)] = np.frombuffer(text, np.uint8)
    taken[1] = np.random.default_rng(0).integers(0, 256, 2048)
    (scores,) = compare(device, path, {"bytes": taken}, 1e-5)
    np.testing.assert_allclose(scores.sum(1), 1, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("ch_ppocr_mobile_v2.0_cls_mobile.onnx", (2, 3, 48, 192)),
        ("PP-OCRv6_rec_small.onnx", (1, 3, 48, 96)),
        ("PP-OCRv6_det_small.onnx", (1, 3, 64, 96)),
    ],
)
def test_rapidocr_looks_at_an_image(device: Device, name: str, shape: tuple[int, ...]) -> None:
    path = path_of("rapidocr", name)
    image = np.full(shape, 1.0, "float32")
    image[..., 16:32, 8::12] = -1.0  # strokes
    image += np.random.default_rng(0).standard_normal(shape).astype("float32") * 0.05
    compare(device, path, {"x": image}, 1e-4)
