"""The contract of ping: an answer of its own, in turn, and nothing else."""

import time

from accel_lab.compute.device import Device


def test_ping_is_answered(device: Device) -> None:
    ping = device.ping()
    ping.result(30)
    assert not ping.failed
    assert device.in_flight == 0


async def test_ping_can_be_awaited(device: Device) -> None:
    ping = device.ping()
    await ping
    assert not ping.failed


def test_ping_takes_its_turn(device: Device) -> None:
    before = device.run(time.sleep, 0.05)
    device.ping().result(30)
    assert before.done


def test_many_pings_are_all_answered(device: Device) -> None:
    pings = [device.ping() for _ in range(20_000)]
    pings[-1].result(30)
    assert all(ping.done and not ping.failed for ping in pings)
