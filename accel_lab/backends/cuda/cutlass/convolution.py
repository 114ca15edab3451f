"""Convolutions of images on cuda: implicit products, of channels that are rounded up to vectors."""

from typing import Any, NamedTuple, TypeAlias

import cupy
import numpy as np

from accel_lab.backends.cuda.cutlass.kernels import Kernels
from accel_lab.backends.cuda.cutlass.operands import is_direct
from accel_lab.backends.cuda.cutlass.variant import (
    KINDS,
    default_tile,
    defined,
    grid_of,
    padded,
)
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.cutlass.convolution import (
    Conv,
    ConvDataGradient,
    ConvFilterGradient,
    window_of,
)
from accel_lab.libraries.cutlass.library import Build
from accel_lab.libraries.cutlass.message import Epilogue

Message: TypeAlias = Conv | ConvDataGradient | ConvFilterGradient

DIRECTIONS: dict[type[Message], tuple[str, str]] = {
    Conv: ("DefaultConv2dFprop", "kStrided"),
    ConvDataGradient: ("DefaultConv2dDgrad", "kUnity"),
    ConvFilterGradient: ("DefaultConv2dWgrad", "kStrided"),
}
"""CUTLASS's kernel, and the strides that its iterators are made for."""


class ConvVariant(NamedTuple):
    """One kernel."""

    dtype: str
    direction: str
    strides: str
    epilogue: Epilogue
    tile: int

    @property
    def ahead(self) -> str:
        """Nothing: options fill the files."""
        return ""

    @property
    def sources(self) -> tuple[str, ...]:
        """The files, one behind the other."""
        return ("ends.cuh", "convolution.cu")

    def options(self) -> tuple[str, ...]:
        """Return the compiler's options, which fill the template."""
        kind = KINDS[self.dtype]
        named = {"DIRECTION": self.direction, "STRIDES": self.strides}
        return defined(kind, self.tile, self.epilogue, kind.width, named)


class Problem(NamedTuple):
    """What a convolution is, as the template's `Problem`, with channels that are rounded up."""

    n: int
    h: int
    w: int
    c: int
    k: int
    r: int
    s: int
    p: int
    q: int
    pad_h: int
    pad_w: int
    stride_h: int
    stride_w: int
    dilation_h: int
    dilation_w: int

    @property
    def has_places(self) -> bool:
        """Whether the window fits anywhere."""
        return min(self.n, self.p, self.q) > 0

    def shapes(self, kind: type[Message]) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the operands and of the result."""
        image, made = (self.n, self.h, self.w, self.c), (self.n, self.p, self.q, self.k)
        filters = self.k, self.r, self.s, self.c
        if kind is Conv:
            return image, filters, made
        return (made, filters, image) if kind is ConvDataGradient else (made, image, filters)

    def product(self, kind: type[Message]) -> tuple[int, int]:
        """Return the rows and columns of the product (implicit_gemm_problem_size)."""
        if kind is Conv:
            return self.n * self.p * self.q, self.k
        if kind is ConvDataGradient:
            return self.n * self.h * self.w, self.c
        return self.k, self.r * self.s * self.c


class CudaConvolutions:
    """Convolutions and their gradients."""

    _kernels: Kernels

    def missing_conv(self, m: Message) -> Build:
        """Return what compiles the kernel for a convolution, on any thread; None if it is there."""
        problem = problem_of(m)
        return self._kernels.missing(self._conv_variant(m, problem)) if problem.has_places else None

    def conv(self, m: Conv, x: Any, w: Any, bias: Any, out: Any, scale: Number) -> None:
        """Write the end of what was convolved, scaled, and the bias."""
        self._convolve(m, (x, w, bias), out, scale)

    def conv_data_gradient(
        self, m: ConvDataGradient, dy: Any, w: Any, out: Any, scale: Number
    ) -> None:
        """Write the gradient by what was convolved."""
        self._convolve(m, (dy, w, None), out, scale)

    def conv_filter_gradient(
        self, m: ConvFilterGradient, x: Any, dy: Any, out: Any, scale: Number
    ) -> None:
        """Write the gradient by the filters."""
        self._convolve(m, (dy, x, None), out, scale)

    def _convolve(
        self, m: Message, operands: tuple[Any, Any, Any], out: Any, scale: Number
    ) -> None:
        problem = problem_of(m)
        if not out.size:
            return
        if not problem.has_places:
            out.fill(0)
            return
        variant = self._conv_variant(m, problem)
        (a, b, bias), (of_a, of_b, made) = operands, problem.shapes(type(m))
        if isinstance(m, ConvDataGradient):
            a = spread(a, of_a, window_of(m, m.w.shape[1:3]).stride)
        target = out if out.shape == made and is_direct(out) else cupy.ndarray(made, out.dtype)
        four = (
            whole(a, of_a),
            whole(b, of_b),
            None if bias is None else whole(bias, (problem.k,)),
            target,
        )
        given = (
            *map(np.int32, problem),
            np.float32(scale.real),
            np.float32(bias is not None),
            *(0 if x is None else x.data.ptr for x in four),
        )
        block = KINDS[variant.dtype].tiles[variant.tile].block
        grid = grid_of(block, *problem.product(type(m)))
        self._kernels.loaded(variant).launch(grid, given)
        if target is not out:
            cupy.copyto(out, target[tuple(map(slice, out.shape))])

    def _conv_variant(self, m: Message, problem: Problem) -> ConvVariant:
        dtype = dtype_of(m)
        rows, columns = problem.product(type(m))
        tile = default_tile(dtype, rows, columns, self._kernels.processors)
        return ConvVariant(dtype, *DIRECTIONS[type(m)], getattr(m, "epilogue", "identity"), tile)


def dtype_of(m: Message) -> str:
    """Return the dtype of a convolution."""
    return m.dy.dtype if isinstance(m, ConvDataGradient) else m.x.dtype


def problem_of(m: Message) -> Problem:
    """Return what a convolution is.

    A gradient by the input is that of a convolution whose window stops everywhere: what it lacks
    are zeros.
    """
    if isinstance(m, Conv):
        (n, h, w, c), (k, r, s, _) = m.x.shape, m.w.shape
    elif isinstance(m, ConvDataGradient):
        (k, r, s, c), n, (h, w) = m.w.shape, m.dy.shape[0], two(m.extents)
    else:
        (n, h, w, c), k, (r, s) = m.x.shape, m.dy.shape[3], two(m.window)
    slides = window_of(m, (r, s))
    if isinstance(m, ConvDataGradient):
        slides = slides._replace(stride=(1, 1))
    c, k = (padded(dtype_of(m), channels) for channels in (c, k))
    options = (*slides.padding, *slides.stride, *slides.dilation)
    return Problem(n, h, w, c, k, r, s, *slides.places((h, w)), *options)


def two(extents: Any) -> tuple[int, int]:
    """Return height and width, which the message has checked."""
    height, width = extents
    return height, width


def spread(dy: Any, shape: tuple[int, ...], stride: tuple[int, ...]) -> Any:
    """Return a gradient with zeros at the places that a stride left out."""
    if dy.shape[1:3] == shape[1:3]:
        return dy
    made = cupy.zeros((*shape[:3], dy.shape[3]), dy.dtype)
    down, across = (
        slice(0, (n - 1) * s + 1, s) for n, s in zip(dy.shape[1:3], stride, strict=True)
    )
    made[:, down, across] = dy
    return made


def whole(x: Any, shape: tuple[int, ...]) -> Any:
    """Return an array that is read in vectors, with zeros up to a shape; maybe itself."""
    if x.shape == shape and is_direct(x):
        return x
    made = cupy.zeros(shape, x.dtype)
    made[tuple(map(slice, x.shape))] = x
    return made
