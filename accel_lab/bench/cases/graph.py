"""A graph of a hundred small operations of five kinds, whose operands change with each launch."""

import itertools
from collections.abc import Callable

import numpy as np

from accel_lab.backends.eager import HUNDRED, hundred
from accel_lab.bench.case import Case, Send
from accel_lab.compute.device import Device
from accel_lab.libraries.array import library as array
from accel_lab.libraries.fft import library as fft


class Functions:
    """The operations as messages."""

    tanh = staticmethod(array.tanh)
    rfft = staticmethod(fft.rfft)


def operations(n: int) -> Callable[[Device], Send]:
    """Prepare launches with matrices (n, n), of which two change each time."""

    def prepare(device: Device) -> Send:
        drawn = np.random.default_rng(0).standard_normal((2, 2, n, n)).astype(np.float32) / n
        pairs = itertools.cycle([(device.put(x), device.put(w)) for x, w in drawn])
        x, w = next(pairs)
        graph = device.graph(x=x, w=w)
        with graph:
            hundred(Functions, x, w)

        def send() -> object:
            x, w = next(pairs)
            return graph.launch(x=x, w=w)

        return send  # type: ignore[return-value]

    return prepare


SMALL = (64,)
CASES = (Case("operations-100", HUNDRED, "operations", SMALL, operations(*SMALL)),)
