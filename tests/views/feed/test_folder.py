"""Who may read a feed: the user of its process, and nobody else."""

import errno
import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from accel_lab.views.feed import folder as feed_folder
from accel_lab.views.feed.feed import FEED
from accel_lab.views.feed.folder import Name
from tests.views.feed.feeds import threads
from tests.views.made_up import Lab
from tests.views.made_up import lab as made_up

pytestmark = pytest.mark.usefixtures("runtime")


def test_the_socket_and_its_folder_are_this_users_alone(lab: Lab, runtime: Path) -> None:
    (path,) = runtime.iterdir()
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(runtime.stat().st_mode) == 0o700
    name = Name.read(path.name)
    assert name == Name.of(os.getpid())


def test_the_mode_does_not_depend_on_the_umask(runtime: Path) -> None:
    before = os.umask(0)
    try:
        lab = made_up()
        FEED.add(lab)
        assert [stat.S_IMODE(one.stat().st_mode) for one in (runtime, *runtime.iterdir())] == [
            0o700,
            0o600,
        ]
        FEED.remove(lab)
    finally:
        os.umask(before)


def test_what_a_dead_process_has_left_goes_when_the_next_system_opens(runtime: Path) -> None:
    here = feed_folder.make()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(feed_folder.path(here, Name(os.getpid(), began=1)))  # who had this number before
    os.close(here)
    lab = made_up()
    FEED.add(lab)
    try:
        assert [Name.read(one.name) for one in runtime.iterdir()] == [Name.of(os.getpid())]
    finally:
        FEED.remove(lab)


def test_a_process_of_another_user_is_hung_up_on(
    lab: Lab, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = feed_folder.enter(runtime)
    (name,) = feed_folder.names(here)
    monkeypatch.setattr("accel_lab.views.feed.folder.is_mine", lambda _: False)
    with socket.socket(socket.AF_UNIX) as other:
        other.settimeout(20)
        other.connect(feed_folder.path(here, name))
        assert other.recv(1) == b""
    os.close(here)


def test_the_peer_check_asks_the_system_who_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = socket.socketpair()
    with one, other:
        assert feed_folder.is_mine(one)
        user = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
        assert not feed_folder.is_mine(one)


AS_NOBODY = """
import socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.settimeout(20)
try:
    sock.connect(sys.argv[1])
    print(len(sock.recv(1)))
except PermissionError:
    print("denied")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user_is_denied_and_where_the_modes_are_wide_still_gets_nothing(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        Path(place).chmod(0o711)
        monkeypatch.setenv("XDG_RUNTIME_DIR", place)
        lab = made_up()
        FEED.add(lab)
        (path,) = (Path(place) / "accel_lab").iterdir()

        def ask() -> str:
            command = ["/usr/bin/python3", "-c", AS_NOBODY, str(path)]
            done = subprocess.run(
                command, user=65534, group=65534, extra_groups=[], capture_output=True, check=True
            )
            return done.stdout.decode().strip()

        assert ask() == "denied"
        path.parent.chmod(0o711)
        assert ask() == "denied"
        path.chmod(0o666)
        assert ask() == "0"
        FEED.remove(lab)


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_can_enter_is_not_used(
    runtime: Path, mode: int, tmp_path: Path
) -> None:
    runtime.mkdir()
    runtime.chmod(mode)
    lab = made_up()
    FEED.add(lab)
    assert list(runtime.iterdir()) == []
    (elsewhere,) = (tmp_path / f"accel_lab-{os.geteuid()}").iterdir()
    assert Name.read(elsewhere.name) == Name.of(os.getpid())
    FEED.remove(lab)
    with pytest.raises(PermissionError, match=f"mode {mode:04o}"):
        feed_folder.enter(runtime)


def test_a_link_is_no_folder(runtime: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(0o700)
    runtime.symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="Not a directory"):
        feed_folder.enter(runtime)


def test_without_any_safe_folder_there_is_a_warning_and_a_system_all_the_same(
    runtime: Path, tmp_path: Path
) -> None:
    for folder in (runtime, tmp_path / f"accel_lab-{os.geteuid()}"):
        folder.mkdir()
        folder.chmod(0o755)
    with pytest.warns(RuntimeWarning, match="no dashboard can watch"):
        FEED.add(made_up())
    assert threads() == []


@pytest.mark.filterwarnings("error")
def test_a_process_that_nobody_may_ask_after_is_let_be(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = Name.of(os.getpid())
    assert mine is not None
    other = mine._replace(began=mine.began - 1)

    def refuse(name: Name) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied")

    entered = feed_folder.make()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(feed_folder.path(entered, other))
    os.close(entered)
    monkeypatch.setattr(Name, "lives", property(refuse))
    lab = made_up()
    FEED.add(lab)
    assert {one.name for one in runtime.iterdir()} == {mine.file, other.file}
    FEED.remove(lab)
