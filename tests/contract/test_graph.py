"""The contract of `libraries.graph`: what is recorded computes what it computes when it is sent."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accel_lab import array, blas, fft, primitives, rng
from accel_lab.compute.device import Device
from accel_lab.compute.graph.graph import Graph
from accel_lab.compute.graph.refusals import is_judged, why_refused
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import PartialSpec
from accel_lab.errors import CompileError, InvalidArgument
from tests.contract.declared import (
    DECLARED,
    Support,
    assert_close,
    drawn,
    fetched,
    handles,
    of_each,
)
from tests.contract.samples import assert_same, reals, seeds, value

WAIT_S = 30.0
FAR = "__device__ double far(double a, double b) { return fabs(a) < fabs(b) ? b : a; }"


@contextmanager
def recorded(device: Device, **operands: Any) -> Iterator[Graph]:
    """Record a block; its graph is closed at the end of the test."""
    made = device.graph(**operands)
    with made:
        yield made
    made.handle.result(WAIT_S)


@of_each
def test_a_message_in_a_graph_answers_what_it_answers_alone(
    device: Device, support: Support, name: str
) -> None:
    """Or it is refused by its name, and nothing of it is recorded."""
    one = drawn(support, name)
    operands = one.placed(device)
    message = one.message(operands)
    inferred: Any = message.infer()
    specs = (
        (inferred,)
        if isinstance(inferred, PartialSpec) or not isinstance(inferred, tuple)
        else inferred
    )
    with device.graph() as g:
        is_refused = why_refused(type(message)) or is_judged(message)
        if is_refused or any(isinstance(spec, PartialSpec) for spec in specs):
            with pytest.raises(InvalidArgument, match=f"{one.name} cannot be in a graph: "):
                device.ask(message)
            return
        answered = device.ask(message)
    expected = fetched(device, device.ask(message))
    if not DECLARED[name].kind.aliased:  # a view is there at once
        for ref in handles(answered):
            assert not value(device, ref).any()
    for _ in range(2):
        try:
            g.launch().result(WAIT_S)
        except InvalidArgument as refusal:
            if device.name.startswith("cpu"):
                raise
            pytest.skip(str(refusal))  # by a library that does not let itself be captured
        assert_close(fetched(device, answered), expected)
    for operand, x in one.arrays().items():
        assert_same(value(device, operands[operand]), x)
    g.close()


class Picks:
    """Which operands a step takes, by two numbers."""

    def __init__(self, numbers: list[int]) -> None:
        self._numbers = itertools.cycle(numbers)

    def of(self, there: list[AccelRef]) -> AccelRef:
        """Return the next."""
        return there[next(self._numbers) % len(there)]


Step = Callable[[rng.Generator, list[AccelRef], Picks], AccelRef]
OPERATIONS: dict[str, Step] = {
    "add": lambda _, x, pick: pick.of(x) + pick.of(x),
    "multiply": lambda _, x, pick: array.multiply(pick.of(x), pick.of(x)),
    "tanh": lambda _, x, pick: array.tanh(pick.of(x)),
    "in place": lambda _, x, __: array.add(x[-1], 1.5, out=x[-1]),
    "transpose": lambda _, x, pick: pick.of(x).T,
    "copy": lambda _, x, pick: pick.of(x).copy(),
    "gemm": lambda _, x, pick: array.tanh(blas.gemm(pick.of(x), pick.of(x))),
    "axpy": lambda _, x, pick: blas.axpy(
        pick.of(x).reshape(-1), pick.of(x).copy().reshape(-1), alpha=0.5
    ).reshape(4, 4),
    "fft": lambda _, x, pick: array.real(fft.ifft(fft.fft(pick.of(x)))),
    "draw": lambda generator, x, pick: generator.normal((4, 4), "float64") + pick.of(x),
    "sum": lambda _, x, pick: pick.of(x) + array.sum(pick.of(x), axis=0),
    "row": lambda _, x, pick: array.maximum(pick.of(x)[1:2], pick.of(x)),
}


def test_a_reshape_is_a_view_or_a_copy_as_it_was_recorded(device: Device) -> None:
    """A copy is made with each launch, whatever it is given; where none was made none can be."""
    x, y = (reals(seed, (4, 4), "float64") for seed in (3, 4))
    a, b = device.put(x), device.put(y)
    turned = a.T
    with recorded(device, a=turned) as g:
        flat = turned.reshape(-1)
        twice = flat * 2.0
    for given_, expected in ((b.T, y.T), (b, y)):
        g.launch(a=given_)
        assert_same(value(device, flat), expected.reshape(-1))
        assert_same(value(device, twice), 2.0 * expected.reshape(-1))
    g.close()
    with recorded(device, a=a) as g:
        twice = a.reshape(-1) * 2.0
    with pytest.raises(InvalidArgument, match=r"record copy\(\) before it"):
        g.launch(a=b.T).result(WAIT_S)
    g.close()


@settings(max_examples=40)
@example(seed=0, program=[("transpose", 0, 0), ("axpy", 2, 0)])
@given(
    seed=seeds,
    program=st.lists(
        st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, 99), st.integers(0, 99)),
        min_size=1,
        max_size=8,
    ),
)
def test_a_recorded_program_computes_what_an_eager_one_does(
    device: Device, seed: int, program: list[tuple[str, int, int]]
) -> None:
    """Launch by launch, with other operands, random numbers that go on, and buffers it changes."""

    def run(a: AccelRef, b: AccelRef, generator: rng.Generator) -> list[AccelRef]:
        there = [a, b]
        for name, *chosen in program:
            there.append(OPERATIONS[name](generator, there, Picks(chosen)))
        return there[2:]

    arrays = [reals(seed + i, (4, 4), "float64") for i in range(4)]
    eager, replayed = rng.Generator(device, 7), rng.Generator(device, 7)
    a, b, c, d = (device.put(x) for x in arrays)
    with recorded(device, a=a, b=b) as g:
        made = run(a, b, replayed)
    assert replayed.offset == 0
    twins = [device.put(x) for x in arrays]
    for given_, oracle in (
        ((a, b), twins[:2]),
        ((c, d), twins[2:]),
        ((a, d), (twins[0], twins[3])),
    ):
        g.launch(a=given_[0], b=given_[1])
        expected = run(oracle[0], oracle[1], eager)
        for ref, other, step in zip(made, expected, program, strict=True):
            if step[0] not in ("transpose", "in place"):  # their memory is an operand's own
                np.testing.assert_allclose(value(device, ref), value(device, other), rtol=1e-12)
        for ref, other in zip((a, b, c, d), twins, strict=True):
            np.testing.assert_allclose(value(device, ref), value(device, other), rtol=1e-12)
    assert replayed.offset == eager.offset
    g.close()


@pytest.mark.usefixtures("compiling")
def test_what_has_to_be_compiled_is_compiled_with_the_first_launch(device: Device) -> None:
    """A graph has plans of its own, so that it was compiled before does not count."""
    x = device.put(np.array([1.0, -3, 2]))
    with device.graph(x=x) as g:
        far = primitives.reduce(g["x"], "far", source=FAR)
        ordered = primitives.scan(primitives.sort(g["x"]), "max")
    g.launch(x=device.put(np.array([5.0, 4, -7]))).result(WAIT_S)
    assert value(device, far) == -7
    assert_same(value(device, ordered), np.array([-7.0, 4, 5]))
    with device.graph() as wrong:
        primitives.reduce(x, "far", source=FAR.replace(";", ""))
    with pytest.raises(CompileError, match="far does not compile"):
        wrong.launch().result(WAIT_S)
    g.launch().result(WAIT_S)
    assert value(device, far) == -3
