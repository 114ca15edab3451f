"""Binaries without a GPU: what cubins say of themselves, and what nvJitLink makes of several."""

from importlib.util import find_spec

import pytest

from accel_lab.errors import CompileError
from accel_lab.libraries.jit.messages import Compile
from accel_lab.libraries.module.messages import Binary
from accel_lab.libraries.module.parameter_types import Place

if find_spec("cupy") is None or find_spec("cuda") is None:
    pytest.skip(
        "the packages of the cuda12 or cuda13 extra are not installed", allow_module_level=True
    )

from accel_lab.backends.cuda.jit import nvrtc
from accel_lab.backends.cuda.module.contents import is_relocatable, kernels_of, variables_in
from accel_lab.backends.cuda.module.library import binary_for, entries_of
from accel_lab.backends.cuda.module.linker import linked

MAIN = """
extern __device__ float twice(float);
extern __constant__ float table[4];
__device__ int counter = 5;
struct Point { float x, y, z; };
namespace inner {
__global__ void in(const float* x, unsigned long long n, Point p, unsigned short* q) { *q = n; }
}
extern "C" __global__ void apply(float* y, const float* x, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = twice(x[threadIdx.x]) + table[threadIdx.x & 3];
  ++counter;
}
"""
LIBRARY = """
__constant__ float table[4] = {1, 2, 3, 4};
__device__ float twice(float x) { return 2 * x; }
"""


def binary(source: str, form: str) -> bytes:
    return binary_for(Binary(source, form, linkable=True), "90")


@pytest.mark.parametrize("kinds", [("ptx", "ptx"), ("cubin", "cubin"), ("lto", "lto")])
def test_linked_files_tell_their_kernels_and_variables(kinds: tuple[str, str]) -> None:
    images = [binary(text, kind) for text, kind in zip((MAIN, LIBRARY), kinds, strict=True)]
    cubin, _ = linked(kinds, images, "90")
    assert not is_relocatable(cubin)
    entries = entries_of(kernels_of(cubin))
    assert entries.keys() == {"apply", "inner::in"}
    assert entries["apply"].places == (Place(0, 8), Place(8, 8), Place(16, 4))
    assert entries["apply"].told("apply") == ("8 bytes", "8 bytes", "4 bytes")
    assert entries["inner::in"].told("inner::in") == (
        "const float*",
        "unsigned long long",
        "struct of 12 bytes",
        "unsigned short*",
    )
    assert variables_in(cubin) == {"counter": False, "table": True}


def test_what_is_missing_is_told_in_the_linker_s_words() -> None:
    with pytest.raises(CompileError, match=r"Undefined reference to .*twice"):
        linked(("ptx",), [binary(MAIN, "ptx")], "90")


def test_a_cubin_that_has_to_be_linked_is_told_from_one_that_is() -> None:
    assert is_relocatable(binary(LIBRARY, "cubin"))
    whole = nvrtc.build(Compile("__global__ void f(int* x) { *x = 1; }", "f"), "90").cubin
    assert not is_relocatable(whole)
