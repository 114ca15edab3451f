"""The magics that show systems, in a real IPython."""

from collections.abc import Iterator

import pytest

pytest.importorskip("IPython", reason="IPython comes with the lab extra")

import accel_lab
from accel_lab.compute.events.lifecycle import ContextStarted
from accel_lab.errors import ContextLost
from accel_lab.open_systems import running
from accel_lab.system import System
from accel_lab.views.faults import Faults
from accel_lab.views.lab import CompactView, LabView
from tests.interactive import Shell, shell

WAIT_S = 20.0


@pytest.fixture(scope="module", autouse=True)
def others() -> list[System]:
    """Return what other modules of the tests have open."""
    return running()


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch, others: list[System]) -> Iterator[Shell]:
    """Open an IPython that has the extension, and sees the systems of this module."""
    monkeypatch.setattr(
        "accel_lab.extension.running",
        lambda: [system for system in running() if system not in others],
    )
    with shell() as opened:
        opened("%load_ext accel_lab")
        assert opened.error is None
        yield opened


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", name="one") as system:
        yield system


@pytest.mark.parametrize("magic", ["%lab", "%lab full", "%lab_faults", "%lab_faults 3"])
def test_without_a_system_there_is_one_line_that_says_what_to_do(
    notebook: Shell,
    magic: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("accel_lab.extension.running", list)
    notebook(magic)
    assert notebook.error is not None
    said = capsys.readouterr().err
    assert said.strip() == "UsageError: no system is running: lab = System() opens one"


def test_the_magic_shows_the_running_system(notebook: Shell, lab: System) -> None:
    view = notebook("%lab")
    assert type(view) is CompactView
    assert str(view).startswith("one: 1 device\n")
    full = notebook("%lab full one")
    assert type(full) is LabView
    assert full.source.lab is lab


def test_several_systems_are_shown_one_after_the_other(
    notebook: Shell, lab: System, capsys: pytest.CaptureFixture[str]
) -> None:
    with System("host", name="two"):
        assert notebook("%lab") is None
        drawn = [data["text/plain"].partition(":")[0] for data in notebook.published]
        assert drawn == ["one", "two"]
        assert type(notebook("%lab two")) is CompactView
        assert notebook.complete("%lab t") == {"two"}


def test_a_name_that_no_system_has_is_a_line_too(
    notebook: Shell, lab: System, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook("%lab three")
    assert capsys.readouterr().err.strip() == (
        "UsageError: no system 'three' is running; there are one"
    )


def test_faults_are_a_table(notebook: Shell, lab: System) -> None:
    assert str(notebook("%lab_faults")) == "one: 0 faults"
    for _ in range(2):
        mark = lab.events.published
        with pytest.raises(ContextLost):
            lab.inject("kill").result(WAIT_S)
        lab.events.wait_for(ContextStarted, WAIT_S, since=mark)
    faults = notebook("%lab_faults 1")
    assert isinstance(faults, Faults)
    (head, columns, row, *said) = repr(faults).splitlines()
    assert head == "one: 2 faults. 1 older one is not shown"
    assert columns.split()[:3] == ["Time", "Outcome", "Actor"]
    assert "recovered" in row
    assert said[0] == "    context lost: its process ended with SIGKILL"
    assert faults._repr_html_().count("<tr>") == 2
    assert repr(notebook("%lab_faults")).count("context lost") == 2


@pytest.mark.parametrize("argument", ["0", "-3", "1 2"])
def test_a_count_that_is_none_is_refused(
    notebook: Shell, lab: System, argument: str, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook(f"%lab_faults {argument}")
    said = capsys.readouterr().err
    assert said.strip() == (
        f"UsageError: %lab_faults takes one number of faults, from 1: {argument!r}"
    )


def test_arguments_are_completed(notebook: Shell, lab: System) -> None:
    assert notebook.complete("%lab ") == {"full", "one"}
    assert notebook.complete("%lab f") == {"full"}
    assert notebook.complete("%lab full o") == {"one"}
    assert notebook.complete("%lab_faults 3 ") == {"one"}
    assert {"%lab", "%lab_faults"} <= notebook.complete("%la")
    assert "full" not in notebook.complete("%time ")


def test_loading_twice_is_as_once_and_unloading_leaves_nothing(
    notebook: Shell, lab: System, capsys: pytest.CaptureFixture[str]
) -> None:
    ipython = notebook.ipython
    accel_lab.load_ipython_extension(ipython)
    assert len(ipython.Completer.custom_matchers) == 1
    notebook("%unload_ext accel_lab")
    assert notebook.error is None
    assert ipython.Completer.custom_matchers == []
    assert not {"lab", "lab_faults"} & set(ipython.magics_manager.magics["line"])
    capsys.readouterr()
    notebook("%lab")
    assert "not found" in capsys.readouterr().err
    assert "one" not in notebook.complete("%lab ")
