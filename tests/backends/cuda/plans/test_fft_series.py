"""The cosine and sine transforms of `cuda`, in NumPy, against SciPy; no CUDA needed.

The contract has them too, by CuPy, where there is a card.
"""

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.fft

from accel_lab.backends.spectra import Tools, real_to_real
from accel_lab.libraries.fft.real_to_real import R2R, TYPES
from accel_lab.libraries.fft.transform import NORMS

TOOLS = Tools(np, scipy.fft)


@pytest.mark.parametrize("variant", TYPES)
@pytest.mark.parametrize("op", ["dct", "dst"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_a_series_by_one_transform_is_scipys(op: Any, variant: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x: Any = rng.standard_normal((4, 2, 7)).astype(dtype)
    if x.dtype.kind == "c":
        x += 1j * rng.standard_normal(x.shape).astype(x.real.dtype)
    ref: Any = SimpleNamespace(shape=x.shape)
    options = product((None, *NORMS), (None, True, False), (None, (5, 9), (3, 2)), (False, True))
    for norm, orthogonalize, s, inverse in options:
        m = R2R(
            ref, s=s, axes=(2, 0), norm=norm, op=op, variant=variant, inverse=inverse,
            orthogonalize=orthogonalize,
        )  # fmt: skip
        got = real_to_real(TOOLS, m, x)
        scipys = getattr(scipy.fft, f"{'i' * inverse}{op}n")
        more = {"orthogonalize": orthogonalize}
        parts = [scipys(part, variant, s, (2, 0), norm, **more) for part in (x.real, x.imag)]
        exact = parts[0] + 1j * parts[1] if x.dtype.kind == "c" else parts[0]
        assert got.dtype == dtype
        error = np.linalg.norm(got - exact) / np.linalg.norm(exact)
        assert error < 16 * np.finfo(dtype).eps, (norm, orthogonalize, s, inverse)
