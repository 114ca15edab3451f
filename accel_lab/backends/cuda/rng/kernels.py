"""The source of kernels that draw random numbers.

A thread makes the elements of four words at a time. Nothing is kept between launches, so a
captured launch draws the same again. The C++ is portable, as that of `philox` is.
"""

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from accel_lab.backends.cuda.device.narrow_floats import FORMATS, HALF
from accel_lab.backends.cuda.device.narrow_floats import SOURCE as ROUNDING
from accel_lab.backends.cuda.rng.philox import SOURCE as PHILOX

Kind: TypeAlias = Literal["integers", "uniform", "normal"]

MAX_NDIM = 32

_KERNEL = """
#ifdef __CUDACC__
#define FIRST ((long long)blockIdx.x * blockDim.x + threadIdx.x)
#define STEP ((long long)gridDim.x * blockDim.x)
#else
#define __global__
#define FIRST 0
#define STEP 1
#endif

using philox::u64;

struct Layout {{ long long ndim, shape[{max_ndim}], strides[{max_ndim}]; }};
struct alignas({align}) Group {{ {element} e[{count}]; }};

// Where an element lies, numbered in C order; in bytes.
__device__ long long position(const Layout& layout, long long i) {{
  long long at = 0;
  for (int axis = (int)layout.ndim - 1; axis >= 0; --axis) {{
    at += i % layout.shape[axis] * layout.strides[axis];
    i /= layout.shape[axis];
  }}
  return at;
}}

__device__ void make(const unsigned* w, {number} a, {number} b, {number} c, {element}* e) {{
{make}
}}

extern "C" __global__ void {name}(
    char* out, long long n, u64 seed, u64 stream, u64 offset,
    {number} a, {number} b, {number} c, Layout layout) {{
  bool whole = {dense} && (size_t)out % {align} == 0;
  for (long long g = FIRST; g * {count} < n; g += STEP) {{
    unsigned w[4];
    philox::four(seed, stream, offset + 4 * (u64)g, w);
    Group group;
    make(w, a, b, c, group.e);
    long long first = g * {count};
    if (whole && first + {count} <= n) {{
      ((Group*)out)[g] = group;
      continue;
    }}
    for (int j = 0; j < {count}; ++j)
      if (first + j < n) *({element}*)(out + {at}) = group.e[j];
  }}
}}
"""
_PLACES = {True: "(first + j) * (long long)sizeof({element})", False: "position(layout, first + j)"}
_MAKE = {
    "integers": """
  for (int j = 0; j < {count}; ++j) {{
    e[j] = ({element})(a + philox::chosen<{each}>(w + {each} * j, b));
  }}
""",
    "uniform": """
  for (int j = 0; j < {count}; ++j) {{
    {number} u;
    philox::unit(w + {each} * j, u);
    e[j] = {encode};
  }}
""",
    "normal": """
  for (int j = 0; j < {count}; j += 2) {{
    {number} u, t, z[2];
    philox::unit(w + {each} * j, u);
    philox::unit(w + {each} * (j + 1), t);
    philox::normals(u, t, z);
    for (int i = 0; i < 2; ++i) e[j + i] = {encode};
  }}
""",
}
_VALUES = {
    "uniform": "philox::scaled(u, a, b, c)",
    "normal": "philox::plus(philox::times(z[i], b), a)",
}


class Form(NamedTuple):
    """One kernel.

    Attributes:
        kind: what is drawn.
        dtype: what an element is: of integers, the unsigned one of its width.
        each: how many words an element takes.
        dense: whether elements are adjacent, else at any strides.
    """

    kind: Kind
    dtype: str
    each: int
    dense: bool

    @property
    def number(self) -> str:
        """The C++ type of the kernel's three numbers."""
        if self.kind == "integers":
            return "u64"
        return "double" if self.dtype == "float64" else "float"

    @property
    def name(self) -> str:
        """The kernel's own name."""
        layout = "" if self.dense else "_strided"
        return f"accel_lab_{self.kind}_{self.dtype}_{self.each}{layout}"


def drawing_source(form: Form) -> str:
    """Return the C++ of one kernel, its name being the form's."""
    count = 4 // form.each
    narrow = HALF if form.dtype == "float16" else FORMATS.get(form.dtype)
    width = np.dtype(narrow.storage if narrow else form.dtype).itemsize
    element = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "u64"}[width]
    value = _VALUES.get(form.kind, "")
    if form.kind != "integers" and narrow is None:
        element = form.number
    words = {"count": count, "each": form.each, "element": element, "number": form.number}
    make = _MAKE[form.kind].format(**words, encode=narrow.encode(value) if narrow else value)
    kernel = _KERNEL.format(
        **words,
        align=min(16, count * width),
        at=_PLACES[form.dense].format(element=element),
        dense="true" if form.dense else "false",
        make=make,
        max_ndim=MAX_NDIM,
        name=form.name,
    )
    return ROUNDING + PHILOX + kernel
