"""Special memory around a loss, a checkpoint and a suspension: what comes back is what it was."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, System, blas, memory
from accel_lab.compute.actors.fault import Inject
from accel_lab.compute.device import Device
from accel_lab.errors import ContextLost, StaleRef

WAIT_S = 60.0


@pytest.fixture
def lab(backend: Any) -> Iterator[System]:
    name = backend.__name__.rpartition(".")[2]
    with System(name, devices=1, recover="replay", max_restarts=20) as system:
        yield system


def made(device: Device) -> tuple[AccelRef, AccelRef, AccelRef]:
    """Return a managed buffer, a growing one, and what that has grown to, each with its values."""
    managed = memory.managed(device, (40,), "float64")
    managed[:] = device.put(np.arange(40.0))
    memory.advise(managed, "set_read_mostly")
    memory.advise(managed, "set_preferred_location", "host")
    memory.prefetch(managed, "host")
    short = memory.growing(device, (3,), 1000, "float64")
    short[:] = 1
    long = memory.grow(short, 600)
    long[300:] = 2
    return managed, short, long


def require(device: Device, managed: AccelRef, short: AccelRef, long: AccelRef) -> None:
    """Assert that they are what they were, and can what they could."""
    np.testing.assert_array_equal(managed.get(timeout_s=WAIT_S), np.arange(40.0))
    expected = np.array([1.0] * 3 + [0] * 297 + [2] * 300)
    np.testing.assert_array_equal(long.get(timeout_s=WAIT_S), expected)
    hints = memory.Hints("host", read_mostly=True, preferred="host")
    assert memory.describe(managed).result(WAIT_S).hints == hints
    short[0] = 9
    assert long.get(timeout_s=WAIT_S)[0] == 9
    short[0] = 1
    longer = memory.grow(long, 1000)
    np.testing.assert_array_equal(longer.get(timeout_s=WAIT_S)[:600], expected)
    found = [memory.describe(one).result(WAIT_S) for one in (short, long, longer)]
    assert {one.address for one in found} == {found[0].address}
    assert {(one.kind, one.reserved_bytes) for one in found} == {("growing", 8000)}
    total = device.resident.nbytes
    assert total == managed.nbytes + found[0].nbytes


def test_it_is_made_again_after_a_kill_between_its_messages(lab: System) -> None:
    (device,) = lab.devices
    kept = made(device)
    require(device, *kept)
    lost = device.ask(Inject("kill"))
    more = memory.grow(kept[2], 700)
    with pytest.raises(ContextLost):
        lost.result(WAIT_S)
    require(device, *kept)
    assert more.get(timeout_s=WAIT_S).sum() == 3 + 600
    assert device.generation == 2


def test_without_a_record_it_is_gone(backend: Any) -> None:
    name = backend.__name__.rpartition(".")[2]
    with System(name, devices=1, recover="stale", max_restarts=20) as lab:
        (device,) = lab.devices
        kept = made(device)
        for one in kept:
            one.get(timeout_s=WAIT_S)
        device.replace()
        for one in kept:
            with pytest.raises(StaleRef):
                one.get(timeout_s=WAIT_S)
        require(device, *made(device))


def test_a_checkpoint_keeps_what_memory_it_is(lab: System) -> None:
    (device,) = lab.devices
    managed, short, long = made(device)
    del short
    for one in (managed, long):
        device.run(_add_one, one).result(WAIT_S)  # which no record runs again
        device.checkpoint(one).result(WAIT_S)
    with pytest.raises(ContextLost):
        device.ask(Inject("kill")).result(WAIT_S)
    np.testing.assert_array_equal(managed.get(timeout_s=WAIT_S), np.arange(40.0) + 1)
    assert long.get(timeout_s=WAIT_S).sum() == 3 + 600 + 600
    assert memory.describe(managed).result(WAIT_S).hints == memory.Hints(
        "host", read_mostly=True, preferred="host"
    )
    memory.prefetch(managed, "device").result(WAIT_S)
    assert memory.grow(long, 900).get(timeout_s=WAIT_S).shape == (900,)


def test_a_suspended_device_has_it_back(lab: System) -> None:
    (device,) = lab.devices
    kept = made(device)
    for _ in range(2):
        device.suspend()
        require(device, *kept)
    assert device.generation == 1


def test_what_was_longer_comes_back_as_long_from_a_suspension(lab: System) -> None:
    (device,) = lab.devices
    _, short, long = made(device)
    empty = memory.growing(device, (0, 4), 10)
    part = short[1:]
    del short, long
    device.suspend()
    np.testing.assert_array_equal(part.get(timeout_s=WAIT_S), [1, 1])
    assert memory.describe(part).result(WAIT_S).kind == "growing"
    assert memory.grow(empty, 3).get(timeout_s=WAIT_S).shape == (3, 4)
    assert device.run(np.shape, part).result(WAIT_S) == (2,)


def test_user_code_has_it_as_any_array(lab: System) -> None:
    (device,) = lab.devices
    managed, _, long = made(device)
    part = device.run(_part_of, long)
    blas.scal(part, 2.0, out=part)
    assert long.get(timeout_s=WAIT_S)[299:302].tolist() == [0, 4, 4]
    assert memory.describe(part).result(WAIT_S).kind == "growing"
    del long, managed
    blas.scal(part, 2.0, out=part)
    assert part.get(timeout_s=WAIT_S).tolist() == [8.0] * 300


def _add_one(x: Any) -> None:
    x += 1


def _part_of(x: Any) -> Any:
    return x[300:]
