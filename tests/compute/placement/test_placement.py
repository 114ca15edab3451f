"""Messages, reservations and keys that are placed on real devices of `host`."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.device import Device
from accel_lab.compute.events.lifecycle import CircuitClosed, CircuitOpened
from accel_lab.compute.events.placement import MessagePlaced, ShardMoved
from accel_lab.compute.message.builtin import Ping
from accel_lab.compute.placement.policies import RoundRobin
from accel_lab.errors import InvalidArgument, NoDevice
from accel_lab.libraries.array.library import Full
from accel_lab.libraries.blas.library import Gemm

WAIT = 60
KEYS = range(200)


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", 4, max_restarts=0, memory_bytes=1 << 26) as system:
        yield system


def placed(lab: System) -> MessagePlaced:
    return [one for one in lab.events.history() if isinstance(one, MessagePlaced)][-1]


def unpromised(lab: System, device: Device) -> int:
    """Return how much memory of a device nobody uses or was promised."""
    lab.ask(Ping()).result(WAIT)
    (free,) = [one.free_bytes for one in placed(lab).candidates if one.device == device.name]
    assert free is not None
    return free


def lose(lab: System, device: Device) -> None:
    """Have a device's context killed, once too often."""
    (pid,) = [
        node.children[0].pid
        for node in lab.tree().children
        if node.name == device.name and node.children[0].pid
    ]
    assert pid is not None
    mark = lab.events.published
    os.kill(pid, signal.SIGKILL)
    lab.events.wait_for(CircuitOpened, since=mark, timeout_s=WAIT)
    assert device.state == "circuit open"


def bring_back(lab: System, device: Device) -> None:
    mark = lab.events.published
    device.reset()
    lab.events.wait_for(CircuitClosed, since=mark, timeout_s=WAIT)


def test_a_message_is_placed_and_its_event_says_why(lab: System) -> None:
    ref = lab.ask(Full((3,), 2.0, "float64"), nbytes=24)
    assert ref.get().tolist() == [2.0, 2.0, 2.0]
    told = placed(lab)
    assert (told.message, told.device, told.reason) == ("Full", ref.device.name, "LeastLoaded")
    assert [one.device for one in told.candidates] == [one.name for one in lab.devices]
    assert all(one.free_bytes for one in told.candidates)
    other = lab.devices[3]
    lab.ask(Ping(), near=other).result(WAIT)
    assert placed(lab).device == other.name
    with pytest.raises(NoDevice):
        lab.ask(Ping(), capability=9.0)
    with pytest.raises(InvalidArgument, match="takes a message"):
        lab.ask("nothing")  # type: ignore[arg-type]


def test_operands_decide_the_device(lab: System) -> None:
    a, b = (lab.devices[at].put(np.eye(2)) for at in (1, 2))
    assert lab.ask(Gemm(a, a)).device is lab.devices[1]
    with pytest.raises(InvalidArgument, match=r"on cpu1 and on cpu2; .*lab\.device\(\"cpu1\"\)"):
        lab.ask(Gemm(a, b))
    assert lab.ask(Gemm(a, lab.device("cpu1").put(b))).get().tolist() == [[1, 0], [0, 1]]


def test_a_loss_gives_reserved_memory_back_and_so_does_its_end(lab: System) -> None:
    device = lab.devices[0]
    most = unpromised(lab, device) - (1 << 19)
    with lab.placement.reserve(most, device) as reservation:
        assert reservation.is_held
        placed_on = {lab.ask(Ping(), nbytes=1 << 20) and placed(lab).device for _ in range(8)}
        assert device.name not in placed_on
        assert device.name in placed(lab).refused
        with pytest.raises(NoDevice, match="are free, not"):
            lab.placement.reserve(most, device)
    lab.placement.reserve(1 << 20, device).close()
    lost = lab.placement.reserve(1 << 20, device)
    lose(lab, device)
    assert not lost.is_held
    with pytest.raises(NoDevice, match="its circuit is open"):
        lab.placement.reserve(1 << 20, device)
    bring_back(lab, device)
    assert not lost.is_held
    lab.placement.reserve(1 << 20, device).close()


def test_keys_of_a_lost_device_move_alone_and_come_back_with_it(lab: System) -> None:
    before = {key: lab.shard(key).device for key in KEYS}
    shares = Counter(one.name for one in before.values())
    assert min(shares.values()) > len(KEYS) // 10
    gone = lab.devices[2]
    lose(lab, gone)
    during = {key: lab.shard(key).device for key in KEYS}
    assert {key for key in KEYS if during[key] is not before[key]} == {
        key for key in KEYS if before[key] is gone
    }
    mine = next(key for key in KEYS if before[key] is gone)
    assert lab.shard(mine).put(np.ones(3)).get().sum() == 3
    for _ in range(8):
        lab.ask(Ping()).result(WAIT)
        assert placed(lab).device != gone.name
    bring_back(lab, gone)
    assert {key: lab.shard(key).device for key in KEYS} == before
    moved = lab.events.history(ShardMoved)
    theirs = [key for key in KEYS if before[key] is gone]
    assert len(moved) == 2 * len(theirs), "the others have not moved"
    away, back = [one for one in moved if one.key == repr(theirs[0])]
    assert (away.before, away.device) == (gone.name, during[theirs[0]].name)
    assert away.reason == f"{gone.name} is circuit open"
    assert (back.before, back.device) == (away.device, gone.name)
    assert back.reason == f"{gone.name} is back"
    assert lab.shard(mine).run(os.getpid).result(WAIT) == gone.run(os.getpid).result(WAIT)
    lab.shard(mine).ask(Ping()).result(WAIT)


def stay_until(path: str) -> None:
    while not Path(path).exists():
        time.sleep(0.001)


def test_a_slow_and_a_full_device_hold_up_nothing(lab: System, tmp_path: Path) -> None:
    slow, full, *fast = lab.devices
    most = unpromised(lab, full) - (1 << 19)
    held = slow.run(stay_until, str(tmp_path / "done"))
    try:
        with lab.placement.reserve(most, full):
            replies = [lab.ask(Ping(), nbytes=1 << 10) for _ in range(200)]
            replies += [lab.ask(Ping(), nbytes=1 << 20) for _ in range(20)]
            told = [one for one in lab.events.history() if isinstance(one, MessagePlaced)][-220:]
            for reply, one in zip(replies, told, strict=True):
                if one.device != slow.name:
                    reply.result(WAIT)
    finally:
        (tmp_path / "done").touch()
    held.result(WAIT)
    for reply in replies:
        reply.result(WAIT)
    shares = Counter(one.device for one in told)
    assert shares[slow.name] < lab.placement.depth
    large = Counter(one.device for one in told[-20:])
    assert large[full.name] == 0
    assert sum(large[one.name] for one in fast) > 0
    assert all(shares[one.name] for one in fast)


def test_the_policy_can_be_set_to_a_function(lab: System) -> None:
    usual = lab.placement.policy
    try:
        lab.placement.policy = lambda candidates, hints: candidates[-1]  # noqa: ARG005
        lab.ask(Ping()).result(WAIT)
        assert placed(lab).device == lab.devices[-1].name
        lab.placement.policy = RoundRobin()
        for _ in range(8):
            lab.ask(Ping()).result(WAIT)
        told = [one for one in lab.events.history() if isinstance(one, MessagePlaced)][-8:]
        assert Counter(one.device for one in told) == {one.name: 2 for one in lab.devices}
    finally:
        lab.placement.policy = usual
