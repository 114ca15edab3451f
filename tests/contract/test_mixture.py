"""A mixture of experts is computed alike on every backend."""

from functools import partial

import numpy as np

from accel_lab import Device
from accel_lab.blueprints.patterns import route
from accel_lab.blueprints.patterns.base.mixture import Mixture
from accel_lab.blueprints.patterns.base.record import Record
from tests.blueprints.patterns.test_moe_router import COUNT, FEATURES, WIDTH, mixed, whole


def test_every_backend_computes_a_mixture_alike(device: Device) -> None:
    rng = np.random.default_rng(3)
    gate, x = whole(rng, WIDTH, COUNT), whole(rng, 9, WIDTH)
    experts = [whole(rng, WIDTH, FEATURES) for _ in range(COUNT)]
    choose = partial(route, k=2, factor=0.5, full="next", normalize=True)
    (found,) = Mixture(device, gate, experts, choose, Record("some", "kind"))([x])
    wanted = mixed(x, gate, experts, 2, 0.5, "next")
    np.testing.assert_allclose(found.value, wanted, rtol=1e-5, atol=1e-5)
