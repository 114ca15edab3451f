"""The kernel of norms, run on the CPU, against NumPy's on the host."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from accel_lab.backends.cuda.dnn.normalizing import CudaNorms
from accel_lab.backends.host.dnn.library import HostKit
from accel_lab.libraries.dnn.evaluation.normalizing import Norms
from tests.backends.cuda.own_kernels.on_host import HostLaunches
from tests.conftest import require
from tests.contract.samples import reals
from tests.contract.tolerances import EPS

PLAIN = Norms(HostKit())
FORMS = [("rms", "float32"), ("rms", "bfloat16"), ("layer", "float64")]


@pytest.fixture(scope="module")
def launches() -> HostLaunches:
    require("compiler")
    return HostLaunches()


@pytest.fixture(scope="module")
def norms(launches: HostLaunches) -> CudaNorms:
    return CudaNorms(launches, HostKit())


def normalize(by: Norms, name: str, x: Any, scale: Any, bias: Any, y: Any, axes: int) -> None:
    m: Any = SimpleNamespace(x=SimpleNamespace(dtype=str(x.dtype)), axes=axes, epsilon=1e-3)
    if name == "rms":
        by.rms_norm(m, x, scale, y)
    else:
        by.layer_norm(m, x, scale, bias, y)


def check(got: Any, expected: Any, dtype: str) -> None:
    off = 64 * EPS["float64" if dtype == "float64" else "float32"]
    wide, exact = got.astype("float64"), expected.astype("float64")
    np.testing.assert_allclose(wide, exact, rtol=EPS[dtype] + off, atol=off)


@pytest.mark.parametrize("parameters", [(), ("scale",), ("scale", "bias")])
@pytest.mark.parametrize("shape", [(1, 576), (3, 128), (2, 129), (4, 1), (7, 5)])
@pytest.mark.parametrize(("name", "dtype"), FORMS)
def test_a_norm_is_numpys(
    norms: CudaNorms, launches: HostLaunches, name: str, dtype: str, shape: Any, parameters: Any
) -> None:
    x = (3 * reals(1, shape, "float64") + 2).astype(reals(0, (1,), dtype).dtype)
    scale = reals(2, shape[1:], dtype) if "scale" in parameters else None
    bias = reals(3, shape[1:], dtype) if "bias" in parameters else None
    got, expected = np.zeros_like(x), np.zeros_like(x)
    launches.launched.clear()
    normalize(norms, name, x, scale, bias, got, 1)
    assert launches.launched == ["normalize"]
    normalize(PLAIN, name, x, scale, bias, expected, 1)
    check(got, expected, dtype)


def test_rows_of_several_axes_and_in_their_own_place(norms: CudaNorms) -> None:
    x, scale = reals(1, (3, 4, 50), "float32"), reals(2, (4, 50), "float32")
    expected = np.zeros_like(x)
    normalize(PLAIN, "rms", x, scale, None, expected, 2)
    normalize(norms, "rms", x, scale, None, x, 2)
    check(x, expected, "float32")


def test_what_has_gaps_or_overlaps_is_left_to_numpy(
    norms: CudaNorms, launches: HostLaunches
) -> None:
    room = reals(1, (5, 8), "float32")
    launches.launched.clear()
    for x, y in ((room.T, np.zeros((8, 5), "float32")), (room[1:], room[:-1])):
        expected = np.zeros(x.shape, x.dtype)
        normalize(PLAIN, "rms", x, None, None, expected, 1)
        normalize(norms, "rms", x, None, None, y, 1)
        check(y, expected, "float32")
    assert launches.launched == []


def test_a_row_that_is_no_number_is_none(norms: CudaNorms) -> None:
    x = reals(1, (3, 40), "float32")
    x[0, 3], x[1, 5] = np.nan, np.inf
    got, expected = np.zeros_like(x), np.zeros_like(x)
    normalize(norms, "rms", x, None, None, got, 1)
    normalize(PLAIN, "rms", x, None, None, expected, 1)
    check(got, expected, "float32")
