"""Copies and pickles of handles, generators and kernels: right, or refused with a reason."""

import copy
import pickle
from multiprocessing.reduction import ForkingPickler
from typing import Any

import cloudpickle
import numpy as np
import pytest

from accel_lab import jit, rng
from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device
from tests.contract.samples import assert_same, value


class Model:
    """Something of the user's that holds arrays and where they are."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.weights = device.put(np.arange(3.0))
        self.noise = rng.Generator(device, seed=3)


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps, ForkingPickler.dumps])
def test_a_handle_does_not_pickle(device: Device, dumps: Any) -> None:
    for array in (np.zeros(4), np.ones(4)):
        x = device.put(array)
        for one in (x, {"weights": [x]}, device.run(lambda: np.ones(2)), device.get(x)):
            with pytest.raises(TypeError, match=r"is not copied or pickled: .*(get|result)\(\)"):
                dumps(one)


def test_a_handle_goes_into_a_function_of_its_device(device: Device) -> None:
    x = device.put(np.arange(3.0))
    assert device.run(lambda: float(x.sum())).result() == 3
    assert device.run(lambda held: float(held["x"][0].sum()), {"x": [x]}).result() == 3


def test_a_reply_is_not_copied(device: Device) -> None:
    waiting: Reply[None] = Reply()
    for reply in (waiting, device.get(device.put(np.ones(2)))):
        for copied in (copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=r"an? \w+ is not copied .*result\(\)"):
                copied(reply)
    answered = device.run(lambda: 3)
    assert answered.result() == 3
    with pytest.raises(TypeError, match=r"not an array: copy what \.result\(\) returns"):
        copy.copy(answered)


def test_a_copy_of_what_frees_a_buffer_is_refused(device: Device) -> None:
    x = device.put(np.arange(3.0))
    with pytest.raises(TypeError, match="an Owner is not copied"):
        copy.copy(x.owner)
    assert_same(value(device, x), np.arange(3.0))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copied_generator_draws_the_same_by_itself(device: Device, copied: Any) -> None:
    mine = rng.Generator(device, seed=5, stream=2)
    mine.normal(3)
    mine.spawn(1)
    twin = copied(mine)
    assert (twin.device, twin.state) == (device, mine.state)
    ahead = [value(device, twin.normal(3)) for _ in range(2)]
    assert mine.offset < twin.offset
    assert_same(np.stack([value(device, mine.normal(3)) for _ in range(2)]), np.stack(ahead))
    with pytest.raises(TypeError, match="Generator is not copied or pickled: keep its state"):
        pickle.dumps(mine)


def test_a_deep_copy_of_what_holds_a_device_is_on_the_same_device(device: Device) -> None:
    mine = Model(device)
    twin = copy.deepcopy(mine)
    assert twin.device is device
    assert copy.copy(device) is device
    assert twin.weights is not mine.weights
    assert_same(value(device, twin.weights), np.arange(3.0))
    assert_same(value(device, twin.noise.words(2)), value(device, mine.noise.words(2)))
    with pytest.raises(TypeError, match=r"a Device is not copied or pickled: .*System\(\)"):
        pickle.dumps(mine)


@pytest.mark.usefixtures("compiling")
def test_a_copied_kernel_is_the_kernel(device: Device) -> None:
    kernel = jit.compile(device, 'extern "C" __global__ void one(float* x) { x[0] = 1; }', "one")
    assert copy.deepcopy([kernel])[0] is copy.copy(kernel) is kernel
    with pytest.raises(TypeError, match="Kernel is not copied or pickled: compile its source"):
        pickle.dumps(kernel)
