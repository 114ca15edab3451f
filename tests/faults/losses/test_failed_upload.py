"""A put that fails is no buffer, whatever becomes of its context before others are answered."""

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest

from accel_lab import Device, System, array, blas
from accel_lab.errors import DependencyFailed, LibraryError
from tests.faults.campaign.gate import LOST, Door, hold
from tests.faults.campaign.outside_faults import give_segments, lose_segments
from tests.faults.conftest import pid_of

WAIT = 30.0
LARGE = np.ones((64, 64))


@pytest.fixture
def door() -> Iterator[Door]:
    door = Door()
    yield door
    door.close()


def held(device: Device, door: Door, name: str) -> None:
    device.run(hold, door.address, name)
    device._requests.flush()


def test_what_needs_it_is_not_run_in_the_next_context_either(
    nothing_left: None, door: Door
) -> None:
    with System("host", recover="replay", max_restarts=1000) as lab:
        cpu = lab.devices[0]
        cpu.put(LARGE).result(WAIT)
        held(cpu, door, "first")
        put = cpu.put(LARGE * 2)
        held(cpu, door, "second")
        behind = array.copy(put)
        changed = blas.scal(put, 0.5, out=put)
        cpu._requests.flush()
        first = door.wait("first")
        ids = lose_segments(lab, cpu, late=False)
        first.tell(" ".join([LOST, *map(str, ids)]))
        door.wait("first").tell()
        second = door.wait("second")
        with pytest.raises(LibraryError, match="cannot be mapped"):
            put.result(WAIT)
        os.kill(pid_of(lab, cpu), signal.SIGKILL)
        second.tell()
        for reply in (behind, changed):
            with pytest.raises(DependencyFailed, match="cannot be mapped"):
                reply.result(WAIT)
        give_segments(lab, cpu)
