"""The text of a kernel that is cut out of a file for nvcc."""

import numpy as np

from tests.benchmarks.public_kernels import attention, llmc, pictures, samples
from tests.benchmarks.public_kernels.case import Case
from tests.benchmarks.public_kernels.cut import cut

PROGRAM = """
#include <stdio.h>
#include "helper.h"
#include <cooperative_groups.h>
#define WIDTH 8  // for wide
#define UNUSED 3
namespace cg = cooperative_groups;
typedef struct __align__(8) { int a, b; } Pair;
struct Other { int x; };
__constant__ float weights[WIDTH];
template <class T> __device__ T twice(T x) { return 2 * x; }
template <> __device__ int twice<int>(int x) { return x << 1; }
__global__ void __launch_bounds__(64) wide(Pair* p, float* x) {
  x[0] = twice(weights[0]); // a } in a comment
}
__global__ void narrow(Other* o) { o->x = 1; }
template void instances<int>(int);
void launch(Pair* p, float* x) { wide<<<1, WIDTH>>>(p, x); }
int main() { return 0; }
"""


def test_what_a_kernel_needs_is_kept_as_it_stands() -> None:
    text = cut(PROGRAM, "wide")
    for kept in (
        "#include <cooperative_groups.h>",
        "#define WIDTH 8  // for wide",
        "typedef struct __align__(8) { int a, b; } Pair;",
        "__constant__ float weights[WIDTH];",
        "template <> __device__ int twice<int>(int x) { return x << 1; }",
        "x[0] = twice(weights[0]); // a } in a comment\n}",
    ):
        assert kept in text
    for left_out in (
        "stdio",
        "helper",
        "UNUSED",
        "Other",
        "narrow",
        "launch(",
        "main",
        "instances",
    ):
        assert left_out not in text


def test_there_are_enough_public_kernels() -> None:
    """Each with something to compare, and arguments for it."""
    cases = [one for some in (llmc, attention, samples, pictures) for one in some.cases()]
    assert len(cases) >= 60
    for case in cases:
        assert case.expected
        assert all(isinstance(case.args[place], np.ndarray) for place in case.expected)


def test_a_wrong_result_is_told() -> None:
    case = Case(("f.cu",), "f", 1, 1, (np.zeros(2),), {0: np.array([1.0, np.inf])})
    assert case.wrong(0, np.array([1.0, np.inf])) == ""
    assert "off by 1.0e+00" in case.wrong(0, np.array([2.0, np.inf]))
    assert "other infinities" in case.wrong(0, np.array([1.0, 1.0]))
