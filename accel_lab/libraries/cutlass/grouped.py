"""Many products of different shapes as one kernel."""

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Any, ClassVar

from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.libraries.authoring.dtype_sets import REAL_FLOATS
from accel_lab.libraries.authoring.operand import (
    Scalar,
    describe,
    element,
    one_dtype,
    plain,
    result,
)
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.cutlass.message import (
    Epilogue,
    made_of,
    refusal,
    require_epilogue,
    require_extents,
)


class GroupedGemm(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=741):
    """Multiply pairs of matrices of any shapes: epilogue(scale a[i] @ b[i] + bias[i]).

    The answer has one axis: the elements of the first product in C order, then those of the next.
    There is a `bias` (n,) for each pair, or none at all. Dtypes and ends are those of `Gemm`.
    """

    library: ClassVar[str] = "cutlass"
    dtypes: ClassVar = REAL_FLOATS | {"int8"}
    uncaptured: ClassVar = "its table of addresses is written by the host"
    a: tuple[AccelRef, ...]
    b: tuple[AccelRef, ...]
    bias: tuple[AccelRef, ...] = ()
    _: Options
    scale: Factor = 1
    epilogue: Epilogue = "identity"

    def infer(self) -> Spec:
        """Return the extent of all products together."""
        return result(self, (sum(map(prod, self.shapes_made())),), made_of(self.a[0].dtype))

    def shapes_made(self) -> list[tuple[int, int]]:
        """Return the shape of each product.

        Raises:
            InvalidArgument: the matrices do not go in pairs, or those of one do not fit.
        """
        if not self.a or len(self.a) != len(self.b):
            text = f"a has {len(self.a)} matrices and b has {len(self.b)}"
            raise refusal(self, f"{text}; they go in pairs, one at least")
        if self.bias and len(self.bias) != len(self.a):
            text = f"bias has {len(self.bias)} vectors, and a has {len(self.a)} matrices"
            raise refusal(self, f"{text}; there is one for each, or none")
        require_epilogue(self)
        one_dtype(self, *self.a, *self.b, *self.bias)
        element(self, "scale", self.scale, self.a[0].dtype)
        made = []
        for at, (a, b) in enumerate(zip(self.a, self.b, strict=True)):
            if a.ndim != len("mk") or b.ndim != len("kn") or a.shape[1] != b.shape[0]:
                text = f"a[{at}] is {describe(a)} and b[{at}] is {describe(b)}"
                raise refusal(self, f"{text}; it takes (m,k),(k,n)")
            require_extents(self, a, b)
            made.append((a.shape[0], b.shape[1]))
        for at, (bias, (_, n)) in enumerate(zip(self.bias, made, strict=False)):
            if bias.shape != (n,):
                raise refusal(self, f"bias[{at}] is {describe(bias)}, and is to be of shape [{n}]")
        return made


def grouped_gemm(
    a: Sequence[AccelRef],
    b: Sequence[AccelRef],
    bias: Sequence[AccelRef] = (),
    *,
    scale: Scalar = 1,
    epilogue: Epilogue = "identity",
) -> list[AccelRef]:
    """Return epilogue(scale a[i] @ b[i] + bias[i]), as `GroupedGemm`; does not block.

    The products are views of one buffer.

    Raises:
        InvalidArgument: the matrices do not go in pairs, those of one do not fit, or they have not
            one dtype.
    """
    message = GroupedGemm(tuple(a), tuple(b), tuple(bias), scale=plain(scale), epilogue=epilogue)
    shapes = message.shapes_made()
    made: list[AccelRef] = parts(device_of(message.a[0]).ask(message), shapes)
    return made


def parts(whole: Any, shapes: list[tuple[int, int]]) -> list[Any]:
    """Return each product as a view of all."""
    ends = accumulate(map(prod, shapes))
    return [
        whole[end - prod(shape) : end].reshape(shape)
        for end, shape in zip(ends, shapes, strict=True)
    ]
