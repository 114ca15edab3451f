"""What is no system is refused by every view, with a word on how to see it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accel_lab import System, views
from accel_lab.errors import InvalidArgument
from accel_lab.views.widget import view

VIEWS: list[Callable[[Any], object]] = [
    views.tree,
    views.vram,
    views.timeline,
    views.kernels,
    views.supervision,
    views.health,
    views.lab,
]


@pytest.fixture(scope="module")
def system() -> Any:
    with System("host", name="lab") as lab:
        yield lab


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("show", VIEWS, ids=lambda show: show.__name__)
def test_what_is_no_system_is_refused(
    show: Callable[[Any], object],
    system: System,
    monkeypatch: pytest.MonkeyPatch,
    *,
    live: bool,
) -> None:
    monkeypatch.setattr(view, "_is_live", lambda: live)
    wrong: dict[str, object] = {
        "this is 'file.jsonl'; views.journal takes a path": "file.jsonl",
        "this is 'file.db'; views.journal takes a path": Path("file.db"),
        "this is of type Device; give the System it belongs to": system.devices[0],
        "this is of type Journal; views.journal takes one": system.journal,
        "this is the class System; make one": System,
        "this is of type int$": 3,
    }
    for match, argument in wrong.items():
        with pytest.raises(InvalidArgument, match=f"^a view takes a System or a Rec.*{match}"):
            show(argument)


def test_the_journal_of_what_is_no_system_is_refused(system: System, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="this is of type Device"):
        views.journal(system.devices[0])  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="this is of type int"):
        views.record(3, tmp_path / "x.jsonl")  # type: ignore[arg-type]
