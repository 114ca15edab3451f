"""Put, ask, free, fault and restart in any order, against a plain model in NumPy.

The model predicts every answer: a value, or the error of an operand whose generation is over.
"""

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
    run_state_machine_as_test,
)

from accel_lab import AccelRef, Device, System, array, blas
from accel_lab.errors import ContextLost, InvalidArgument, LibraryError, StaleRef

WAIT = 60.0
SIZE = 3
LIVES = {"host": 12, "cuda": 4}
"""A life loses its context a dozen times, and a card takes most of a second for a new one."""
Array = npt.NDArray[Any]


@pytest.fixture(scope="module")
def lab(backend: Any) -> Iterator[System]:
    name = backend.__name__.rpartition(".")[2]
    with System(name, devices=1, max_restarts=10_000, within_s=0.01, recover="stale") as system:
        yield system


class Held:
    """A handle and what the model says is behind it; views share the model's array too."""

    def __init__(self, ref: AccelRef, value: Array, generation: int) -> None:
        self.ref = ref
        self.value = value
        self.generation = generation


class Life(RuleBasedStateMachine):
    """One device, as long as hypothesis likes."""

    lab: System
    held: Bundle[Held] = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.device: Device = self.lab.devices[0]
        self.generation = self.device.generation
        self.library_faults = 0
        self.lose("kill")  # so that no life knows of the one before

    def keep(self, ref: AccelRef, value: Array) -> Held:
        assert ref.shape == value.shape
        return Held(ref, value, self.generation)

    def usable(self, *operands: Held) -> bool:
        """Whether the model says that all operands are of this generation."""
        return all(one.generation == self.generation for one in operands)

    @rule(target=held, seed=st.integers(0, 9))
    def put(self, seed: int) -> Held:
        value = np.random.default_rng(seed).integers(-3, 4, (SIZE, SIZE)).astype(np.float64)
        return self.keep(self.device.put(value), value.copy())

    @rule(target=held, a=held, b=held, alpha=st.sampled_from([1.0, -0.5]))
    def axpy(self, a: Held, b: Held, alpha: float) -> Held:
        if self.usable(a, b):
            return self.keep(blas.axpy(a.ref, b.ref, alpha=alpha), alpha * a.value + b.value)
        with pytest.raises(StaleRef):
            blas.axpy(a.ref, b.ref)
        return a

    @rule(a=held, b=held, out=held)
    def gemm_in_place(self, a: Held, b: Held, out: Held) -> None:
        if np.shares_memory(a.value, out.value) or np.shares_memory(b.value, out.value):
            with pytest.raises((InvalidArgument, StaleRef)):
                blas.gemm(a.ref, b.ref, out=out.ref).result(WAIT)
        elif self.usable(a, b, out):
            blas.gemm(a.ref, b.ref, out=out.ref, alpha=0.25)
            out.value[...] = 0.25 * a.value @ b.value
        else:
            with pytest.raises(StaleRef):
                blas.gemm(a.ref, b.ref, out=out.ref)

    @rule(x=held)
    def scale_in_place(self, x: Held) -> None:
        if self.usable(x):
            blas.scal(x.ref, 0.5, out=x.ref)
            x.value *= 0.5
        else:
            with pytest.raises(StaleRef):
                blas.scal(x.ref, 0.5, out=x.ref)

    @rule(x=held, y=held, row=st.integers(0, SIZE - 1))
    def assign(self, x: Held, y: Held, row: int) -> None:
        if self.usable(x, y):
            x.ref[row] = y.ref[:, row]
            x.value[row] = y.value[:, row].copy()
            x.ref[x.ref < 0] = 1.0
            x.value[x.value < 0] = 1.0
        else:
            with pytest.raises(StaleRef):
                x.ref[row] = y.ref[:, row]

    @rule(target=held, x=held)
    def transpose(self, x: Held) -> Held:
        if self.usable(x):
            return self.keep(array.transpose(x.ref), x.value.T)
        with pytest.raises(StaleRef):
            array.transpose(x.ref)
        return x

    @rule(x=held)
    def get(self, x: Held) -> None:
        if self.usable(x):
            np.testing.assert_allclose(self.device.get(x.ref).result(WAIT), x.value, rtol=1e-12)
        else:
            with pytest.raises(StaleRef):
                self.device.get(x.ref)

    @rule(x=consumes(held))
    def free(self, x: Held) -> None:
        del x
        gc.collect(0)

    @rule(fault=st.sampled_from(["kill", "exit", "poison"]))
    def lose(self, fault: Any) -> None:
        self.device.run(int).result(WAIT)  # nothing else is in flight
        with pytest.raises(ContextLost) as caught:
            self.lab.inject(fault).result(WAIT)
        assert caught.value.generation == self.generation
        self.generation += 1
        self.library_faults = 0

    @rule()
    def library_fault(self) -> None:
        """The restart of one library actor costs no buffer; the fourth in a minute does."""
        self.device.run(int).result(WAIT)
        self.library_faults += 1
        if self.library_faults <= 3:
            with pytest.raises(LibraryError):
                self.lab.inject("library").result(WAIT)
        else:
            with pytest.raises(ContextLost, match="too often"):
                self.lab.inject("library").result(WAIT)
            self.generation += 1
            self.library_faults = 0

    @invariant()
    def generations_agree(self) -> None:
        assert self.device.generation == self.generation


@pytest.mark.timeout(300)
def test_every_answer_is_the_models(lab: System) -> None:
    class LifeHere(Life):
        pass

    LifeHere.lab = lab
    run_state_machine_as_test(
        LifeHere,
        settings=settings(
            max_examples=LIVES[lab.backend],
            stateful_step_count=40,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
    lab.check()
