"""CUTLASS's kernels with a function of the user's: what NVRTC makes of them, without a GPU."""

import struct
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

if find_spec("cupy") is None:
    pytest.skip(
        "the packages of the cuda12 or cuda13 extra are not installed", allow_module_level=True
    )

from accel_lab.backends.cuda.cutlass.fused import CudaFused, FusedVariant, visitor_of
from accel_lab.backends.cuda.cutlass.hopper import HopperVariant
from accel_lab.backends.cuda.cutlass.kernels import Kernels, every_template, program_of
from accel_lab.backends.cuda.cutlass.prebuilt import require_fitting
from accel_lab.backends.cuda.cutlass.product import problem_like
from accel_lab.backends.cuda.cutlass.variant import COLUMN, HOPPER_KINDS, ROW, Variant, layouts
from accel_lab.backends.cuda.jit import nvrtc
from accel_lab.backends.cuda.jit.cubin import data_of
from accel_lab.compute.machine.disk_cache import DiskCache
from accel_lab.errors import BackendUnavailable, CompileError, InvalidArgument
from accel_lab.libraries.cutlass.fused import Visit
from accel_lab.libraries.cutlass.prebuilt import Prebuilt
from tests.backends.cuda.cutlass.test_cutlass_kernels import SHARED_LIMIT, matrix, needs_headers

# Its own WIDTH is none of the template's, which stands behind it.
SOURCE = """
enum { WIDTH = 3 };
template <class T> __device__ T end(T sum, T c, T row, T column, T by, T to, T& aux) {
  aux = by * sum + row;
  return (aux > T(0) ? aux : T(0)) * c + to * column + T(WIDTH);
}
double plain(double sum) { return -sum; }
"""
WHOLE = Visit("end", SOURCE, ("c", "row", "column"), 2, writes=True)
NOTHING = Visit("plain", SOURCE, (), 0, writes=False)
FLOATS = ("float16", "bfloat16", "float32", "float64")


def compiled(variant: FusedVariant, architecture: str) -> tuple[bytes, str]:
    checked = program_of(variant)
    options = (*checked.options, "--ptxas-options=-v")
    made = nvrtc.build(msgspec.structs.replace(checked, options=options), architecture)
    return made.cubin, made.log


@needs_headers
@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["80", "90"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_tile_compiles_with_a_function(dtype: str, architecture: str) -> None:
    a, b = layouts(dtype)
    is_hopper = architecture == "90" and dtype in HOPPER_KINDS
    for tile, wide in enumerate((True, False) * 3):
        base = Variant(dtype, a[0], b[-1], "identity", wide, tile, "fused.cu", is_hopper)
        if tile < len(base.kind.every):
            cubin, _ = compiled(FusedVariant(base, WHOLE), architecture)
            shared_bytes, threads = struct.unpack("=2I", data_of(cubin, "facts"))
            assert 0 < shared_bytes <= (SHARED_LIMIT if architecture == "90" else 163 << 10)
            of = base.kind.every[tile]
            blocks = zip(of.block, of.warp, strict=True)
            assert threads == 32 * np.prod([block // warp for block, warp in blocks])


@needs_headers
@pytest.mark.slow
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("tile", [0, 1, 2])
def test_every_tile_compiles_with_a_function_for_hopper(tile: int, wide: bool) -> None:  # noqa: FBT001
    base = HopperVariant("bfloat16", ROW, COLUMN, "identity", wide, "bfloat16", tile)
    _, log = compiled(FusedVariant(base, WHOLE), "90")
    assert "0 bytes spill stores, 0 bytes spill loads" in log
    assert "serialized" not in log


@needs_headers
@pytest.mark.slow
def test_a_function_that_is_given_nothing_else_compiles() -> None:
    base = Variant("float64", ROW, ROW, "identity", is_wide=False, tile=1, template="fused.cu")
    compiled(FusedVariant(base, NOTHING), "80")


@needs_headers
@pytest.mark.slow
def test_what_does_not_compile_names_the_line() -> None:
    wrong = Visit("end", "\nfloat end(float sum) { return nothing; }", (), 0, writes=False)
    base = HopperVariant("float16", ROW, COLUMN, "identity", is_wide=True, made="float16", tile=2)
    with pytest.raises(CompileError) as failed:
        compiled(FusedVariant(base, wrong), "90")
    assert "epilogue.cu(2)" in failed.value.log


def test_a_visitor_lies_as_the_template_has_it() -> None:
    """Four addresses, then eight numbers in the dtype of the sums."""
    arrays = [None, *(SimpleNamespace(data=SimpleNamespace(ptr=at)) for at in (7, 8, 9))]
    for dtype, letter in (("float32", "f"), ("float64", "d")):
        message: Any = SimpleNamespace(summed_in=dtype, numbers=(1.5, -2.0))
        found = struct.unpack(f"=4Q8{letter}", bytes(visitor_of(message, arrays)))
        assert found == (0, 7, 8, 9, 1.5, -2, *[0] * 6)


@pytest.mark.parametrize("architecture", ["80", "90"])
def test_a_refit_needs_the_same_kernel(architecture: str) -> None:
    """Other operands of the same extents, wherever they are, and other numbers."""
    first = matrix((64, 32), "float16"), matrix((32, 48), "float16")
    moved = matrix((64, 32), "float16", at=1 << 22), matrix((32, 48), "float16", at=1 << 23)
    found = {problem_like("float16", "float16", "relu", x, architecture) for x in (first, moved)}
    assert len(found) == 1
    odd = matrix((64, 32), "float16", at=(1 << 22) + 2), first[1]
    assert problem_like("float16", "float16", "relu", odd, architecture) not in found


def kernels_at(path: Any, architecture: str) -> Kernels:
    """Return kernels of a machine whose caches are there, and which has no card."""
    made: Any = Kernels.__new__(Kernels)
    made.architecture, made.processors, made.card = architecture, 132, "a card"
    made._jit = SimpleNamespace(build=nvrtc.build)
    made._loaded, made._cubins, made._prebuilt = {}, {}, DiskCache(path)
    kernels: Kernels = made
    return kernels


def test_an_installed_kernel_needs_no_headers(tmp_path: Any, monkeypatch: Any) -> None:
    base = Variant("float32", ROW, ROW, "identity", is_wide=False, tile=1, template="fused.cu")
    template = FusedVariant(base, NOTHING)
    made, here = kernels_at(tmp_path / "there", "90"), kernels_at(tmp_path / "here", "90")
    made._prebuilt.put(made._name(template), {"kernel.cubin": b"a cubin"})
    made.compile(template)
    exported = made.built()
    monkeypatch.setattr(nvrtc, "cutlass_headers", lambda: None)
    with pytest.raises(BackendUnavailable, match="headers are not installed"):
        here._cubin(template)
    here.install(exported)
    assert here._cubin(template) == b"a cubin"
    other = kernels_at(tmp_path / "here", "80")
    with pytest.raises(BackendUnavailable, match="headers are not installed"):
        other._cubin(template)


def test_an_installed_tile_is_taken(tmp_path: Any) -> None:
    found, _ = problem_like(
        "float32", "float32", "identity", (matrix((9, 8), "float32"),) * 2, "90"
    )
    machines = []
    for name in ("there", "here"):
        machine = CudaFused.__new__(CudaFused)
        machine._kernels, machine._tiles = kernels_at(tmp_path, "90"), {}
        machine._cache = DiskCache(tmp_path / name)
        machines.append(machine)
    there, here = machines
    assert here._tile(found) is None
    there._tiles[found] = 1
    here.install_tiles(there.found_tiles())
    assert here._tile(found) == 1


def test_a_file_for_others_is_refused_by_name() -> None:
    fits = Prebuilt("90", every_template(), {}, {})
    require_fitting(fits, "90")
    with pytest.raises(InvalidArgument, match=r"compute capability 9\.0.*has 8\.0"):
        require_fitting(fits, "80")
    with pytest.raises(InvalidArgument, match=r"compute capability 10\.0"):
        require_fitting(fits._replace(architecture="100"), "90")
    with pytest.raises(InvalidArgument, match="another version of accel_lab"):
        require_fitting(fits._replace(templates="0"), "90")
