"""NVRTC without a GPU: cubins, what they say of a kernel's parameters, and errors."""

from importlib.util import find_spec
from typing import Any

import pytest

from accel_lab.errors import CompileError
from accel_lab.libraries.jit.messages import Compile
from accel_lab.libraries.jit.signature import TABLE, parameters_of

if find_spec("cupy") is None:
    pytest.skip(
        "the packages of the cuda12 or cuda13 extra are not installed", allow_module_level=True
    )

from accel_lab.backends.cuda.jit import nvrtc
from accel_lab.backends.cuda.jit.cubin import data_of

KINDS = """
enum class Mode : short { a, b };
struct Point { float x, y, z; };
struct Hidden;
template <class T, int N> __global__ void f(
    const T* __restrict__ a, T* b, int c, bool d, Point e, double f, const void* g, Hidden* h,
    float** i, Mode j, const volatile unsigned char* k, unsigned long l, const Point* m) {}
"""
TEXTS = (
    "const float*",
    "float*",
    "int",
    "bool",
    "struct of 12 bytes",
    "double",
    "const void*",
    "struct*",
    "void**",
    "short",
    "const unsigned char*",
    "unsigned long long",
    "const struct of 12 bytes*",
)


def build(source: str, name: str = "f", **options: Any) -> nvrtc.Compiled:
    return nvrtc.build(Compile(source, name, **options), "90")


@pytest.mark.parametrize("standard", ["-std=c++17", "-std=c++20"])
def test_a_cubin_knows_its_kernel_s_parameters(standard: str) -> None:
    compiled = build(KINDS, "f<float, 4>", options=(standard,))
    parameters = parameters_of(data_of(compiled.cubin, TABLE))
    assert tuple(p.text for p in parameters) == TEXTS
    assert [p.size for p in parameters] == [8, 8, 4, 1, 12, 8, 8, 8, 8, 2, 8, 8, 8]
    assert compiled.symbol.encode() in compiled.cubin


def test_a_kernel_without_parameters_has_an_empty_table() -> None:
    compiled = build('extern "C" __global__ void f() {}')
    assert parameters_of(data_of(compiled.cubin, TABLE)) == ()
    assert compiled.symbol == "f"


def test_what_is_no_cubin_or_has_no_table_is_told() -> None:
    with pytest.raises(ValueError, match="64-bit ELF"):
        data_of(b"// PTX", TABLE)
    cubin = build("__global__ void f() {}").cubin
    with pytest.raises(ValueError, match="no variable nowhere"):
        data_of(cubin, "nowhere")
    with pytest.raises(ValueError, match="no table"):
        parameters_of(bytes(16))


def test_the_standard_headers_that_nvcc_has_may_be_included() -> None:
    source = """
    #include <assert.h>
    #include <cuda_runtime.h>
    #include <cfloat>
    #include <climits>
    #include <cmath>
    #include <cstdint>
    #include <cstdio>
    __global__ void f(uint32_t* x, int64_t* y, float* z) {
      assert(x[0] < INT_MAX);
      printf("%u", x[0]);
      y[0] = LLONG_MIN;
      z[0] = fmaxf(-FLT_MAX, -INFINITY);
    }"""
    parameters = parameters_of(data_of(build(source).cubin, TABLE))
    assert [p.element for p in parameters] == ["uint32", "int64", "float32"]


def test_macros_of_the_source_do_not_reach_the_table() -> None:
    source = (
        "#define T float\n#define size 3\n#define word 4\n__global__ void f(T* x) { x[0] = N; }"
    )
    parameters = parameters_of(data_of(build(source, options=("-DN=5", "-DA")).cubin, TABLE))
    assert [p.text for p in parameters] == ["float*"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("\n\n__global__ void f(int* x) { *x = y; }", r"f\.cu\(3\).*\"y\" is undefined"),
        ("__global__ void f(int* x) {", "to match this|missing brace"),
        ("__device__ void f(int* x) {}", "f is one __global__ function"),
        ("__global__ void f(int*) {} __global__ void f(char*) {}", "f is one __global__ function"),
        ('#include "absent.h"\n__global__ void f() {}', r"f\.cu\(1\).*absent\.h"),
    ],
)
def test_errors_have_the_user_s_lines(source: str, said: str) -> None:
    with pytest.raises(CompileError, match=said) as caught:
        build(source)
    assert caught.value.name == "f"


def test_names_of_types_that_nvcc_knows_are_known() -> None:
    """Also where, once they are known, a function without an annotation is met."""
    source = "uint twice(uint x) { return 2 * x; }\n"
    source += "__global__ void f(uint* x, ushort y) { *x = twice(y); }"
    built = build(source)
    assert parameters_of(data_of(built.cubin, TABLE)) is not None
    own = "struct uint { int x; };\n__global__ void f(uint* x) { x->x = 1; }"
    assert build(own).symbols == ("_Z1fP4uint",)
    with pytest.raises(CompileError, match="unheard_of"):
        build("__global__ void f(uint* x) { *x = unheard_of; }")
