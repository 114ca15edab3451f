"""Run by a test: libraries that ask for a namespace compute with handles, on a backend.

`python -m tests.contract.consumers host`. SciPy reads SCIPY_ARRAY_API when it is imported, so this
is a program of its own. It writes the names of what was compared with NumPy's.
"""

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np
import scipy.signal
import scipy.special
import scipy.stats
from sklearn.decomposition import PCA
from sklearn.externals import array_api_compat
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import KernelCenterer, LabelEncoder, StandardScaler

from accel_lab import AccelRef, System, array_api

Call = Callable[..., Any]
dispatching: Call = importlib.import_module("sklearn").config_context  # which has no types
signal, stats, special, compat = (
    scipy.signal,
    scipy.stats,
    scipy.special,
    array_api_compat,
)
rng = np.random.default_rng(0)
NOISE, TAPS, MATRIX = rng.normal(size=64), rng.normal(size=9), rng.normal(size=(5, 5))
GRAM, LABELS = MATRIX @ MATRIX.T, rng.integers(10, 15, 64)
ROWS, CLASSES = rng.normal(size=(64, 5)), rng.integers(0, 3, 64)
CALLS: dict[str, tuple[Call, tuple[Any, ...]]] = {
    "signal.fftconvolve": (signal.fftconvolve, (NOISE, TAPS)),
    "signal.detrend": (signal.detrend, (NOISE,)),
    "signal.wiener": (signal.wiener, (NOISE,)),
    "special.softmax": (special.softmax, (NOISE,)),
    "stats.ttest_ind": (stats.ttest_ind, (NOISE, TAPS)),
    "stats.jarque_bera": (stats.jarque_bera, (NOISE,)),
    "stats.kurtosis": (stats.kurtosis, (NOISE,)),
    "sklearn.KernelCenterer": (lambda x: KernelCenterer().fit_transform(x), (GRAM,)),
    "sklearn.LabelEncoder": (lambda x: LabelEncoder().fit_transform(x), (LABELS,)),
    "sklearn.StandardScaler": (lambda x: StandardScaler().fit_transform(x), (ROWS,)),
    "sklearn.GaussianNB": (lambda x, y: GaussianNB().fit(x, y).predict_proba(x), (ROWS, CLASSES)),
    "sklearn.PCA": (lambda x: PCA(2, svd_solver="full").fit_transform(x), (ROWS,)),
    "sklearn.Ridge": (lambda x, y: Ridge(solver="svd").fit(x, y).predict(x), (ROWS, NOISE)),
}


def arrays(answer: Any) -> list[Any]:
    """Return the arrays of an answer: itself, or what a result of a test of SciPy's has."""
    if hasattr(answer, "statistic"):
        return [answer.statistic, answer.pvalue]
    return [answer]


def compare(device: Any, name: str) -> None:
    """Call a function with handles and with arrays, and compare what it returns."""
    call, operands = CALLS[name]
    made = arrays(call(*map(device.put, operands)))
    for one, exact in zip(made, arrays(call(*operands)), strict=True):
        assert isinstance(one, AccelRef), name
        assert one.device is device
        np.testing.assert_allclose(one.get(), exact, rtol=1e-12, atol=1e-12, err_msg=name)
    sys.stdout.write(f"{name}\n")


def look(device: Any) -> None:
    """Have array-api-compat tell what a handle is."""
    x = device.put(NOISE)
    assert compat.is_array_api_obj(x)
    assert compat.array_namespace(x, x, 1.0, None) is array_api
    assert compat.device(x) is device
    assert compat.size(x) == NOISE.size
    assert compat.to_device(x, device) is x
    assert not compat.is_numpy_array(x)
    assert not compat.is_lazy_array(x)
    sys.stdout.write("array_api_compat\n")


if __name__ == "__main__":
    with System(sys.argv[1], devices=1) as lab, dispatching(array_api_dispatch=True):
        (gpu,) = lab.devices
        for each in CALLS:
            compare(gpu, each)
        look(gpu)
        lab.check()
