"""The contract of `tensor.tune`: the orders there are, and what the fastest computes."""

from itertools import count, pairwise
from typing import Any

import numpy as np
import pytest

from accel_lab import array, tensor
from accel_lab.compute.device import Device
from accel_lab.libraries.tensor.path import steps_of
from accel_lab.libraries.tensor.tuning import tuned
from tests.contract.samples import reals, refused, value
from tests.contract.tolerances import assert_near, wide

TEXT = "ab,bc,cd,de->ae"
SHAPES = ((4, 30), (30, 2), (2, 40), (40, 3))


@pytest.mark.parametrize("dtype", ["float32", "complex128", "bfloat16"])
def test_it_answers_an_order_that_computes_the_same(device: Device, dtype: str) -> None:
    arrays = [reals(seed, shape, dtype) for seed, shape in enumerate(SHAPES)]
    on = [device.put(x) for x in arrays]
    found = tensor.tune(TEXT, *on).result(timeout_s=60)
    assert isinstance(found, tensor.Tuned)
    assert 0 <= found.best_us <= found.first_us
    assert 1 <= found.orders <= 4
    got = value(device, tensor.contract(TEXT, *on, optimize=found.optimize))
    exact, size = (np.einsum(TEXT, *(of(wide(x)) for x in arrays)) for of in (np.array, np.abs))
    assert_near(got, exact, dtype, magnitude=size, operations=80)


def test_the_fastest_is_chosen_and_each_order_is_tried_once() -> None:
    """By a clock of our own, for which what "dp" does takes the least."""
    wanted, tried = steps_of(TEXT, SHAPES, "dp"), []

    def time_us(steps: Any) -> float:
        tried.append(steps)
        return 1.0 if steps == wanted else 5.0

    found = tuned(TEXT, SHAPES, time_us)
    assert steps_of(TEXT, SHAPES, found.optimize) == wanted
    assert (found.best_us, found.orders) == (1.0, len(set(tried)))
    assert len(tried) == len(set(tried))
    assert found.first_us == (1.0 if steps_of(TEXT, SHAPES, "auto") == wanted else 5.0)


def test_of_many_tensors_not_every_order_is_looked_at() -> None:
    names = "abcdefghijkl"
    text = ",".join(a + b for a, b in pairwise(names)) + "->al"
    later = count(1.0)  # each order takes longer than the one before
    found = tuned(text, ((2, 2),) * 11, lambda _: next(later))
    assert found.optimize == "auto"
    assert found.first_us == found.best_us == 1.0


def test_an_order_needs_no_elements_and_mistakes_are_refused(device: Device) -> None:
    empty, x = array.zeros(device, (3, 0)), array.zeros(device, (3, 2))
    assert tensor.tune("ij,kj->ik", empty, empty).result(timeout_s=60).orders == 1
    wrong: Any = "fp4"
    with refused(device, "Tune: there is no tensor"):
        tensor.tune("->")
    with refused(device, "j is 2 and 3"):
        tensor.tune("ij,jk->ik", x, x)
    with refused(device, "compute is 'fp4'"):
        tensor.tune("ij,kj->ik", x, x, compute=wrong)
