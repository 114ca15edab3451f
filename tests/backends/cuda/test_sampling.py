"""The kernels of distributions, compiled for the CPU: each number is the host's, to the bit."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab.backends.cuda.rng.sampling import PARAMETERS, Sampling, sampling_source
from accel_lab.backends.host.rng.library import HostRng
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.libraries import rng
from accel_lab.libraries.authoring.registration import function_name

Draw = Callable[[Any, rng.Draw], None]
PLACE = (2**64 - 3, 2**48 - 1, 4 * 65536 * 7 - 5)
CASES: list[tuple[type[rng.Draw], dict[str, Any]]] = [
    (rng.LogNormal, {"mean": 0.3, "std": 0.7}),
    (rng.LogNormal, {"mean": -690.0, "std": 60.0}),
    (rng.Exponential, {"scale": 3.0}),
    (rng.Cauchy, {"median": 1.0, "scale": 2.0}),
    *[(rng.Gamma, {"alpha": alpha, "scale": 2.0}) for alpha in (1e-300, 0.3, 1.0, 2.5, 1e6)],
    *[(rng.Beta, {"a": a, "b": b}) for a, b in ((1e-300, 1e-300), (0.2, 0.3), (2.0, 500.0))],
    *[(rng.Poisson, {"mean": mean}) for mean in (0.0, 3.0, 9.99, 10.0, 50.0, 1e9)],
    *[
        (rng.Binomial, {"n": n, "p": p})
        for n, p in (
            *[(0, 0.5), (10, 0.0), (10, 1.0), (10, 0.5), (20, 0.5), (25, 0.6)],
            *[(1000, 0.001), (100_000, 0.9), (2**31 - 1, 0.3)],
        )
    ],
]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Sampling], Draw]:
    """Compile a kernel as a function (out, message)."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    folder: Path = tmp_path_factory.mktemp("sampling")
    command = [compiler, "-O1", "-Wall", "-Werror", "-Wno-unused-function", "-ffp-contract=off"]

    def make(form: Sampling) -> Draw:
        library = folder / f"{form.name}.so"
        if not library.exists():
            source = library.with_suffix(".cpp")
            source.write_text(sampling_source(form))
            subprocess.run([*command, "-shared", "-fPIC", source, "-o", library], check=True)
        kernel = getattr(ctypes.CDLL(str(library)), form.name)
        place = (ctypes.c_uint64,) * 3
        kernel.argtypes = (
            *(ctypes.c_void_p, ctypes.c_longlong),
            *(*place, *(ctypes.c_double,) * PARAMETERS),
        )

        def draw(out: Any, message: Any) -> None:
            numbers = [*message.parameters, *[0.0] * PARAMETERS][:PARAMETERS]
            place = message.seed, message.stream, message.offset
            kernel(out.ctypes.data, out.size, *place, *numbers)

        return draw

    return make


@pytest.mark.parametrize(("kind", "options"), CASES, ids=str)
def test_numbers_are_the_host_s(
    build: Callable[[Sampling], Draw], kind: type[rng.Draw], options: dict[str, Any]
) -> None:
    counts = kind in {rng.Poisson, rng.Binomial}
    dtypes = ["int32", "int64"] if counts else ["float32", "float64"]
    if kind is rng.Exponential:  # all round alike
        dtypes += ["float16", "bfloat16"]
    for dtype in dtypes:
        for place in ((1, 0, 0), PLACE):
            message = kind((3001,), dtype, *place, **options)
            message.infer()
            found, expected = (np.empty(message.shape, numpy_dtype(dtype)) for _ in range(2))
            form = Sampling(function_name(kind), f"u{dtype}" if counts else dtype, message.each)
            build(form)(found, message)
            getattr(HostRng(), form.kind)(message, expected)
            assert found.tobytes() == expected.tobytes()
