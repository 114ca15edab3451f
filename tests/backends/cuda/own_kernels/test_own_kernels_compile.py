"""Kernels of accel_lab's own: NVRTC compiles each for old and new cards, without a GPU."""

from importlib.util import find_spec

import pytest

if find_spec("cupy") is None:
    pytest.skip(
        "the packages of the cuda12 or cuda13 extra are not installed", allow_module_level=True
    )

from accel_lab.backends.cuda.attention.decoding import AttendForm, append_source
from accel_lab.backends.cuda.dnn.norms import NormForm
from accel_lab.backends.cuda.jit import nvrtc
from accel_lab.libraries.jit.messages import Compile

DECODING = AttendForm("float32", lane_features=2, vector=4).source()
WIDE = AttendForm("bfloat16", lane_features=8, vector=1).source()
DOUBLE = AttendForm("float64", lane_features=8, vector=4).source()


@pytest.mark.parametrize("architecture", ["80", "90"])
@pytest.mark.parametrize(
    ("source", "name"),
    [
        pytest.param(DECODING, "attend", id="attend-float32"),
        pytest.param(WIDE, "attend", id="attend-bfloat16"),
        pytest.param(DOUBLE, "attend", id="attend-float64"),
        pytest.param(DECODING, "merge", id="merge"),
        pytest.param(NormForm("float32", centered=False).source(), "normalize", id="rms-float32"),
        pytest.param(NormForm("float16", centered=True).source(), "normalize", id="layer-float16"),
        pytest.param(append_source(2), "append", id="append"),
    ],
)
def test_a_kernel_compiles_and_keeps_all_in_registers(
    source: str, name: str, architecture: str
) -> None:
    made = nvrtc.build(Compile(source, name, ("--ptxas-options=-v",)), architecture)
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in made.log
    assert made.log.count(" 0 bytes stack frame") == made.log.count("bytes stack frame")
