"""Copies from card to card, with a stand-in for cards: files that each context can open."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from accel_lab import AccelRef, System, array, backends
from accel_lab.compute.device import Device
from accel_lab.compute.transfer.ipc_memory import IpcMemory
from accel_lab.compute.transfer.transfers import Copied
from accel_lab.compute.transfer.ways import Ways
from accel_lab.errors import AccelError
from tests.compute.peers.card_backend.card import CARDS
from tests.faults.conftest import pid_of, settle

HERE = Path(__file__).parent / "card_backend"
WAIT = 60.0
KEPT_BYTES = 1000
A = np.arange(600.0).reshape(20, 30)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one folder for all, so that each test has the environment of the one before it."""
    return tmp_path_factory.mktemp("cards")


@pytest.fixture
def folder(files: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for old in files.iterdir():
        old.unlink()
    monkeypatch.setenv(CARDS, str(files))
    monkeypatch.setenv("PYTHONPATH", f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(HERE)])
    return files


@pytest.fixture
def lab(folder: Path) -> Iterator[System]:
    with System("card", devices=2, max_restarts=10) as lab:
        ways = lab._assembly.ways = Ways(is_card=True)
        for device in lab.devices:
            requests, own = device.requests, device._transfers
            memory = IpcMemory(requests.unrecorded.post, lab._event_loop)
            requests.connection.ipc_memory = own._ipc_memory = memory
            own.ways = ways
        lab.topology.direct = True
        yield lab


def copied(device: Device, x: AccelRef) -> Copied:
    return device.copy_of(x, kept_bytes=KEPT_BYTES)


def is_open(folder: Path) -> bool:
    return any(path.suffix[1:].isdecimal() for path in folder.iterdir())


def test_a_card_reads_another_only_if_one_says_so() -> None:
    ways = Ways(is_card=True)
    assert ways.choose("gpu0", "gpu1", is_kept=False) == "staged"
    ways.direct = True
    assert ways.choose("gpu0", "gpu1", is_kept=False) == "ipc"
    assert ways.choose("gpu0", "gpu1", is_kept=True) == "staged"
    ways.refuse("gpu0", "gpu1")
    assert ways.choose("gpu0", "gpu1", is_kept=False) == "staged"
    assert ways.choose("gpu1", "gpu0", is_kept=False) == "ipc"


def test_it_is_copied_and_nothing_stays_open(lab: System, folder: Path) -> None:
    first, second = lab.devices
    x = first.put(A)
    for turn in range(20):
        there, way = copied(second, x)
        back, _ = copied(first, there + 1)
        np.testing.assert_array_equal(back.get(timeout_s=WAIT), A + 1, err_msg=str(turn))
        assert way == "ipc"
    assert settle(lambda: not is_open(folder))
    assert settle(lambda: lab.arena().blocks == 0)
    assert {(one.way, one.copies) for one in lab.topology.copies} == {("ipc", 20)}
    part, way = copied(second, x[5:])
    np.testing.assert_array_equal(part.get(timeout_s=WAIT), A[5:])


def test_what_would_write_to_it_waits_until_it_is_copied(lab: System, folder: Path) -> None:
    first, second = lab.devices
    x, other = first.put(A), first.put(A)
    x.result(WAIT)
    (folder / "gate").touch()
    there, _ = copied(second, x)
    assert settle(lambda: is_open(folder))
    both = x + other  # what reads it passes
    cleared = first.run(lambda a: a.fill(0), x, writes=(x,))
    np.testing.assert_array_equal(both.get(timeout_s=WAIT), 2 * A)
    first.ping().result(WAIT)
    assert not cleared.done
    (folder / "gate").unlink()
    np.testing.assert_array_equal(there.get(timeout_s=WAIT), A)
    cleared.result(WAIT)
    assert (x.get(timeout_s=WAIT) == 0).all()


def test_what_cannot_be_opened_fails_once_and_is_staged_from_then_on(lab: System) -> None:
    first, second = lab.devices
    x = first.put(A)
    gaps, way = copied(second, array.transpose(x))
    assert way == "ipc"
    with pytest.raises(AccelError, match=r"did not come: .*lab\.topology\.direct = False"):
        gaps.result(WAIT)
    again, way = copied(second, array.transpose(x))
    assert way == "staged"
    np.testing.assert_array_equal(again.get(timeout_s=WAIT), A.T)
    assert settle(lambda: lab.arena().blocks == 0)


def test_when_the_second_card_is_lost_the_first_works_on(lab: System, folder: Path) -> None:
    first, second = lab.devices
    x = first.put(A)
    x.result(WAIT)
    (folder / "gate").touch()
    there, _ = copied(second, x)
    assert settle(lambda: is_open(folder))
    cleared = first.run(lambda a: a.fill(0), x, writes=(x,))
    os.kill(pid_of(lab, second), signal.SIGKILL)
    with pytest.raises(AccelError):
        there.result(WAIT)
    cleared.result(WAIT)
    (folder / "gate").unlink()
    again, way = copied(second, x)
    assert (again.get(timeout_s=WAIT) == 0).all()
    assert way == "ipc"
    assert settle(lambda: lab.arena().blocks == 0)


def test_when_the_first_card_is_lost_it_says_so_and_comes_anew(lab: System, folder: Path) -> None:
    first, second = lab.devices
    x = first.put(A)
    x.result(WAIT)
    first.run(time.sleep, 60)
    there, _ = copied(second, x + 1)  # it is not made yet
    os.kill(pid_of(lab, first), signal.SIGKILL)
    with pytest.raises(AccelError, match=r"did not come: .*lost"):
        there.result(WAIT)
    again, way = copied(second, x + 1)
    np.testing.assert_array_equal(again.get(timeout_s=WAIT), A + 1)
    assert way == "ipc"
    assert settle(lambda: not is_open(folder))
    assert settle(lambda: lab.arena().blocks == 0)


def test_a_card_that_is_lost_before_it_has_closed_lets_the_buffer_go(
    lab: System, folder: Path
) -> None:
    first, second = lab.devices
    x = first.put(A)
    (folder / "late").touch()
    there, _ = copied(second, x)
    there.result(WAIT)  # the answer waits for no closing
    cleared = first.run(lambda a: a.fill(0), x, writes=(x,))
    first.ping().result(WAIT)
    assert is_open(folder)
    assert not cleared.done
    os.kill(pid_of(lab, second), signal.SIGKILL)
    cleared.result(WAIT)
    assert settle(lambda: lab.arena().blocks == 0)


def test_a_copy_that_is_cancelled_lets_the_buffer_go(lab: System) -> None:
    first, second = lab.devices
    x = first.put(A)
    second.ping().result(WAIT)
    slow = second.run(time.sleep, 0.5)
    there, _ = copied(second, x)
    there.cancel()
    first.run(lambda a: a.fill(0), x, writes=(x,)).result(WAIT)
    slow.result(WAIT)
    assert settle(lambda: lab.arena().blocks == 0)
