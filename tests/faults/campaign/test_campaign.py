"""A thousand mixed messages over four devices, with a context killed every fifty.

A plain model of NumPy arrays predicts each answer. A request may fail only if its own context
was killed under it or an operand's was; everything else must have NumPy's value.
"""

import gc
import os
import random
import signal
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from accel_lab import AccelRef, Device, System, array, blas
from accel_lab.actor.reply import Reply
from accel_lab.errors import ContextLost, DependencyFailed, StaleRef
from tests.faults.conftest import census, no_more_than, pid_of, settle

MESSAGES, KILL_EVERY, DEVICES = 1000, 50, 4
WAIT = 60.0
Array = npt.NDArray[Any]


@dataclass
class Asked:
    """One request and what the model says of it."""

    device: Device
    generation: int
    reply: Reply[Any]
    expected: Any


class Model:
    """What one device should hold, as NumPy arrays."""

    def __init__(self, device: Device, rng: np.random.Generator) -> None:
        self.device = device
        self.rng = rng
        self.held: list[tuple[AccelRef, Array]] = []

    def step(self, dice: random.Random) -> Asked | None:
        """Send one message; None when the call itself says that an operand is stale."""
        generation = self.device.generation
        self.held = [(ref, value) for ref, value in self.held if ref.generation == generation][-12:]
        try:
            reply, expected = self._send(dice)
        except StaleRef:
            assert self.device.generation > generation
            return None
        if isinstance(reply, AccelRef):
            generation = reply.generation
            if expected.shape == (6, 6):
                self.held.append((reply, expected))
        return Asked(self.device, generation, reply, expected)

    def _send(  # noqa: PLR0911 - one for each kind of message
        self, dice: random.Random
    ) -> tuple[Reply[Any], Any]:
        if len(self.held) < 2:
            value = self.rng.standard_normal((6, 6))
            return self.device.put(value), value
        (a, left), (b, right) = dice.sample(self.held, 2)
        match dice.randrange(8):
            case 0:
                value = self.rng.standard_normal((6, 6))
                return self.device.put(value), value
            case 1:
                return blas.gemm(a, b, alpha=0.1), 0.1 * left @ right
            case 2:
                return blas.axpy(a, b, alpha=-0.5), -0.5 * left + right
            case 3:
                right *= 0.5  # the model holds the array that the device overwrites
                return blas.scal(b, 0.5, out=b), right
            case 4:
                return blas.nrm2(array.reshape(a, (36,))), np.asarray(np.linalg.norm(left))
            case 5:
                return array.transpose(array.copy(a)), left.T.copy()
            case 6:
                return self.device.run(np.tanh, a, pure=True), np.tanh(left)
            case _:
                return self.device.get(b), right.copy()


def _is(device: Device, what: str, value: object) -> bool:
    return bool(getattr(device, what) == value)


def answered(asked: Asked) -> bool:
    """Whether the answer is the predicted value; False for a failure that may be."""
    try:
        value = asked.reply.result(WAIT)
        if isinstance(value, AccelRef):
            value = asked.device.get(value).result(WAIT)
    except (ContextLost, StaleRef, DependencyFailed):
        if asked.device.generation > asked.generation:
            return False
        raise  # nothing was lost
    np.testing.assert_allclose(value, asked.expected, atol=1e-10, rtol=1e-10)
    return True


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [7])
def test_a_thousand_messages_survive_twenty_kills(first_system: None, seed: int) -> None:
    """Each request is answered once and typed, at least nine in ten with NumPy's value."""
    gc.collect()
    before = census()
    dice, rng = random.Random(seed), np.random.default_rng(seed)
    good = bad = refused = 0
    with System("host", DEVICES, max_restarts=1000, within_s=0.3, recover="stale") as lab:
        models = [Model(device, rng) for device in lab.devices]
        window: list[Asked] = []
        for number in range(1, MESSAGES + 1):
            asked = dice.choice(models).step(dice)
            if asked is None:
                refused += 1
            else:
                window.append(asked)
            if number % KILL_EVERY == 0:
                victim = dice.choice(lab.devices)
                generation = victim.generation
                settle(partial(_is, victim, "state", "running"))
                os.kill(pid_of(lab, victim), signal.SIGKILL)
                assert settle(partial(_is, victim, "generation", generation + 1))
            if len(window) >= 3 or number == MESSAGES:
                # A shallow window keeps what one kill takes along small.
                for one in window:
                    if answered(one):
                        good += 1
                    else:
                        bad += 1
                window.clear()
        assert all(device.in_flight == 0 for device in lab.devices)
    assert good + bad + refused == MESSAGES
    assert good >= 0.9 * MESSAGES, (good, bad, refused)
    del lab, models, window, asked, one, victim
    gc.collect()
    assert settle(lambda: no_more_than(before)), (census(), before)
