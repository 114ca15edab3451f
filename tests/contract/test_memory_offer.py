"""Arrays that a process offers: what is read of them, what is refused, and what ends an offer."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from accel_lab import memory
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument

WAIT_S = 60.0


@pytest.mark.parametrize(
    "x",
    [
        np.arange(6.0).reshape(2, 3).astype(">f8"),
        np.arange(6, dtype=">i4")[::-2],
        np.array(2.5),
        np.array(7, ">u2"),
        np.zeros((0, 3), ">c8"),
        np.arange(12.0).reshape(3, 4).T,
        [[1, 2], [3, 4]],
    ],
    ids=repr,
)
def test_an_offer_has_the_numbers_of_the_array(device: Device, x: Any) -> None:
    x = np.asarray(x)
    with memory.offer(x) as offer:
        exported = offer.exported
        assert (exported.shape, exported.dtype) == (x.shape, x.dtype.newbyteorder("=").name)
        np.testing.assert_array_equal(exported.open().array, x)
        got = memory.read(device, exported)
        assert (got.shape, str(got.dtype)) == (exported.shape, exported.dtype)
        np.testing.assert_array_equal(got.get(timeout_s=WAIT_S), x)


@pytest.mark.parametrize(
    "change",
    [
        {"offset": -8},
        {"offset": 3},
        {"offset": 1 << 70},
        {"shape": (1 << 22,)},
        {"shape": (-1,)},
        {"dtype": "complex128"},
        {"place": (1, 2)},
        {"handle": bytes(3)},
    ],
    ids=repr,
)
def test_what_does_not_fit_into_what_was_exported_is_refused(
    device: Device, change: dict[str, Any]
) -> None:
    with memory.offer(np.arange(8.0)) as offer:
        changed = offer.exported._replace(**change)
        with pytest.raises(InvalidArgument):
            changed.open()
        with pytest.raises(InvalidArgument):
            memory.read(device, changed).result(WAIT_S)
        part = offer.exported._replace(offset=16, shape=(6,))
        np.testing.assert_array_equal(memory.read(device, part).get(timeout_s=WAIT_S)[0], 2)


def test_a_child_that_leaves_an_offer_does_not_end_it() -> None:
    program = """
import os, numpy as np
from accel_lab import memory
with memory.offer(np.arange(5.0)) as offer:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        print(offer.exported.open().array.sum())
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=WAIT_S)
    assert done.stdout.split() == ["10.0"]
