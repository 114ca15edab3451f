"""Each tile that a search of CUTLASS's may choose makes the same product, exactly."""

from typing import Any

import numpy as np
import pytest

from accel_lab.compute.device import Device
from tests.conftest import require

pytestmark = pytest.mark.gpu
EXTENTS = (1701, 2604, 700)
"""More tiles than processors, more steps than stages, and an edge at each side."""
WAIT_S = 400.0  # a kernel is compiled in some 10 s, one at a time


def drawn(dtype: str) -> tuple[Any, Any]:
    """Draw operands whose sums are exact in any order."""
    rng, (m, n, k) = np.random.default_rng(0), EXTENTS
    low, beyond = (-128, 128) if dtype == "int8" else (-2, 3)
    a, b = (rng.integers(low, beyond, one).astype(dtype) for one in ((m, k), (k, n)))
    return a, b


def wrong(dtype: str, columns: int) -> list[int]:
    """Return how many elements each tile makes wrong, with `columns` of b; runs in the context."""
    import cupy

    from accel_lab.backends.cuda.cutlass.hopper import Factors, HopperVariant, run_hopper
    from accel_lab.backends.cuda.cutlass.kernels import Kernel, program_of
    from accel_lab.backends.cuda.cutlass.operands import placed
    from accel_lab.backends.cuda.cutlass.product import problem_like, run
    from accel_lab.backends.cuda.jit import nvrtc
    from accel_lab.libraries.cutlass.message import made_of

    card = cupy.cuda.Device()
    processors, architecture = card.attributes["MultiProcessorCount"], card.compute_capability
    left, right = drawn(dtype)
    exact = left.astype("float64") @ right[:, :columns].astype("float64")
    a, b = cupy.asarray(left), cupy.asarray(np.ascontiguousarray(right[:, :columns].T)).T
    problem, how = problem_like(dtype, made_of(dtype), "identity", (a, b), architecture)
    matrices, found = (placed(a, how[0]), placed(b, how[1])), []
    for tile in range(len(problem.tiles)):
        variant = problem.plain._replace(tile=tile)
        kernel = Kernel(nvrtc.build(program_of(variant), architecture).cubin)
        out = cupy.full((len(a), columns), 77, made_of(dtype))
        if isinstance(variant, HopperVariant):
            run_hopper(kernel, variant, matrices, how, None, out, Factors(1), processors)
        else:
            run(kernel, variant, matrices, how, None, out, 1)
        found.append(int((cupy.asnumpy(out) != exact).sum()))
    return found


@pytest.mark.parametrize("columns", [EXTENTS[1], EXTENTS[1] - 1])
@pytest.mark.parametrize("dtype", ["int8", "float64", "float32", "float16"])
def test_every_tile_makes_the_same_product(gpu: Device, dtype: str, columns: int) -> None:
    require("cutlass")
    found = gpu.run(wrong, dtype, columns).result(WAIT_S)
    assert len(found) > 1
    assert not any(found)
