"""An array that has a part on each rank of a world, and what can be computed with it there."""

import operator
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.display.summary import as_html
from accel_lab.errors import InvalidArgument

if TYPE_CHECKING:
    from accel_lab.world.collectives import Collectives

Layout: TypeAlias = int | Literal["replicated", "own"]
"""How the ranks' arrays make one: pieces along an axis, all the same, or each rank's own."""


def _binary(function: Callable[[Any, Any], Any]) -> Callable[["Sharded", Any], "Sharded"]:
    return lambda self, other: self.combine(function, other)


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[["Sharded", Any], "Sharded"]:
    return lambda self, other: self.combine(lambda a, b: function(b, a), other)


def _unary(function: Callable[[Any], Any]) -> Callable[["Sharded"], "Sharded"]:
    return lambda self: self.map(function, layout=self.layout)


class Sharded:
    """One handle for each rank of a world; operators work rank by rank.

    `a + b` and the like take another of the same world, a number, or an array that every rank then
    uses. `a @ b` multiplies rank by rank: rows (0) by something replicated stay rows; columns of
    the first by rows of the second are sums of which each rank has its own, for `all_reduce`.

    Attributes:
        world: whose ranks.
        refs: the handle of each rank.
        layout: the axis along which they are pieces, "replicated", or "own".
    """

    __array_priority__ = 1000
    __array_ufunc__ = None

    def __init__(self, world: "Collectives", refs: Sequence[AccelRef], layout: Layout) -> None:
        self.world = world
        self.refs = tuple(refs)
        self.layout = layout

    @property
    def dtype(self) -> str:
        """The dtype of all of them; blocks where only the devices know it."""
        return self.refs[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole; of a rank's where each has its own."""
        first = self.refs[0].shape
        if not isinstance(self.layout, int):
            return first
        axis = self.layout
        total = sum(ref.shape[axis] for ref in self.refs)
        return *first[:axis], total, *first[axis + 1 :]

    def map(
        self, function: Callable[..., AccelRef], *others: Any, layout: Layout = "own"
    ) -> "Sharded":
        """Return what a function makes of each rank's handle: `x.map(array.sum)`.

        Parameters:
            others: more arguments; of another such array each rank's own.
            layout: how the results make one array.
        """
        columns = [self._of_each(other) for other in others]
        made = [function(*row) for row in zip(self.refs, *columns, strict=True)]
        return Sharded(self.world, made, layout)

    def get(self) -> npt.NDArray[Any]:
        """Return the whole array; blocks. Each rank's own are stacked along a new axis 0."""
        refs = self.refs[:1] if self.layout == "replicated" else self.refs
        replies = [ref.device.get(ref) for ref in refs]
        arrays = [np.asarray(reply.result()) for reply in replies]
        if self.layout == "replicated":
            return arrays[0]
        if self.layout == "own":
            return np.stack(arrays)
        return np.concatenate(arrays, axis=self.layout)

    gather = get

    def result(self, timeout_s: float | None = None) -> "Sharded":
        """Block until all ranks' are done; raise what one failed with."""
        for ref in self.refs:
            ref.result(timeout_s)
        return self

    def __await__(self) -> Generator[Any, None, "Sharded"]:
        for ref in self.refs:
            yield from ref.__await__()
        return self

    def __len__(self) -> int:
        return self.shape[0]

    def __matmul__(self, other: Any) -> "Sharded":
        right: Layout = other.layout if isinstance(other, Sharded) else "replicated"
        theirs = self._of_each(other)
        layout = product_layout(self.layout, right, self.refs[0].shape)
        made = [a @ b for a, b in zip(self.refs, theirs, strict=True)]
        return Sharded(self.world, made, layout)

    __add__, __radd__ = _binary(operator.add), _reflected(operator.add)
    __sub__, __rsub__ = _binary(operator.sub), _reflected(operator.sub)
    __mul__, __rmul__ = _binary(operator.mul), _reflected(operator.mul)
    __truediv__, __rtruediv__ = _binary(operator.truediv), _reflected(operator.truediv)
    __floordiv__, __rfloordiv__ = _binary(operator.floordiv), _reflected(operator.floordiv)
    __mod__, __rmod__ = _binary(operator.mod), _reflected(operator.mod)
    __pow__, __rpow__ = _binary(operator.pow), _reflected(operator.pow)
    __and__, __rand__ = _binary(operator.and_), _reflected(operator.and_)
    __or__, __ror__ = _binary(operator.or_), _reflected(operator.or_)
    __xor__, __rxor__ = _binary(operator.xor), _reflected(operator.xor)
    __lt__ = _binary(operator.lt)
    __le__ = _binary(operator.le)
    __gt__ = _binary(operator.gt)
    __ge__ = _binary(operator.ge)
    __neg__ = _unary(operator.neg)
    __pos__ = _unary(operator.pos)
    __abs__ = _unary(operator.abs)
    __invert__ = _unary(operator.invert)

    def combine(self, function: Callable[[Any, Any], AccelRef], other: Any) -> "Sharded":
        """Return what a function of two does element by element, as `operator.add`."""
        right: Layout = other.layout if isinstance(other, Sharded) else "replicated"
        theirs, layout = self._of_each(other), common_layout(self.layout, right)
        made = [function(a, b) for a, b in zip(self.refs, theirs, strict=True)]
        return Sharded(self.world, made, layout)

    def _of_each(self, other: Any) -> Sequence[Any]:
        """Return what each rank uses of an operand.

        Raises:
            InvalidArgument: it is of another world.
        """
        if not isinstance(other, Sharded):
            return [other] * len(self.refs)
        if [ref.device for ref in other.refs] != [ref.device for ref in self.refs]:
            ours, theirs = self.world.name, other.world.name
            text = f"one array has its parts on {ours}, and the other on other devices, {theirs}'s"
            raise InvalidArgument(text)
        return other.refs

    def __repr__(self) -> str:
        where = ", ".join(ref.device.name for ref in self.refs)
        known = all(ref.known for ref in self.refs)
        what = f"{self.dtype}{list(self.shape)}" if known else "shape not known yet"
        return f"Sharded({what}, {layout_text(self.layout)}, on {where})"

    def _repr_html_(self) -> str:
        lines = [("layout", layout_text(self.layout))]
        for rank, ref in enumerate(self.refs):
            what = f"{ref.dtype}{list(ref.shape)}" if ref.known else "not known yet"
            lines.append((f"rank {rank} on {ref.device.name}", f"{ref.label}: {what}"))
        return as_html(f"an array on the ranks of {self.world.name}", lines)


def layout_text(layout: Layout) -> str:
    """Return a layout in words."""
    if layout == "replicated":
        return "the same on every rank"
    return "each rank's own" if layout == "own" else f"in pieces along axis {layout}"


def common_layout(one: Layout, other: Layout) -> Layout:
    """Return how the results of an elementwise function of two make one array.

    Raises:
        InvalidArgument: they are pieces along different axes.
    """
    if other in (one, "replicated"):
        return one
    if one == "replicated":
        return other
    if "own" in (one, other):
        return "own"
    text = f"one array is in pieces along axis {one}, and the other along axis {other}"
    raise InvalidArgument(f"{text}; gather one, or cut both alike")


def product_layout(left: Layout, right: Layout, shape: tuple[int, ...]) -> Layout:
    """Return how the products of each rank's matrices make one.

    Raises:
        InvalidArgument: a rank's product is no part of the whole one.
    """
    inner = len(shape) - 1
    if left == right == "replicated":
        return "replicated"
    if isinstance(left, int) and left != inner and right == "replicated":
        return left
    if left == "replicated" and right == 1:
        return inner
    if (left == inner and right == 0) or "own" in (left, right):
        return "own"
    text = f"the first is {layout_text(left)}, the second {layout_text(right)}"
    raise InvalidArgument(f"no rank's product is a part of the whole: {text}")
