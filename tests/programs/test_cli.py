"""The command line, run as a user runs it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from accel_lab import jupyter, tutorials
from tests.bare_python import BarePython
from tests.project import ROOT, requirements


def accel_lab(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "accel_lab.cli", *arguments],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("command", ["doctor", "gpu-test", "lab", "skills", "top"])
def test_help_lists_the_command_and_explains_it(command: str, tmp_path: Path) -> None:
    assert command in accel_lab("--help", cwd=tmp_path).stdout
    assert accel_lab(command, "--help", cwd=tmp_path).returncode == 0


def test_unknown_command_is_refused(tmp_path: Path) -> None:
    done = accel_lab("docter", cwd=tmp_path)
    assert done.returncode == 2
    assert "docter" in done.stderr


def test_port_that_cannot_be_is_refused(tmp_path: Path) -> None:
    done = accel_lab("dashboard", "--port", "99999", cwd=tmp_path)
    assert done.returncode == 2
    assert "--port" in done.stderr
    assert "65535" in done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_speaks_to_people_and_to_programs(tmp_path: Path) -> None:
    people = accel_lab("doctor", cwd=tmp_path)
    programs = accel_lab("doctor", "--json", cwd=tmp_path)
    assert people.returncode == programs.returncode == 0
    assert not programs.stderr
    assert json.loads(programs.stdout)["host"] is True
    first = people.stdout.splitlines()[0]
    assert re.fullmatch(r"accel_lab \S+: ready( without a GPU \(see .+\))?", first)


def test_version_is_said(tmp_path: Path) -> None:
    done = accel_lab("--version", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"accel-lab {version('accel-lab')}\n"


@pytest.mark.parametrize("command", ["doctor", "demo --backend host"])
def test_an_output_without_every_character_has_the_others(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = accel_lab(*command.split(), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "host" in done.stdout
    assert "?" in done.stdout


def test_lab_without_jupyterlab_says_what_to_install(tmp_path: Path) -> None:
    python = BarePython(tmp_path / "venv")
    python.link(f"{name}{specifier}" for name, specifier in requirements().items())
    python.see(ROOT)
    done = python.run("-m", "accel_lab.cli", "lab", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("accel-lab: JupyterLab is not installed. Install it with: ")
    assert "install" in done.stderr
    assert "[lab]" in done.stderr
    assert not (tmp_path / "accel-lab-tutorials").exists()


def test_unusable_folder_is_one_line_and_not_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = accel_lab("lab", "--dir", "taken", cwd=tmp_path)
    assert done.returncode == 1
    assert re.fullmatch(r"accel-lab: .*taken.*\n", done.stderr)


# How JupyterLab is called


def test_browser_opens_only_where_there_is_a_display() -> None:
    with_display = jupyter.command(Path(), "a.ipynb", environment={"DISPLAY": ":0"})
    assert "--no-browser" not in with_display
    assert "--no-browser" in jupyter.command(Path(), "a.ipynb", environment={})
    refused = jupyter.command(Path(), "a.ipynb", browser=False, environment={"DISPLAY": ":0"})
    assert "--no-browser" in refused


def test_arguments_for_jupyterlab_come_last_and_win() -> None:
    command = jupyter.command(Path(), "a.ipynb", ["--port=9999", "--no-browser"])
    assert command[-2:] == ["--port=9999", "--no-browser"]


@contextmanager
def serving(cwd: Path, *arguments: str) -> Iterator[tuple[str, list[str]]]:
    """Run `accel-lab lab` until it prints its URL; give the URL and the lines before it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "accel_lab.cli", "lab", *arguments],
        cwd=cwd,
        env={key: text for key, text in os.environ.items() if "DISPLAY" not in key}
        | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if url := re.search(r"http://127\.0\.0\.1:\d+/\S+", line):
                yield url[0], lines
                break
        else:
            pytest.fail("".join(lines))
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def fetch(url: str) -> Any:
    """Get JSON from a server that prints its URL a moment before it listens."""
    give_up = time.monotonic() + 20
    while True:
        try:
            with urlopen(url, timeout=20) as answer:  # noqa: S310 - http, on this machine
                return json.load(answer)
        except URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError) or time.monotonic() > give_up:
                raise
            os.sched_yield()


@pytest.mark.slow
def test_lab_prints_a_url_that_shows_the_first_minute(tmp_path: Path) -> None:
    changed = tmp_path / "mine" / tutorials.FIRST
    changed.parent.mkdir()
    notebook = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    changed.write_text(json.dumps(notebook))
    with serving(tmp_path, "--dir", "mine", "--port=0", "--ip=127.0.0.1") as (url, lines):
        assert f"/lab/tree/{tutorials.FIRST}?token=" in url
        assert any(line.startswith(f"kept your mine/{tutorials.FIRST}") for line in lines)
        contents = fetch(url.replace("/lab/tree/", "/api/contents/"))
        assert contents["content"]["cells"] == []


def test_jupyterlab_keeps_the_state_of_views_with_a_notebook() -> None:
    """Else a view that is opened again without its kernel says "model not found"."""
    pytest.importorskip("jupyterlab_server.settings_utils")
    given = jupyter.environment({"PATH": "/bin", "JUPYTER_CONFIG_PATH": "/mine"})
    assert given["PATH"] == "/bin"
    assert given["JUPYTER_CONFIG_PATH"].split(os.pathsep) == ["/mine", str(jupyter.PRESETS)]
    code = (
        "from jupyterlab_server.settings_utils import _get_overrides; "
        "print(_get_overrides('/nowhere')[0]['@jupyter-widgets/jupyterlab-manager:plugin'])"
    )
    command = [sys.executable, "-c", code]
    env = jupyter.environment()
    found = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "{'saveState': True}"
