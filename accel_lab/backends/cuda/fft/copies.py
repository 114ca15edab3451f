"""Copies around a transform: crop, pad with zeros, scale, and make real what must be.

The kernel reads and writes arrays of any strides. Before a transform to real numbers it takes the
nearest array that is half of a real one's transform, as SciPy does; cuFFT's own answer is undefined
otherwise. This module has no CUDA: the kernel is C++ that a test compiles for the CPU.
"""

import math
from struct import Struct
from typing import Literal, NamedTuple, TypeAlias

from accel_lab.backends.cuda.fft.passes import Axes
from accel_lab.libraries.authoring.shape import MAX_NDIM

Element: TypeAlias = Literal["real", "complex", "loose"]
"""What lies in memory; `loose` complex numbers are aligned only as real ones."""

NARROW_LIMIT = 2**31
_PLAIN, _MIRRORED, _HALVED = range(3)
_NO_NYQUIST = -1
_HEAD = Struct("=QQqdqq")  # operand, result, count, factor, axes, Nyquist's index
_AXIS = Struct("=qqqqq")
JOB_BYTES = _HEAD.size + MAX_NDIM * _AXIS.size

SOURCE = r"""
#ifndef __CUDACC__
#define __device__ static inline
#endif

typedef {real} Real;
typedef {index} Index;
struct Loose {{ Real real, imaginary; }};
struct alignas(2 * sizeof(Real)) Complex {{ Real real, imaginary; }};

struct Axis {{ long long extent, held, from, to, role; }};
struct Job {{
  const char* source;
  char* target;
  long long count;
  double factor;
  long long rank, nyquist;
  Axis axes[{axes}];
}};

__device__ Loose read(const Real* at) {{ return {{*at, 0}}; }}
__device__ Loose read(const Loose* at) {{ return *at; }}
__device__ Loose read(const Complex* at) {{
  Complex value = *at;
  return {{value.real, value.imaginary}};
}}
__device__ void write(Real* at, Loose value) {{ *at = value.real; }}
__device__ void write(Loose* at, Loose value) {{ *at = value; }}
__device__ void write(Complex* at, Loose value) {{ *at = {{value.real, value.imaginary}}; }}

// Element `i` of the result in its order of axes; what the operand does not hold is zero.
__device__ void move_one(const Job& job, Index i) {{
  long long from = 0, mirrored = 0, to = 0;
  bool inside = true, mirror_inside = true, is_edge = false;
  for (long long k = job.rank - 1; k >= 0; --k) {{
    const Axis& axis = job.axes[k];
    Index at = i;
    if (k > 0) {{
      i /= (Index)axis.extent;
      at -= i * (Index)axis.extent;
    }}
    long long here = at, opposite = here;
    if (axis.role == 1 && here > 0) opposite = axis.extent - here;
    if (axis.role == 2) is_edge = here == 0 || here == job.nyquist;
    inside = inside && here < axis.held;
    mirror_inside = mirror_inside && opposite < axis.held;
    from += here * axis.from;
    mirrored += opposite * axis.from;
    to += here * axis.to;
  }}
  Loose value = {{0, 0}};
  if (inside) value = read((const {source}*)(job.source + from));
  if (is_edge) {{
    Loose other = {{0, 0}};
    if (mirror_inside) other = read((const {source}*)(job.source + mirrored));
    value.real = value.real / 2 + other.real / 2;
    value.imaginary = value.imaginary / 2 - other.imaginary / 2;
  }}
  Real factor = (Real)job.factor;
  value.real *= factor;
  value.imaginary *= factor;
  write(({target}*)(job.target + to), value);
}}

#ifdef __CUDACC__
extern "C" __global__ void accel_lab_move(const Job job) {{
  Index step = gridDim.x * blockDim.x;
  for (Index i = (Index)blockIdx.x * blockDim.x + threadIdx.x; i < job.count; i += step)
    move_one(job, i);
}}
#endif
"""
_TYPES = {"real": "Real", "complex": "Complex", "loose": "Loose"}


class Variant(NamedTuple):
    """Which kernel."""

    double: bool
    source: Element
    target: Element
    wide: bool


class Axis(NamedTuple):
    """One axis of the result: its extent, what of it the operand holds, strides in bytes."""

    extent: int
    held: int
    source: int
    target: int
    role: int


class Move(NamedTuple):
    """One copy.

    Attributes:
        axes: the fewest that say the same.
        nyquist: the index along the halved axis, besides 0, where numbers must be real.
    """

    axes: tuple[Axis, ...]
    elements: int
    factor: float
    nyquist: int

    @property
    def wide(self) -> bool:
        """Whether elements are counted in 64 bits."""
        return self.elements >= NARROW_LIMIT

    def job(self) -> bytearray:
        """Return the kernel's argument; the operand and the result are its first two words."""
        job = bytearray(JOB_BYTES)
        _HEAD.pack_into(job, 0, 0, 0, self.elements, self.factor, len(self.axes), self.nyquist)
        for at, axis in enumerate(self.axes):
            _AXIS.pack_into(job, _HEAD.size + at * _AXIS.size, *axis)
        return job


class Halved(NamedTuple):
    """Half of a real array's transform: the halved axis, its whole length, the other axes."""

    axis: int
    length: int
    mirrored: Axes


def move(
    shape: Axes,
    held: Axes,
    source: Axes,
    target: Axes,
    *,
    factor: float = 1.0,
    halved: Halved | None = None,
) -> Move:
    """Return the copy of an operand of shape `held` into a result of `shape`.

    Strides are in bytes. What is larger is cropped and what is smaller padded with zeros.
    """
    axes: list[Axis] = []
    for k in sorted(range(len(shape)), key=lambda k: -abs(target[k])):
        role = _PLAIN
        if halved is not None:
            role = _HALVED if k == halved.axis else role
            role = _MIRRORED if k in halved.mirrored else role
        axis = Axis(shape[k], min(held[k], shape[k]), source[k], target[k], role)
        if axis.extent == axis.held == 1 and role != _HALVED:
            continue
        if axes and _one(axes[-1], axis):
            outer = axes.pop()
            inner = axis.extent
            axis = axis._replace(extent=outer.extent * inner, held=outer.held * inner)
        axes.append(axis)
    nyquist = _NO_NYQUIST
    if halved is not None and halved.length % 2 == 0:
        nyquist = halved.length // 2
    return Move(tuple(axes), math.prod(shape), factor, nyquist)


def source_of(variant: Variant) -> str:
    """Return the C++ of one kernel."""
    return SOURCE.format(
        real="double" if variant.double else "float",
        index="unsigned long long" if variant.wide else "unsigned int",
        axes=MAX_NDIM,
        source=_TYPES[variant.source],
        target=_TYPES[variant.target],
    )


def _one(outer: Axis, inner: Axis) -> bool:
    """Whether two axes can be walked as one."""
    return (
        outer.role == inner.role == _PLAIN
        and inner.held == inner.extent
        and outer.source == inner.source * inner.extent
        and outer.target == inner.target * inner.extent
    )
