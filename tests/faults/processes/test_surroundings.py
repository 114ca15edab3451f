"""What a process may find around it that is unusual: closed streams, odd signals, no /proc."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from accel_lab.compute.machine.disk_cache import cache_folder
from accel_lab.compute.process.interpreter import interpreter
from accel_lab.errors import BackendUnavailable
from tests.project import ROOT

LIMIT_S = 100
WORKS = """
import numpy as np
from accel_lab import System, errors
with System("host", devices=1) as lab:
    gpu = lab.devices[0]
    assert (gpu.put(np.ones(3)) + 1).get().sum() == 6
"""


def run(program: str, *before: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a program in a process of its own, behind a command that changes what is around it."""
    return subprocess.run(
        [*before, sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | variables,
        timeout=LIMIT_S,
        check=False,
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "<&-"])
def test_a_daemon_without_streams_has_devices(closed: str) -> None:
    done = run(WORKS, "sh", "-c", f'exec "$0" "$@" {closed}')
    assert done.returncode == 0, done.stderr


def test_what_a_context_prints_is_dropped_where_nobody_could_read_it() -> None:
    printing = WORKS + "    gpu.run(print, 'lost').result()\n    lab.check()\n"
    done = run("import sys; sys.stdout.close()" + printing)
    assert done.returncode == 0, done.stderr
    assert not done.stderr


def test_a_long_wait_shows_no_bar_without_a_stream() -> None:
    waiting = WORKS + "    assert gpu.run(__import__('time').sleep, 1.5).result() is None\n"
    done = run(waiting, "sh", "-c", 'exec "$0" "$@" >&-')
    assert done.returncode == 0, done.stderr


IGNORED = """
import signal, subprocess, sys, time
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
"""


def test_ignored_and_blocked_signals_stay_with_the_notebook() -> None:
    done = run(
        IGNORED
        + WORKS
        + """
    assert gpu.run(lambda: subprocess.run(["false"]).returncode).result() == 1
    try:
        lab.inject("kill", gpu).result()
    except errors.ContextLost as error:
        assert "SIGKILL;" in str(error), error
    assert gpu.put(np.ones(3)).get().sum() == 3
    def begun():
        print("begun", flush=True)
        time.sleep(60)
    slow = gpu.run(begun)
    time.sleep(0.5)
    slow.cancel()
    began = time.monotonic()
    gpu.ping().result()
    assert time.monotonic() - began < 30
    assert signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
"""
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("executable", ["", "/usr/bin/true"])
def test_an_embedded_interpreter_starts_the_one_with_its_packages(executable: str) -> None:
    done = run(f"import sys; sys.executable = {executable!r}\n{WORKS}")
    assert done.returncode == 0, done.stderr


def test_without_any_interpreter_it_says_how_to_name_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("prefix", "exec_prefix", "base_prefix"):
        monkeypatch.setattr(sys, name, str(tmp_path))
    monkeypatch.setattr(sys, "executable", "")
    monkeypatch.delitem(sys.modules, "multiprocessing.spawn", raising=False)
    with pytest.raises(BackendUnavailable, match=r"multiprocessing\.set_executable\(path\)"):
        interpreter()


def test_the_interpreter_that_was_named_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    import multiprocessing.spawn

    before = multiprocessing.spawn.get_executable()
    multiprocessing.spawn.set_executable("/opt/host/python")
    try:
        assert interpreter() == "/opt/host/python"
    finally:
        multiprocessing.spawn.set_executable(before)


def test_devices_work_without_proc() -> None:
    unshare = shutil.which("unshare")
    hidden = 'umount -l /proc && exec "$0" "$@"'
    around = (unshare or "", "-m", "sh", "-c", hidden)
    if unshare is None or subprocess.run([*around, "true"], capture_output=True).returncode:  # noqa: PLW1510
        pytest.skip("this user may not hide /proc")
    done = run(WORKS, *around)
    assert done.returncode == 0, done.stderr


def test_a_user_without_a_home_has_a_cache_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("ACCEL_LAB_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mine = cache_folder()
    assert mine.parent == tmp_path
    assert mine.stat().st_mode & 0o077 == 0
    assert cache_folder() == mine
    mine.chmod(0o777)  # as somebody else may have made it
    assert cache_folder() != mine
