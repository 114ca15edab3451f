"""Products with an end of their own: CUTLASS's templates on `cuda`, NumPy on `host`.

A product is summed in float32 of float16 and bfloat16, in int32 of int8, else in its own dtype; its
end is computed there, too, and the result rounded once. Operands may be views of any strides. The
bits repeat on one card as long as the same tile is used, which `search` may change.
"""

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Protocol, TypeAlias, cast

from accel_lab.compute.execution.launch import Launch, handles
from accel_lab.compute.execution.worker import Worker
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation
from accel_lab.compute.user_code.call import answer_parts
from accel_lab.libraries.authoring.default_actor import DefaultActor
from accel_lab.libraries.authoring.operand import Number, array_of, element, output
from accel_lab.libraries.cutlass.convolution import *  # noqa: F403 - cutlass.conv and its like
from accel_lab.libraries.cutlass.convolution import (
    Conv,
    ConvDataGradient,
    ConvFilterGradient,
    scale_of,
)
from accel_lab.libraries.cutlass.float8 import *  # noqa: F403 - cutlass.scaled_gemm
from accel_lab.libraries.cutlass.float8 import ScaledGemm
from accel_lab.libraries.cutlass.fused import *  # noqa: F403 - cutlass.fused_gemm
from accel_lab.libraries.cutlass.fused import FusedGemm
from accel_lab.libraries.cutlass.grouped import *  # noqa: F403 - cutlass.grouped_gemm
from accel_lab.libraries.cutlass.grouped import GroupedGemm, parts
from accel_lab.libraries.cutlass.message import *  # noqa: F403 - cutlass.EPILOGUES
from accel_lab.libraries.cutlass.prebuilt import *  # noqa: F403 - cutlass.export
from accel_lab.libraries.cutlass.prebuilt import Export, Install
from accel_lab.libraries.cutlass.product import *  # noqa: F403 - cutlass.gemm
from accel_lab.libraries.cutlass.product import Gemm

Build: TypeAlias = Callable[[], None] | None
"""What compiles a kernel, on any thread; None if it is there."""


class CutlassLibrary(Protocol):
    """What a backend provides."""

    def missing(self, m: Gemm | ScaledGemm, a: Any, b: Any) -> Build:
        """Return what compiles the kernel for a product."""

    def has_searched(self, m: Gemm | ScaledGemm, a: Any, b: Any) -> bool:
        """Whether the tiles for such a product have been timed, or there are none."""

    def search(self, m: Gemm | ScaledGemm, a: Any, b: Any, bias: Any, worker: Worker) -> None:
        """Time the tiles for a product and keep the fastest; it may block the worker."""

    def gemm(self, m: Gemm, a: Any, b: Any, bias: Any, out: Any, scale: Number) -> None:
        """Write epilogue(scale a @ b + bias)."""

    def scaled_gemm(
        self, m: ScaledGemm, a: Any, b: Any, bias: Any, scales: tuple[Any, Any], out: Any
    ) -> None:
        """Write epilogue(scale scale_a scale_b a @ b + bias)."""

    def missing_fused(self, m: FusedGemm, a: Any, b: Any) -> Build:
        """Return what compiles a product with the user's function."""

    def fused_gemm(self, m: FusedGemm, a: Any, b: Any, visited: tuple[Any, ...], out: Any) -> None:
        """Write the function of each sum, and of c, row and column, or None for one of these."""

    def missing_grouped(self, m: GroupedGemm, a: list[Any], b: list[Any]) -> Build:
        """Return what compiles the kernel for products."""

    def grouped_gemm(
        self,
        m: GroupedGemm,
        a: list[Any],
        b: list[Any],
        bias: list[Any],
        out: list[Any],
        scale: Number,
    ) -> None:
        """Write epilogue(scale a[i] @ b[i] + bias[i]) to each part."""

    def missing_conv(self, m: Conv | ConvDataGradient | ConvFilterGradient) -> Build:
        """Return what compiles the kernel for a convolution."""

    def conv(self, m: Conv, x: Any, w: Any, bias: Any, out: Any, scale: Number) -> None:
        """Write the end of what was convolved, scaled, and the bias."""

    def conv_data_gradient(
        self, m: ConvDataGradient, dy: Any, w: Any, out: Any, scale: Number
    ) -> None:
        """Write the gradient by what was convolved."""

    def conv_filter_gradient(
        self, m: ConvFilterGradient, x: Any, dy: Any, out: Any, scale: Number
    ) -> None:
        """Write the gradient by the filters."""


class PrebuiltKernels(Protocol):
    """What a backend that compiles kernels provides, too."""

    def export(self) -> bytes:
        """Return the kernels in use as a file; any thread."""

    def install(self, content: Any, worker: Worker) -> int:
        """Keep those of a file on disk and return how many there are; blocks the worker."""


class CutlassActor(DefaultActor):
    """Owns the kernels that were compiled in one context."""

    library: ClassVar = "cutlass"
    lib: CutlassLibrary

    @handles(Gemm)
    def gemm(self, m: Gemm, launch: Launch) -> None:
        """Enqueue a product; what has to be compiled or timed for it is, beside the dispatcher."""

        def enqueue(_: None = None) -> None:
            out, operands = output(launch, "a", "b", "bias"), _three(m, launch)
            self.lib.gemm(m, *operands, out, element(m, "scale", m.scale, m.a.dtype))

        self._when_chosen(m, launch, enqueue)

    @handles(ScaledGemm)
    def scaled_gemm(self, m: ScaledGemm, launch: Launch) -> None:
        """Enqueue a product of float8, as `gemm`."""

        def enqueue(_: None = None) -> None:
            out, operands = (
                output(launch, "a", "b", "bias", "scale_a", "scale_b"),
                _three(m, launch),
            )
            scales = _read(launch, m.scale_a), _read(launch, m.scale_b)
            self.lib.scaled_gemm(m, *operands, scales, out)

        self._when_chosen(m, launch, enqueue)

    def _when_chosen(
        self, m: Gemm | ScaledGemm, launch: Launch, enqueue: Callable[..., None]
    ) -> None:
        """Enqueue when its tiles have been timed, if it asks for that, and compiled."""
        _look(m, launch)
        a, b = array_of(m.a), array_of(m.b)
        if m.search and not self.lib.has_searched(m, a, b):
            launch.blocking(partial(self.lib.search, m, *_three(m, launch)), enqueue)
        else:
            _when_built(launch, self.lib.missing(m, a, b), enqueue)

    @handles(FusedGemm)
    def fused_gemm(self, m: FusedGemm, launch: Launch) -> None:
        """Enqueue a product that the user's function ends."""
        _look(m, launch)

        def enqueue(_: None = None) -> None:
            visited = tuple(_read(launch, one) for one in (m.c, m.row, m.column))
            self.lib.fused_gemm(m, launch.read(m.a), launch.read(m.b), visited, launch.empties())

        _when_built(launch, self.lib.missing_fused(m, array_of(m.a), array_of(m.b)), enqueue)

    @handles(GroupedGemm)
    def grouped_gemm(self, m: GroupedGemm, launch: Launch) -> None:
        """Enqueue the products, each into its part of the result."""
        _look(m, launch)
        shapes = m.shapes_made()
        scale = element(m, "scale", m.scale, m.a[0].dtype)

        def enqueue(_: None = None) -> None:
            out = parts(launch.empty(), shapes)
            left, right, bias = ([launch.read(one) for one in of] for of in (m.a, m.b, m.bias))
            self.lib.grouped_gemm(m, left, right, bias, out, scale)

        a, b = ([array_of(one) for one in of] for of in (m.a, m.b))
        _when_built(launch, self.lib.missing_grouped(m, a, b), enqueue)

    @handles(Conv)
    def conv(self, m: Conv, launch: Launch) -> None:
        """Enqueue a convolution."""

        def enqueue(_: None = None) -> None:
            out = output(launch, "x", "w", "bias")
            bias = _read(launch, m.bias)
            scale = scale_of(m, m.x.dtype)
            self.lib.conv(m, launch.read(m.x), launch.read(m.w), bias, out, scale)

        _look(m, launch)
        _when_built(launch, self.lib.missing_conv(m), enqueue)

    @handles(ConvDataGradient)
    def conv_data_gradient(self, m: ConvDataGradient, launch: Launch) -> None:
        """Enqueue a gradient."""

        def enqueue(_: None = None) -> None:
            out, scale = output(launch, "dy", "w"), scale_of(m, m.dy.dtype)
            self.lib.conv_data_gradient(m, launch.read(m.dy), launch.read(m.w), out, scale)

        _look(m, launch)
        _when_built(launch, self.lib.missing_conv(m), enqueue)

    @handles(ConvFilterGradient)
    def conv_filter_gradient(self, m: ConvFilterGradient, launch: Launch) -> None:
        """Enqueue a gradient."""

        def enqueue(_: None = None) -> None:
            out, scale = output(launch, "x", "dy"), scale_of(m, m.x.dtype)
            self.lib.conv_filter_gradient(m, launch.read(m.x), launch.read(m.dy), out, scale)

        _look(m, launch)
        _when_built(launch, self.lib.missing_conv(m), enqueue)

    @handles(Export)
    def export(self, m: Export, launch: Launch) -> None:
        """Gather the kernels beside the dispatcher, and answer with the file."""
        del m
        launch.defer(cast("PrebuiltKernels", self.lib).export, partial(_answer, launch))

    @handles(Install)
    def install(self, m: Install, launch: Launch) -> None:
        """Have the kernels of a file kept, beside the dispatcher."""
        install = partial(cast("PrebuiltKernels", self.lib).install, launch.read(m.content))
        launch.blocking(install, partial(_answer, launch))


def _answer(launch: Launch, with_: bytes | int) -> None:
    """Answer with what is no buffer."""
    launch.finish = lambda: answer_parts(launch.seq, pickle.dumps(with_))


def _look(m: Operation[Any], launch: Launch) -> None:
    """Refuse operands that do not fit where the notebook did not know a shape."""
    if launch.spec is None:
        m.infer()


def _three(m: Gemm | ScaledGemm, launch: Launch) -> tuple[Any, Any, Any]:
    return launch.read(m.a), launch.read(m.b), _read(launch, m.bias)


def _read(launch: Launch, ref: AccelRef | None) -> Any:
    return None if ref is None else launch.read(ref)


def _when_built(launch: Launch, build: Build, enqueue: Callable[..., None]) -> None:
    """Enqueue at once, or when the kernel was compiled, beside the dispatcher."""
    if build is None:
        enqueue()
    else:
        launch.defer(build, enqueue)
