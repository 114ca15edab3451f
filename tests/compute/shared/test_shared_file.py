"""Files that other processes open: who has one open, and what was given back."""

import contextlib
import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from accel_lab.compute.shared.lingering import Lingering
from accel_lab.compute.shared.shared_file import OpenedFile, SharedFile
from accel_lab.compute.shared.shared_flag import FlagPlace, SharedFlag, State
from accel_lab.errors import InvalidArgument, OwnerGone

ROUNDS = 300


def test_it_stays_as_long_as_somebody_has_it_open() -> None:
    file = SharedFile(10)
    os.pwrite(file.fd, b"contents", 0)
    first, second = OpenedFile(file.place), OpenedFile(file.place)
    assert os.pread(second.fd, 8, 0) == b"contents"
    assert not file.close()
    first.close()
    assert file.is_open()
    del second
    assert not file.is_open()
    assert file.close()
    assert file.close()


def test_what_is_given_back_nobody_opens_though_another_has_it_open_still() -> None:
    file = SharedFile(10)
    os.pwrite(file.fd, b"contents", 0)
    opened = OpenedFile(file.place)
    assert not file.close()
    for _ in range(2):  # while it is open, and when it is open no more
        with pytest.raises(OwnerGone, match="does not share this any more"):
            OpenedFile(file.place)
        assert opened.fd < 0 or os.pread(opened.fd, 8, 0) == b"contents"
        opened.close()
    assert file.close()
    with pytest.raises(OwnerGone, match="does not share this any more"):
        OpenedFile(file.place)


def test_the_number_of_a_file_or_a_process_may_be_anothers_by_now() -> None:
    file = SharedFile(1)
    other = file.place._replace(inode=file.place.inode + 1)
    with pytest.raises(OwnerGone, match="does not share"):
        OpenedFile(other)
    with pytest.raises(OwnerGone, match=f"process {os.getpid()}, which shared this, has ended"):
        OpenedFile(file.place._replace(began=file.place.began - 1))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with pytest.raises(OwnerGone) as caught:
        OpenedFile(file.place._replace(pid=ended.pid))
    assert caught.value.pid == ended.pid


def test_only_a_file_that_is_shared_is_opened() -> None:
    fd = os.memfd_create("another")
    try:
        place = SharedFile(1).place._replace(fd=fd, inode=os.fstat(fd).st_ino)
        with pytest.raises(OwnerGone, match="does not share"):
            OpenedFile(place)
    finally:
        os.close(fd)


def test_a_process_that_may_not_be_looked_at_is_another_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = SharedFile(1)

    def hidden(*_: object, **__: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_text", hidden)
    with pytest.raises(InvalidArgument, match=f"process {os.getpid()} is another user's"):
        OpenedFile(file.place)


def test_a_child_gives_back_nothing_of_its_parents() -> None:
    program = """
import os
from accel_lab.compute.shared.lingering import LINGERING
from accel_lab.compute.shared.shared_file import OpenedFile, SharedFile

file, lingering = SharedFile(1), SharedFile(1)
opened = OpenedFile(lingering.place)
LINGERING.let_go(lingering, [1], 100)
child = os.fork()
if not child:
    os._exit(0 if file.close() and file.fd < 0 and not LINGERING.nbytes else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
OpenedFile(file.place).close()
assert LINGERING.nbytes == 100
opened.close()
assert LINGERING.sweep() == 100
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_where_the_system_gives_no_file_there_is_no_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    for call in ("memfd_create", "ftruncate"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, full)
            with pytest.raises(MemoryError, match=r"can be shared: .*Too many open files"):
                SharedFile(1)
    file = SharedFile(1)
    assert file.close()
    with pytest.raises(MemoryError, match=r"can be shared: .*cannot map"):
        file.map()


def test_nobody_has_open_what_was_given_back() -> None:
    """However the two meet."""
    for _ in range(ROUNDS):
        file, opened = SharedFile(1), list[OpenedFile]()
        both = threading.Barrier(2)

        def take(file: SharedFile = file, opened: list[OpenedFile] = opened) -> None:
            both.wait()  # noqa: B023 - it runs in this round
            with contextlib.suppress(OwnerGone):
                opened.append(OpenedFile(file.place))

        taking = threading.Thread(target=take)
        taking.start()
        both.wait()
        given_back = file.close()
        taking.join()
        assert given_back != bool(opened)


def test_who_opens_it_just_before_it_is_given_back_learns_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, opening = SharedFile(1), os.open

    def late(path: str, flags: int) -> int:
        fd = opening(path, flags)
        assert file.close(), "it has no lock yet"
        return fd

    monkeypatch.setattr(os, "open", late)
    with pytest.raises(OwnerGone, match="does not share this any more"):
        OpenedFile(file.place)


def test_memory_is_kept_for_those_who_have_it_open() -> None:
    kept, file, memory = Lingering(), SharedFile(1), [1]
    opened = OpenedFile(file.place)
    kept.let_go(file, memory, 100)
    kept.let_go(SharedFile(1), memory, 50)
    assert (kept.nbytes, kept.sweep()) == (100, 0)
    opened.close()
    assert (kept.sweep(), kept.nbytes) == (100, 0)


def test_what_is_kept_for_others_is_freed_by_itself() -> None:
    kept, memory = Lingering(by_itself=True), threading.Event()
    for _ in range(2):  # the second time by another thread
        first, second = SharedFile(1), SharedFile(1)
        opened = OpenedFile(first.place), OpenedFile(second.place)
        kept.let_go(first, memory, 100)
        kept.let_go(second, memory, 50)
        for one, left in zip(opened, (50, 0), strict=True):
            one.close()
            until = time.monotonic() + 60
            while kept.nbytes != left and time.monotonic() < until:
                time.sleep(0.01)
            assert kept.nbytes == left


def test_a_flag_says_what_it_was_told_last() -> None:
    flag = SharedFlag()
    opened = FlagPlace(flag.place).open()
    assert not opened.query()
    with pytest.raises(TimeoutError, match=r"within 0\.01 s"):
        opened.wait(0.01)
    later = threading.Timer(0.02, flag.say, [State.REACHED])
    later.start()
    opened.wait(60)
    assert opened.query()
    flag.say(State.LOST)
    with pytest.raises(OwnerGone, match="has lost the event"):
        opened.wait()
