"""What was sent and not awaited is done before `with` and the program end, or a line says so."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from accel_lab import System
from accel_lab.actor import Actor, Message, handles
from accel_lab.errors import Cancelled, SystemClosed
from tests.project import ROOT

HEAD = """
import pathlib, sys, time
from accel_lab import System, gpu
def save(path):
    time.sleep(0.5)
    pathlib.Path(path).write_text("saved")
"""
SCRIPT = "lab = System('host')\nlab.devices[0].run(save, sys.argv[1])\n"
FUNCTION = """
def main():
    lab = System('host')
    lab.devices[0].run(save, sys.argv[1])
main()
"""
DEFAULT = "gpu.run(save, sys.argv[1])\n"


class Save(Message[None], frozen=True):
    """Write a file."""

    path: Path


class Keeper(Actor):
    """Writes files, slowly."""

    @handles(Save)
    def save(self, message: Save) -> None:
        time.sleep(0.2)
        message.path.write_text("saved")


def run(program: str, path: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", HEAD + program, str(path)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize("program", [SCRIPT, FUNCTION, DEFAULT])
def test_a_program_ends_when_what_it_sent_is_done(program: str, tmp_path: Path) -> None:
    done = run(program, tmp_path / "model")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "model").read_text() == "saved"


def test_a_program_that_fails_ends_at_once_and_says_what_it_drops(tmp_path: Path) -> None:
    began = time.monotonic()
    done = run(SCRIPT.replace("save, sys.argv[1]", "time.sleep, 600") + "1 / 0", tmp_path)
    assert time.monotonic() - began < 25  # and not the 30 s that the end would wait for it
    assert "accel_lab: closed; 1 request to cpu0 did not finish.\n" in done.stderr


def test_leaving_with_waits_for_what_was_sent_also_to_actors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(System, "finish_s", 30.0)
    paths = [tmp_path / str(number) for number in range(3)]
    with System("host", devices=1) as lab:
        keeper = lab.spawn(Keeper)
        for path in paths:
            keeper.tell(Save(path))
        slow = lab.devices[0].run(time.sleep, 0.5)
    assert all(path.exists() for path in paths)
    assert slow.result() is None
    assert capsys.readouterr().err == ""


def test_leaving_with_waits_so_long_and_says_what_it_drops(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(System, "finish_s", 0.5)
    with System("host", devices=1) as lab:
        slow = lab.devices[0].run(time.sleep, 600)
    with pytest.raises(SystemClosed):
        slow.result()
    said = "accel_lab: closed; 1 request to cpu0 did not finish.\n"
    assert capsys.readouterr().err == said


def test_leaving_with_by_an_error_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(System, "finish_s", 600.0)
    sent = []

    def leave() -> None:
        with System("host", devices=1) as lab:
            sent.append(lab.devices[0].run(time.sleep, 600))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        leave()
    with pytest.raises(SystemClosed):
        sent[0].result()


def test_what_was_taken_back_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(System, "finish_s", 600.0)
    with System("host", devices=1) as lab:
        slow = lab.devices[0].run(time.sleep, 600)
        lab.devices[0].put([1.0]).cancel()
        slow.cancel()
    with pytest.raises(Cancelled):
        slow.result()


def test_a_failure_that_nobody_took_is_told_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with System("host", devices=1) as lab:
        lab.devices[0].run(lambda: 1 / 0)
    assert "UserCodeError: ZeroDivisionError: division by zero" in capsys.readouterr().err
