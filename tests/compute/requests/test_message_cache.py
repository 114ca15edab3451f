"""What a notebook remembers of the messages that it sends again, and what makes it look anew."""

import gc
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import System, array, blas
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef, Handles, Owner
from accel_lab.compute.message.bytes_cache import LONGEST
from accel_lab.compute.message.operation import NO_RESULT
from accel_lab.compute.requests.message_cache import MOST, MessageCache
from accel_lab.errors import ContextLost, DependencyFailed, StaleRef

WAIT = 30.0
TIMES = 6
SOON = 7
"""So often is a message looked at that comes again and again, and then no more."""
ONES = np.ones((8, 8), np.float32)


@pytest.fixture
def device() -> Iterator[Device]:
    with System("host", devices=1) as lab:
        yield lab.devices[0]


class Looked:
    """Counts how often a message's operands are looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0
        infer = blas.Axpy.infer

        def counted(message: blas.Axpy) -> Any:
            self.times += 1
            return infer(message)

        monkeypatch.setattr(blas.Axpy, "infer", counted)

    def during(self, x: AccelRef, y: AccelRef, *, times: int = TIMES) -> int:
        """Send one message several times; return how often it was looked at."""
        before = self.times
        for _ in range(times):
            blas.axpy(x, y, alpha=0.0, out=y)
        return self.times - before


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Looked:
    return Looked(monkeypatch)


def test_what_comes_again_is_not_looked_at_again(device: Device, looked: Looked) -> None:
    x, y = device.put(ONES), device.put(ONES)
    looked.during(x, y, times=SOON)
    assert looked.during(x, y, times=1000) == 0


def test_a_number_that_changes_is_seldom_looked_for(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the next number has the place in memory of the last."""
    noted: list[tuple[Any, ...]] = []
    note = MessageCache.note

    def counted(repeats: MessageCache, *args: Any) -> None:
        noted.append(args)
        note(repeats, *args)

    monkeypatch.setattr(MessageCache, "note", counted)
    x, y = device.put(ONES), device.put(ONES)
    for n in range(4000):
        blas.axpy(x, y, alpha=n * 0.25, out=y)
    assert len(noted) < 4000 / 32


def test_a_handle_that_has_failed_is_looked_at_again(
    device: Device, looked: Looked, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    held = device.run(_wait_for, str(gate))
    x, y = device.put(ONES), device.put(ONES)
    product = blas.gemm(x, x)
    looked.during(product, y, times=SOON)
    assert looked.during(product, y) == 0
    product.cancel()
    assert isinstance(blas.axpy(product, y, alpha=0.0, out=y).error, DependencyFailed)
    assert looked.during(x, y, times=1) == 1
    gate.touch()
    held.result(WAIT)


def _wait_for(name: str) -> None:
    while not Path(name).exists():
        pass


def test_a_freed_handle_is_looked_at_again(device: Device, looked: Looked) -> None:
    x, y, other = (device.put(ONES) for _ in range(3))
    looked.during(x, y, times=SOON)
    other.free()
    assert looked.during(x, y) == 1  # whatever it was that has become useless
    assert looked.during(x, y) == 0
    x.free()
    with pytest.raises(StaleRef):
        blas.axpy(x, y, alpha=0.0, out=y)


def test_no_message_keeps_its_buffers_in_use() -> None:
    """There is room for one of these only."""
    with System("host", memory_bytes=1 << 20, spill=False) as lab:
        (device,) = lab.devices
        for _ in range(8):
            x = array.zeros(device, (700, 256), dtype="float32")
            for _ in range(TIMES):
                blas.scal(x, 2.0, out=x)
            x.result(WAIT)
            del x


def test_after_a_loss_handles_are_looked_at_again(looked: Looked) -> None:
    with System("host", devices=1, recover="stale") as lab:
        (device,) = lab.devices
        x, y = device.put(ONES), device.put(ONES)
        looked.during(x, y)
        with pytest.raises(ContextLost):
            lab.inject("kill", device).result(WAIT)
        with pytest.raises(StaleRef):
            blas.axpy(x, y, alpha=0.0, out=y)


def test_what_was_made_again_can_be_sent_again_and_again(looked: Looked) -> None:
    with System("host", devices=1) as lab:
        (device,) = lab.devices
        x, y = device.put(ONES), device.put(ONES)
        for _ in range(TIMES):
            blas.axpy(x, y, out=y)
        with pytest.raises(ContextLost):
            lab.inject("kill", device).result(WAIT)
        for _ in range(TIMES):
            blas.axpy(x, y, out=y)
        assert (device.get(y).result(WAIT) == 1 + 2 * TIMES).all()
        looked.during(x, y, times=64)
        assert looked.during(x, y) == 0


# One type's, without a device.


def handle(id_: int) -> AccelRef:
    pump: Any = None
    device: Any = None
    return AccelRef(pump, None, device, Owner(id_, deque()), 1, (8, 8), "float32")


def note(repeats: MessageCache, made_of: tuple[Any, ...], generation: int = 1) -> None:
    message = blas.Axpy(*made_of)
    repeats.note(made_of, message, (None, NO_RESULT), (generation, Handles.lost))


def test_where_handles_become_useless_all_the_time_little_is_looked_for() -> None:
    repeats, x, y = MessageCache(), handle(1), handle(2)
    looked = 0
    for _ in range(2000):
        if repeats.skip:
            repeats.skip -= 1
        else:
            looked += 1
            if repeats.find((x, y, 1.0, None), 1) is None:
                note(repeats, (x, y, 1.0, None))
        handle(3).free()
    assert looked < 2000 / 16


@pytest.mark.parametrize(("others", "share"), [(1, 0.99), (2, 0.99), (5, 0.9), (16, 0.001)])
def test_in_a_loop_one_that_comes_again_is_found_among_others_that_do_not(
    others: int, share: float
) -> None:
    repeats, x, y, steady = MessageCache(), handle(1), handle(2), 0.5
    found = 0
    for turn in range(2000):
        for alpha in (steady, *(turn + 1.0 / n for n in range(2, 2 + others))):
            if repeats.skip:
                repeats.skip -= 1
            elif repeats.find((x, y, alpha, None), 1) is None:
                note(repeats, (x, y, alpha, None))
            else:
                found += 1
    assert found >= 2000 * share


def test_a_loop_is_learned_after_another_whose_numbers_have_changed() -> None:
    repeats, x, y, z = MessageCache(), handle(1), handle(2), handle(3)
    for turn in range(4000):
        if repeats.skip:
            repeats.skip -= 1
        else:
            note(repeats, (x, y, turn * 0.5, None))
    found, steady = 0, 0.5
    for _ in range(4000):
        for pair in ((x, y), (y, z), (z, x)):
            if repeats.skip:
                repeats.skip -= 1
            elif repeats.find((*pair, steady, None), 1) is None:
                note(repeats, (*pair, steady, None))
            else:
                found += 1
    assert found > 3 * 4000 * 0.8


def test_a_message_is_known_by_the_objects_and_not_by_what_they_equal() -> None:
    repeats, x, y = MessageCache(), handle(1), handle(2)
    half = 0.5
    for _ in range(2):
        note(repeats, (x, y, half, None))
    assert repeats.find((x, y, half, None), 1)
    for other in ((y, x, half, None), (x, y, float("0.5"), None), (x, y, half, y)):
        assert repeats.find(other, 1) is None
    assert repeats.find((x, y, half, None), 2) is None
    x.free()
    assert repeats.find((x, y, half, None), 1) is None


def test_a_message_goes_with_the_first_of_its_handles() -> None:
    """Another handle may have the same place in memory then."""
    repeats = MessageCache()
    for _ in range(4 * MOST):
        x, y = handle(1), handle(2)
        for _ in range(2):
            note(repeats, (x, y, 1.0, None))
        assert len(repeats._known) == 1
        del x
        assert not repeats._known


def test_what_may_change_or_is_long_is_not_remembered() -> None:
    repeats, x, y = MessageCache(), handle(1), handle(2)
    complex_alpha: Any = [1.0, 2.0]
    long: Any = bytes(LONGEST + 1)
    for alpha in (complex_alpha, long):
        for _ in range(4):
            note(repeats, (x, y, alpha, None))
        assert repeats.find((x, y, alpha, None), 1) is None


def test_little_is_remembered_and_little_looked_for_where_nothing_comes_again() -> None:
    repeats, x = MessageCache(), handle(1)
    others = [handle(n) for n in range(2, 2 * MOST)]
    looked = 0
    for turn in range(8):
        for y in others:
            if repeats.skip:
                repeats.skip -= 1
            else:
                looked += 1
                note(repeats, (x, y, float(turn), None))
    assert looked < 8 * len(others) / 16
    for y in others:
        for _ in range(2):
            note(repeats, (x, y, 1.0, None))
    assert len(repeats._known) <= MOST
    assert len(repeats._once) <= MOST


def test_a_cycle_of_handles_is_collected_with_its_message() -> None:
    repeats = MessageCache()
    x, y = handle(1), handle(2)
    ring: list[Any] = [x, y]
    ring.append(ring)
    for _ in range(2):
        note(repeats, (x, y, 1.0, None))
    del x, y, ring
    gc.collect()
    assert not repeats._known
