"""Messages of what they declare: operands whose shapes fit, for the suite that all of them pass."""

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import pytest

from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import PartialSpec, Spec, operand_fields
from accel_lab.libraries.authoring.options import factors_of
from accel_lab.libraries.authoring.registration import messages
from accel_lab.libraries.authoring.shaped import Shaped, operands_in
from accel_lab.libraries.authoring.signature import BATCH, Signature, Taken, parse
from tests.contract.samples import Layout, place, small, value


@dataclass(frozen=True)
class Declared:
    """A message, and with which options.

    Attributes:
        options: what its fields are that are neither operands nor numbers.
        whole: whether it has the operands that may be None.
        numbers: whether it has the numbers that may be left out.
    """

    kind: type[Shaped[Any]]
    options: dict[str, Any] = field(default_factory=dict)
    whole: bool = False
    numbers: bool = True

    @property
    def row(self) -> str:
        """What a backend's table calls it."""
        return f"{self.kind.library}.{self.kind.__name__}"

    @property
    def signature(self) -> Signature:
        """What it takes and makes."""
        return parse(self.kind.shapes)

    @property
    def takes(self) -> dict[str, Taken]:
        """The operands it has."""
        _, optional, _ = operand_fields(self.kind)
        named = zip(operands_in(self.kind), self.signature.takes, strict=True)
        return {name: taken for name, taken in named if self.whole or name not in optional}

    @property
    def shared(self) -> set[str]:
        """The axes that several operands have; those at `...` are one."""
        seen = Counter(axis for taken in self.takes.values() for axis in taken.axes)
        return {axis for axis, times in seen.items() if times > 1}

    @property
    def axes(self) -> list[str]:
        """The names of the axes behind `...`."""
        found = {axis for taken in self.takes.values() for axis in taken.inner}
        return sorted(axis for axis in found if not axis.isdecimal())

    @property
    def has_dots(self) -> bool:
        """Whether an operand may have any axes."""
        return any(BATCH in taken.axes for taken in self.takes.values())

    @property
    def needs_an_axis(self) -> bool:
        """Whether it may refuse what has no axes: a `check` may ask for one."""
        return hasattr(self.kind, "check") or self.row in NEED_POINTS

    @property
    def has_out(self) -> bool:
        """Whether it can be told where to write."""
        return "out" in self.kind.__struct_fields__

    @property
    def derived(self) -> bool:
        """Whether `shapes` is all there is to say: it has no `infer` of its own."""
        return self.kind.infer.__code__.co_filename.startswith("<infer of")


NEED_POINTS = {f"fft.{one}": "at least one" for one in ("C2C", "R2C", "C2R", "R2R")}
NEED_POINTS |= {"fft.Embedded": "the last array ends behind"}
NEED_POINTS |= {"primitives.ArgReduce": "at least one"}
NEED_POINTS |= {f"blas.{one}": "at least one" for one in ("Iamax", "Iamin")}
"""What has no answer if an operand has no element, and the words of its refusal."""


_END = """
template <class T> __device__ T end(T sum) { return sum + T(1); }
template <class T> __device__ T end(T sum, T& aux) {
  aux = sum;
  return end(sum);
}
template <class T> __device__ T end(T sum, T c, T row, T column) {
  return sum + c + row - column;
}
template <class T> __device__ T end(T sum, T c, T row, T column, T& aux) {
  aux = sum;
  return end(sum, c, row, column);
}
"""
EXAMPLES: dict[str, dict[str, Any]] = {
    "array.Binary": {"op": "maximum"},
    "array.Cast": {"dtype": "complex128"},
    "array.Reduce": {"op": "sum"},
    "array.Reshape": {"shape": (-1,)},
    "array.Scan": {"op": "cumsum"},
    "array.Slice": {"index": (None,)},
    "array.Unary": {"op": "absolute"},
    "array.Where": {"numbers": (0, 1)},
    "blas.Gbmv": {"kl": 0},
    "blas.Trsm": {"unit": True},
    "blas.Trsv": {"unit": True},
    "cutlass.FusedGemm": {"op": "end", "source": _END},
    "dnn.Activate": {"op": "gelu"},
    "dnn.ActivateGradient": {"op": "gelu"},
    "dnn.Dropout": {"rate": 0.5, "seed": 1},
    "fft.Embedded": {"n": (2,)},
    "primitives.TopK": {"k": 0},
    "solver.RandomizedSvd": {"k": 2},
    "tensor.Binary": {"subscripts": "...,...->..."},
    "tensor.Permute": {"subscripts": "...->..."},
    "tensor.Reduce": {"subscripts": "...->"},
    "tensor.Trinary": {"subscripts": "...,...,...->..."},
}
"""What the fields are that every message of a kind has; every dtype has these functions."""


HEAVY_DIAGONAL = {f"solver.{one}": "a" for one in ("Cholesky", "Inv", "Lu", "Slogdet", "Solve")} | {
    "solver.CholeskySolve": "c",
    "solver.EighGeneral": "b",
}
"""Operands whose diagonal outweighs the rest, so that they are regular and positive definite."""


SIDES = {f"blas.{one}": {"p": "m"} for one in ("Symm", "Hemm", "Trmm", "Trsm", "Dgmm")}
SIDES["blas.Gbmv"] = {"q": "m"}
"""Axes whose extent an option says, here the default: that of another axis."""


def _example(kind: type[Shaped[Any]]) -> dict[str, Any]:
    """Return the fields that a message of this kind must have.

    Raises:
        TypeError: nobody said what they are.
    """
    row = f"{kind.library}.{kind.__name__}"
    example = EXAMPLES.get(row, {})
    needed = {one.name for one in msgspec.structs.fields(kind) if one.required}
    unsaid = needed - {*operands_in(kind), *factors_of(kind), *example}
    if unsaid:
        raise TypeError(f"EXAMPLES of {__name__} has to say for {row}: {', '.join(sorted(unsaid))}")
    return example


def _declared() -> Iterator[tuple[str, Declared]]:
    for kind in messages():
        if not issubclass(kind, Shaped) or not kind.shapes:
            continue
        takes = parse(kind.shapes).takes
        row = f"{kind.library}.{kind.__name__}"
        example = _example(kind)
        turns = {taken.turned_by for taken in takes} - {""}
        several = bool(turns) or any(taken.optional for taken in takes)
        if not all(taken.optional for taken in takes):
            yield row, Declared(kind, example, numbers=not several)
        if several:
            example = {name: one for name, one in example.items() if name != "numbers"}
            for turn in ("t", "c") if turns else ("whole",):
                options = {**example, **dict.fromkeys(turns, turn)}
                yield f"{row} {turn}", Declared(kind, options, whole=True)


DECLARED = dict(_declared())
Support = Mapping[str, frozenset[str]]
WAIT_S = 30.0

of_each = pytest.mark.parametrize("name", DECLARED)


@dataclass(frozen=True)
class Sample:
    """A message's operands as arrays; what is drawn is what its names and its extents say.

    Attributes:
        extents: of each axis by its name; those at `...` are `batch`.
    """

    declared: Declared
    dtype: str
    extents: dict[str, int]
    batch: tuple[int, ...]

    @property
    def name(self) -> str:
        """What the message is called."""
        return self.declared.kind.__name__

    def arrays(self) -> dict[str, Any]:
        """Return an array for each operand."""
        found = {
            name: small(zlib.crc32(name.encode()), self.shape(taken), self.dtype)
            for name, taken in self.declared.takes.items()
        }
        heavy = found.get(HEAVY_DIAGONAL.get(self.declared.row, ""))
        if heavy is not None and heavy.dtype.kind in "fc":
            heavy += 32 * np.eye(*heavy.shape[-2:], dtype=heavy.dtype)
        return found

    def shape(self, taken: Taken) -> tuple[int, ...]:
        """Return the shape of an operand."""
        axes = self.in_memory(taken)
        inner = [int(one) if one.isdecimal() else self.extents[one] for one in axes]
        return (*(self.batch if BATCH in taken.axes else ()), *inner)

    def in_memory(self, taken: Taken) -> tuple[str, ...]:
        """Return the axes behind `...` as the operand has them, before it is turned."""
        straight = self.declared.options.get(taken.turned_by, "n") == "n"
        return taken.inner if straight else taken.inner[::-1]

    def placed(self, device: Device, layout: Layout = "contiguous") -> dict[str, AccelRef]:
        """Put the operands, as views with strides of this kind."""
        return {name: place(device, x, layout) for name, x in self.arrays().items()}

    def message(self, operands: dict[str, AccelRef], out: AccelRef | None = None) -> Shaped[Any]:
        """Return the message of these operands, with numbers that every dtype has."""
        declared = self.declared
        lone = {factor for of, factor in declared.kind.scaled_by.items() if of not in operands}
        needed = {one.name for one in msgspec.structs.fields(declared.kind) if one.required}
        factors = [
            name
            for name in factors_of(declared.kind)
            if name not in lone and (declared.numbers or name in needed)
        ]
        numbers = dict.fromkeys(factors, 1 if self.dtype == "bool" else 2)
        written = {} if out is None else {"out": out}
        given = {**dict.fromkeys(operands_in(declared.kind)), **operands, **declared.options}
        return declared.kind(**given, **numbers, **written)

    def with_batch(self, *batch: int) -> "Sample":
        """Return one with other axes at `...`."""
        return replace(self, batch=batch)

    def turned_by(self, option: str, turn: str) -> "Sample":
        """Return one with this option."""
        options = {**self.declared.options, option: turn}
        return replace(self, declared=replace(self.declared, options=options))


def sample(declared: Declared, dtype: str, extent: Callable[[str], int]) -> Sample:
    """Return a sample with these extents; `...` stands for two axes."""
    as_of = SIDES.get(declared.row, {})
    extents = {axis: extent(as_of.get(axis, axis)) for axis in declared.axes}
    return Sample(declared, dtype, extents, (extent("first"), extent("second")))


def turned(x: Any, turn: str) -> Any:
    """Return what an operand stands for with this option."""
    if turn == "n":
        return x
    return np.swapaxes(x.conj() if turn == "c" and x.dtype.kind == "c" else x, -1, -2)


def dtypes_of(support: Support, name: str) -> frozenset[str]:
    return support[DECLARED[name].row]


def one_of(support: Support, name: str) -> str:
    """Return the dtype to try a message with where any will do."""
    dtypes = dtypes_of(support, name)
    return "float64" if "float64" in dtypes else min(dtypes)


def different(axis: str) -> int:
    """Return another extent for each axis, so that two in each other's place are seen."""
    return 3 + sum(map(ord, axis)) % 5


def alike(axis: str) -> int:
    """Return one extent for every axis, so that any operand has the shape of the result."""
    return 3


def none_of(empty: str, axis: str) -> int:
    """Return the extents where one axis has none."""
    return 0 if axis == empty else 3


def drawn(support: Support, name: str) -> Sample:
    return sample(DECLARED[name], one_of(support, name), different)


def answer(device: Device, message: Shaped[Any]) -> Any:
    """Return what a message answers, which is what it announces: an array, or a tuple of several.

    What it does not ask for is not in the tuple.
    """
    inferred: Any = message.infer()
    answered: Any = device.ask(message)
    is_one = isinstance(inferred, Spec | PartialSpec)
    specs: tuple[Spec | PartialSpec | None, ...] = (inferred,) if is_one else inferred
    several = (answered,) if is_one else answered
    assert [ref is None for ref in several] == [spec is None for spec in specs]
    refs, announced = handles(answered), [spec for spec in specs if spec is not None]
    for ref, spec in zip(refs, announced, strict=True):
        assert fits(ref.shape, spec.shape)
        assert ref.dtype == spec.dtype
    got = fetched(device, answered)
    arrays = (got,) if is_one else got
    for x, ref in zip(arrays, refs, strict=True):
        assert (x.shape, x.dtype) == (ref.shape, numpy_dtype(ref.dtype))
    return got


@contextmanager
def told(case: str) -> Iterator[None]:
    """Say with what fails that fails: a test of each message tries many, to be quick."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"with {case}")
        raise


def fits(shape: tuple[int, ...], announced: tuple[int | None, ...]) -> bool:
    """Tell whether a shape is what was announced; None is an extent that the device finds."""
    return len(shape) == len(announced) and all(
        extent in (None, made) for extent, made in zip(announced, shape, strict=True)
    )


def handles(answered: Any) -> list[AccelRef]:
    """Return each handle that a message is answered with."""
    several = (answered,) if isinstance(answered, AccelRef) else answered
    return [ref for ref in several if ref is not None]


def fetched(device: Device, answered: Any) -> Any:
    """Return what stands behind a message's answer: an array, or a tuple of several."""
    if isinstance(answered, AccelRef):
        return value(device, answered)
    return tuple([value(device, ref) for ref in handles(answered)])


def assert_close(got: Any, expected: Any) -> None:
    """Compare sums that were formed in another order; of several results each."""
    if isinstance(expected, tuple):
        for one, other in zip(got, expected, strict=True):
            assert_close(one, other)
        return
    wide = "complex128" if got.dtype.kind == "c" else "float64"
    x, y = got.astype(wide), expected.astype(wide)
    np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-6 * np.abs(y).max(initial=0))
