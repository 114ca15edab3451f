"""Functions of your own that read what is transformed, and take what came of it.

They have the signatures of cuFFT's callbacks. They run as kernels of `jit` before and behind the
transform, on `cuda` and, through the host's compiler, on `host`. cuFFT would link them into its own
kernels, which saves the passes; but then a plan belongs to one callback and one address of `info`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from accel_lab.compute.arrays.dtypes import canonical, complex_of, real_of
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array import library as array
from accel_lab.libraries.authoring.dtype_sets import SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.shape import Integers, ints
from accel_lab.libraries.fft.fourier import c2c, c2r, r2c
from accel_lab.libraries.fft.transform import Norm
from accel_lab.libraries.jit.kernel import Kernel

__all__ = ["Callbacks"]

CallbackForm: TypeAlias = Literal["c2c", "r2c", "c2r"]
_THREADS = 256
_MOST_BLOCKS = 1 << 16  # each thread goes on to the elements that are left
_TYPES = {
    "float32": "float",
    "float64": "double",
    "complex64": "float2",
    "complex128": "double2",
}
_NAME = re.compile(r"(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*(?:<.*>)?")
_HEADERS = dict.fromkeys(
    ("cufft.h", "cufftXt.h"),
    """#pragma once
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef float2 cufftComplex;
typedef double2 cufftDoubleComplex;
""",
)
# A pointer of the type that the function has; it starts a line of its own, as the source may end
# in a comment.
_POINTER = """
struct accel_lab_pointer {
  const void* at;
  template <class T> __device__ operator T*() const { return (T*)at; }
};
"""
_LOOP = """  unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < count; i += step)
"""
_LOAD = f"""{_POINTER}
__global__ void accel_lab_load(
    const char* in, $T* points, const char* info, unsigned long long count) {{
{_LOOP}
    points[i] = $function(
        accel_lab_pointer{{in}}, i, accel_lab_pointer{{info}}, accel_lab_pointer{{nullptr}});
}}
"""
_STORE = f"""{_POINTER}
__global__ void accel_lab_store(
    const $T* made, char* out, const char* info, unsigned long long count) {{
{_LOOP}
    $function(
        accel_lab_pointer{{out}}, i, made[i], accel_lab_pointer{{info}},
        accel_lab_pointer{{nullptr}});
}}
"""


class Callbacks:
    """A transform with a load callback, a store callback, or both; call it to transform.

    Each is a `__device__` function of the CUDA C++ source, as cuFFT takes it.
    `T load(void* in, unsigned long long at, void* info, void* shared)` returns point `at` of what
    is transformed, in C order.
    `void store(void* out, unsigned long long at, T value, void* info, void* shared)` takes
    component `at` of the result.

    T is `float2` for complex numbers and `float` for real ones, or `double2` and `double`. The
    pointers may be of any type. `info` is what you give besides, and is only read; `shared` points
    to nothing. It is compiled at once, without a wait, and each callback costs a pass of its own.

    Parameters:
        load, store: their names in the source.
        form: "c2c", "r2c" or "c2r", of which `load` has the first and `store` the last.
        dtype: the precision.
        options, headers: as `jit.compile` has them; `#include <cufftXt.h>` has cuFFT's types.

    Raises:
        InvalidArgument: there is no callback, form or precision of this name.
    """

    def __init__(
        self,
        device: Device,
        source: str,
        *,
        load: str = "",
        store: str = "",
        form: CallbackForm = "c2c",
        dtype: object = "float32",
        options: Iterable[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if form not in get_args(CallbackForm):
            raise InvalidArgument(f"Callbacks: form is {form!r}; it may be 'c2c', 'r2c' or 'c2r'")
        if (named := canonical(dtype)) not in SINGLE_AND_DOUBLE:
            raise InvalidArgument(f"Callbacks: dtype is {named}; it may be float32 or float64")
        self.device, self.form = device, form
        numbers = {"c": complex_of(named), "r": real_of(complex_of(named))}
        self._points, self._made = numbers[form[0]], numbers[form[-1]]
        self._load, self._store = (
            self._compiled(source, what, name, text, dtype, options, headers)
            for what, name, text, dtype in (
                ("load", load, _LOAD, self._points),
                ("store", store, _STORE, self._made),
            )
        )
        if self._load is self._store is None:
            raise InvalidArgument("Callbacks: name a function of the source as load, store or both")

    def _compiled(
        self,
        source: str,
        what: str,
        name: str,
        text: str,
        dtype: str,
        options: Iterable[str],
        headers: Mapping[str, str] | None,
    ) -> Kernel | None:
        """Return the kernel that calls a function for each element, or None if there is none."""
        if name == "":
            return None
        if _NAME.fullmatch(str(name)) is None:
            raise InvalidArgument(f"Callbacks: {what} is a function's name, not {name!r}")
        text = text.replace("$T", _TYPES[dtype]).replace("$function", name)
        given = {**_HEADERS, **(headers or {})}
        whole = f'{source}\n#line 1 "the {what} callback"{text}'
        return Kernel(self.device, whole, f"accel_lab_{what}", options, given)

    def __call__(
        self,
        x: AccelRef,
        info: AccelRef | None = None,
        *,
        shape: Integers | None = None,
        s: Integers | None = None,
        axes: Integers | None = None,
        norm: Norm | None = None,
        inverse: bool = False,
        out: AccelRef | None = None,
    ) -> AccelRef:
        """Transform, and return the result; does not block.

        Parameters:
            x: what `load` reads, of any dtype and without gaps, or what is transformed.
            info: what both callbacks read besides.
            shape: that of what `load` makes; without it that of `x`.
            s, axes, norm, inverse: as `c2c`, `r2c` and `c2r` have them.
            out: what `store` writes, of any shape and dtype, or the result.

        Raises:
            InvalidArgument: the transform does not fit; what a kernel does not take, as a view with
                gaps, fails the result.
        """
        if inverse and self.form != "c2c":
            raise InvalidArgument(f'Callbacks: inverse is of "c2c"; "{self.form}" has one way')
        points = x
        if self._load is not None:
            extents = x.shape if shape is None else ints("shape", shape)
            points = array.zeros(self.device, extents, self._points)
            self._launch(self._load, x, points, info, points.size)
        elif shape is not None:
            raise InvalidArgument(
                "Callbacks: shape is that of what load makes, and there is no load"
            )
        target = out if self._store is None else None
        options: Any = {"s": s, "axes": axes, "norm": norm}
        if self.form == "c2c":
            if target is None and self._load is not None and s is None:
                target = points
            made = c2c(points, **options, inverse=inverse, out=target)
        else:
            made = (r2c if self.form == "r2c" else c2r)(points, **options, out=target)
        if self._store is None:
            return made
        if out is None:
            out = array.zeros(self.device, made.shape, made.dtype)
        self._launch(self._store, made, out, info, made.size)
        return out

    def _launch(
        self, kernel: Kernel, source: AccelRef, target: AccelRef, info: Any, count: int
    ) -> None:
        blocks = min(-(-count // _THREADS), _MOST_BLOCKS)
        if blocks:
            kernel(blocks, _THREADS, (source, target, info, np.uint64(count)))
