"""What an upload that fails leaves of its buffer: nothing that could be read."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from accel_lab import Device, System, array
from accel_lab.actor.reply import Reply
from accel_lab.errors import Cancelled, ContextLost, DependencyFailed, LibraryError
from tests.faults.campaign.gate import Door, arm, holdings

WAIT = 30.0


@pytest.fixture
def door() -> Iterator[Door]:
    door = Door()
    yield door
    door.close()


def test_nobody_reads_a_buffer_whose_upload_failed(cpu: Device, door: Door) -> None:
    """Nor does what was sent before the failure was known."""
    cpu.run(arm, door.address, "upload", ["Upload"]).result(WAIT)
    ref = cpu.put(np.ones((64, 64)))
    behind: list[Reply[Any]] = [array.copy(ref), cpu.get(ref)]
    door.wait("upload").tell("library")
    with pytest.raises(LibraryError):
        ref.result(WAIT)
    for reply in behind:
        with pytest.raises(DependencyFailed) as caught:
            reply.result(WAIT)
        assert isinstance(caught.value.__cause__, LibraryError)
    del ref, behind, reply, caught
    assert cpu.run(holdings).result(WAIT)[1] == 0
    cpu.ping().result(WAIT)
    assert cpu.run(holdings).result(WAIT) == (0, 0, ())


def test_nobody_reads_a_buffer_whose_upload_was_taken_back(lab: System, cpu: Device) -> None:
    """Though its memory was asked for by a message of its own, which was not.

    It has to be taken back before the next context is up; where that one was faster, what stands
    behind the upload reads what was uploaded.
    """
    for _ in range(20):
        with pytest.raises(ContextLost):
            lab.inject("kill").result(WAIT)
        ref = cpu.put(np.ones((64, 64)))  # waits for the next context
        behind = array.copy(ref)
        fetched = cpu.get(behind)
        in_time = cpu.state == "restarting"
        ref.cancel()
        in_time = in_time and cpu.state == "restarting"
        if in_time:
            with pytest.raises(Cancelled):
                ref.result(WAIT)
            break
        with suppress(Cancelled, DependencyFailed):
            ref.result(WAIT)
            np.testing.assert_array_equal(fetched.result(WAIT), np.ones((64, 64)))
    else:
        pytest.fail("the next context was always up before anything could be taken back")
    for reply in (behind, fetched):
        with pytest.raises(DependencyFailed) as caught:
            reply.result(WAIT)
        assert isinstance(caught.value.__cause__, Cancelled)
