"""What transforms made is there again after its context was killed in the midst of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System, fft
from accel_lab.compute.actors.fault import Inject
from accel_lab.errors import ContextLost
from tests.contract.samples import assert_same, value


@pytest.fixture
def lab(backend: Any) -> Iterator[System]:
    with System(backend.__name__.rpartition(".")[2], devices=1, recover="replay") as system:
        yield system


def test_transforms_around_a_kill_have_the_values_they_would_have(lab: System) -> None:
    """Views and what is written in place among them; some are in flight when it dies."""
    (device,) = lab.devices

    def send() -> list[Any]:
        x = device.put(np.random.default_rng(0).standard_normal((4, 66)))
        lines = fft.padded(x, out=x)
        flat = device.put(np.arange(64.0).astype("complex64"))
        view = fft.embedded(flat, 8, 4, stride=4, distance=1)
        fft.c2c(view, axes=-1, out=view)
        made = [fft.interleaved(lines), flat, fft.dct(lines), fft.oaconvolve(lines, lines[:, :3])]
        made += [fft.hilbert(lines), fft.fftshift(view), fft.fftfreq(device, 8)]
        return [*made, fft.half(device.put(np.ones((4, 8), "float16")), "r2c")]

    calm = [value(device, ref) for ref in send()]
    generation = device.generation
    before = send()
    lost = device.ask(Inject("kill"))
    after = send()
    with pytest.raises(ContextLost):
        lost.result(timeout_s=30)
    for made in (before, after):
        for ref, expected in zip(made, calm, strict=True):
            assert_same(value(device, ref), expected)
    assert device.generation == generation + 1
