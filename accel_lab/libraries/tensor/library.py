"""Tensors whose axes have names: cuTENSOR on `cuda` where it is installed, else cuBLAS and CuPy.

"ij,jk->ik" is a product of matrices: a name stands for an axis, those that the result lacks are
summed over, and `...` stands for whatever axes come there. Functions have cuTENSOR's names. float16
and bfloat16 are computed in float32 and rounded once.
"""

# ruff: noqa: PLC0414 - names of this module, wherever they are written

import pickle
from functools import partial
from typing import Any, ClassVar, Protocol

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import device_of
from accel_lab.compute.execution.launch import Launch, handles
from accel_lab.compute.execution.worker import Worker
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.compute.wire.codec import Answer
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.default_actor import DefaultActor
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import (
    Number,
    Scalar,
    array_of,
    coefficient,
    describe,
    element,
    one_dtype,
    output,
    plain,
    require_out,
    result,
)
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.authoring.shaped import Shaped
from accel_lab.libraries.tensor.message import (
    BINARY,
    COMPUTES,
    DTYPES,
    UNARY,
    named_axes,
    require_op,
    require_whole,
)
from accel_lab.libraries.tensor.message import BinaryOp as BinaryOp
from accel_lab.libraries.tensor.message import Compute as Compute
from accel_lab.libraries.tensor.message import UnaryOp as UnaryOp
from accel_lab.libraries.tensor.path import Optimize as Optimize
from accel_lab.libraries.tensor.tuning import Tuned as Tuned

_OPTIMIZE = ("auto", "greedy", "optimal", "dp")


class Contract(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=380):
    """Sum products of any number of tensors: alpha times what `subscripts` say, as np.einsum.

    Two are multiplied at a time, in the order that opt_einsum finds: `optimize` is "auto",
    "greedy", "optimal" or "dp". `compute` is in what sums are formed at least: "tf32", "float32" or
    "float64", without it the operands' own precision. Nothing between is rounded to the dtype.
    """

    library: ClassVar[str] = "tensor"
    dtypes: ClassVar = DTYPES
    subscripts: str
    tensors: tuple[AccelRef, ...]
    alpha: Factor = 1.0
    compute: Compute = ""
    optimize: Optimize = "auto"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of the names behind the arrow, and the operands' dtype."""
        if not self.tensors:
            raise InvalidArgument("Contract: there is no tensor to contract")
        modes = named_axes(self, self.tensors)
        dtype = one_dtype(self, *self.tensors)
        computes = COMPUTES.get(dtype, ())
        if computes and self.compute not in ("", *computes):
            text = f"compute is {self.compute!r}; of {dtype} it may be {', '.join(computes)}"
            raise InvalidArgument(f"Contract: {text}")
        if self.optimize not in _OPTIMIZE:
            text = f"optimize is {self.optimize!r}; it may be {', '.join(_OPTIMIZE)}"
            raise InvalidArgument(f"Contract: {text}")
        coefficient(self, "alpha", self.alpha, dtype)
        spec = result(self, modes.shape, dtype)
        require_out(self, self.out, spec)
        for ref in self.tensors:
            if self.out is not None and ref.id == self.out.id:
                text = f"{describe(ref)} is read while out is written, and both are one buffer"
                raise InvalidArgument(f"Contract: {text}; give another out, or none")
        return spec


class Tune(Operation[Tuned], frozen=True, array_like=True, eq=False, tag=385):
    """Try the orders in which a contraction can be done, and answer which is the fastest.

    The fields are those of `Contract`. What it computes goes nowhere, and it does not hold up other
    messages. Nothing is kept: give the answer's `optimize` to `contract`, so that it does the same
    whenever it runs again. Products are those of cuBLAS on `cuda`, also beside cuTENSOR.
    """

    library: ClassVar[str] = "tensor"
    dtypes: ClassVar = DTYPES
    subscripts: str
    tensors: tuple[AccelRef, ...]
    compute: Compute = ""

    def infer(self) -> None:
        """Refuse what does not fit; the answer is no buffer."""
        Contract(self.subscripts, self.tensors, compute=self.compute).infer()


class OfTensors(Shaped[AccelRef], frozen=True, array_like=True, eq=False):
    """A message of `tensor` whose operands are fields."""

    library: ClassVar[str] = "tensor"
    dtypes: ClassVar = DTYPES


class Reduce(OfTensors, frozen=True, tag=381):
    """Reduce the axes that the result of `subscripts` lacks: alpha times their sum, as "ijk->ki".

    `op` is "add", "mul", "max" or "min". A name that stands twice is a diagonal.
    """

    shapes: ClassVar = "(...)->?"
    subscripts: str
    x: AccelRef
    op: BinaryOp = "add"
    _: Options
    alpha: Factor = 1.0
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse what the names or the function do not fit."""
        require_op(self, "op", BINARY, self.x.dtype)
        modes = named_axes(self, (self.x,))
        lost = [n for n in modes.takes[0] if n not in modes.makes]
        if self.op in ("max", "min") and any(modes.extents[name] == 0 for name in lost):
            raise InvalidArgument(f"Reduce: {describe(self.x)} has no {self.op}: it is empty")

    def makes(self) -> Spec:
        """Return the shape of the names behind the arrow."""
        return result(self, named_axes(self, (self.x,)).shape, self.x.dtype)


class Permute(OfTensors, frozen=True, tag=382):
    """Reorder axes and take a function of each element: alpha op(x), as "ijk->kji"."""

    shapes: ClassVar = "(...)->?"
    subscripts: str
    x: AccelRef
    op: UnaryOp = "identity"
    _: Options
    alpha: Factor = 1.0
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse what the names or the function do not fit."""
        require_op(self, "op", UNARY, self.x.dtype)
        require_whole(self, named_axes(self, (self.x,)))

    def makes(self) -> Spec:
        """Return the shape of the names behind the arrow."""
        return result(self, named_axes(self, (self.x,)).shape, self.x.dtype)


class Binary(OfTensors, frozen=True, tag=383):
    """Combine two tensors by names: op(alpha op_a(a), gamma op_c(c)), as "i,ij->ji".

    `op` is "add", "mul", "max" or "min". An operand that lacks a name of the result serves all of
    that axis.
    """

    shapes: ClassVar = "(...),(...)->?"
    broadcasts: ClassVar = True
    subscripts: str
    a: AccelRef
    c: AccelRef
    op: BinaryOp = "add"
    _: Options
    alpha: Factor = 1.0
    gamma: Factor = 1.0
    op_a: UnaryOp = "identity"
    op_c: UnaryOp = "identity"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of the names behind the arrow."""
        return _elementwise(self, (self.a, self.c), ("op",), ("op_a", "op_c"), ("alpha", "gamma"))


class Trinary(OfTensors, frozen=True, tag=384):
    """Combine three tensors by names: op_abc(op_ab(alpha op_a(a), beta op_b(b)), gamma op_c(c)).

    `subscripts` are as "i,j,ij->ij". An operand that lacks a name of the result serves all of that
    axis.
    """

    shapes: ClassVar = "(...),(...),(...)->?"
    broadcasts: ClassVar = True
    subscripts: str
    a: AccelRef
    b: AccelRef
    c: AccelRef
    op_ab: BinaryOp = "add"
    op_abc: BinaryOp = "add"
    _: Options
    alpha: Factor = 1.0
    beta: Factor = 1.0
    gamma: Factor = 1.0
    op_a: UnaryOp = "identity"
    op_b: UnaryOp = "identity"
    op_c: UnaryOp = "identity"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of the names behind the arrow."""
        factors = ("alpha", "beta", "gamma")
        refs = (self.a, self.b, self.c)
        return _elementwise(self, refs, ("op_ab", "op_abc"), ("op_a", "op_b", "op_c"), factors)


def _elementwise(
    message: Any,
    refs: tuple[AccelRef, ...],
    binary: tuple[str, ...],
    unary: tuple[str, ...],
    factors: tuple[str, ...],
) -> Spec:
    """Return what a function of several tensors makes, and refuse what does not fit."""
    dtype = one_dtype(message, *refs)
    modes = named_axes(message, refs)
    require_whole(message, modes)
    for name in binary:
        require_op(message, name, BINARY, dtype)
    for name in unary:
        require_op(message, name, UNARY, dtype)
    for name in factors:
        coefficient(message, name, getattr(message, name), dtype)
    spec = result(message, modes.shape, dtype)
    require_out(message, message.out, spec, *refs)
    return spec


reduce, permute = function(Reduce), function(Permute)
binary, trinary = function(Binary), function(Trinary)


def contract(
    subscripts: str,
    *tensors: AccelRef,
    alpha: Scalar = 1.0,
    compute: Compute = "",
    optimize: Optimize = "auto",
    out: AccelRef | None = None,
) -> AccelRef:
    """Return the sum of products of tensors, as `Contract` says; does not block.

    Raises:
        InvalidArgument: the operands or options do not fit, or are on two devices.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    if not tensors:
        raise InvalidArgument("Contract: there is no tensor to contract")
    message = Contract(subscripts, tensors, plain(alpha), compute, optimize, out)
    return device_of(tensors[0]).ask(message)


def tune(subscripts: str, *tensors: AccelRef, compute: Compute = "") -> Reply[Tuned]:
    """Find the fastest order of a contraction, as `Tune` says; does not block.

    Raises:
        InvalidArgument: the operands or options do not fit, or are on two devices.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    if not tensors:
        raise InvalidArgument("Tune: there is no tensor to contract")
    return device_of(tensors[0]).ask(Tune(subscripts, tensors, compute))


class TensorLibrary(Protocol):
    """What a backend provides beside the methods of default handlers."""

    def contract(self, m: Contract, tensors: tuple[Any, ...], out: Any, alpha: Number) -> None:
        """Write the sum of products."""

    def measure(self, m: Tune, tensors: tuple[Any, ...], worker: Worker) -> Tuned:
        """Return which order is the fastest; it may block."""


class TensorActor(DefaultActor):
    """Owns the plans of contractions in one context."""

    library: ClassVar = "tensor"
    lib: TensorLibrary

    @handles(Contract)
    def contract(self, m: Contract, launch: Launch) -> None:
        """Enqueue a contraction."""
        m.infer()  # the notebook could not, where a shape was unknown to it
        same = launch.context.backend.same_memory
        to: Any = m.out
        for ref in m.tensors if to is not None else ():
            if array_of(ref) is not array_of(to) and same(array_of(ref), array_of(to)):
                shown = f"{describe(ref)} and out {describe(to)} are overlapping views"
                raise InvalidArgument(f"Contract: {shown} of one buffer; copy it first")
        out = output(launch)
        tensors = tuple([launch.read(ref) for ref in m.tensors])
        self.lib.contract(m, tensors, out, element(m, "alpha", m.alpha, m.tensors[0].dtype))

    @handles(Tune)
    def tune(self, m: Tune, launch: Launch) -> None:
        """Measure beside the dispatcher."""
        m.infer()  # the notebook could not, where a shape was unknown to it
        tensors = tuple([launch.read(ref) for ref in m.tensors])

        def answer(found: Tuned) -> None:
            data = pickle.dumps(found)
            launch.finish = lambda: [Answer(launch.seq, data, True, [])]  # noqa: FBT003

        launch.blocking(partial(self.lib.measure, m, tensors), answer)
