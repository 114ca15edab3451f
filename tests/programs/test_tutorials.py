"""The tutorials become the user's own, and stay so."""

from pathlib import Path

import pytest

from accel_lab import tutorials
from tests.project import ROOT


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Lay out two tutorials, one with a picture, and what JupyterLab leaves behind."""
    folder = tmp_path / "source"
    files = ["01-quickstart.ipynb", "02-next.ipynb", "figures/tree.svg", ".ipynb_checkpoints/x"]
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def outcomes(target: Path, source: Path) -> dict[str, str]:
    return {
        str(path.relative_to(target)): outcome for path, outcome in tutorials.copy(target, source)
    }


def test_first_copy_makes_the_folder(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "new" / "mine"
    assert outcomes(target, source) == {
        "01-quickstart.ipynb": "copied",
        "02-next.ipynb": "copied",
        "figures/tree.svg": "copied",
    }
    assert (target / "figures/tree.svg").read_text() == "figures/tree.svg"
    assert not (target / ".ipynb_checkpoints").exists()


def test_changed_file_is_kept_and_named(tmp_path: Path, source: Path) -> None:
    tutorials.copy(tmp_path / "mine", source)
    changed = tmp_path / "mine" / "01-quickstart.ipynb"
    changed.write_text("my notes")
    assert outcomes(tmp_path / "mine", source)["01-quickstart.ipynb"] == "kept"
    assert changed.read_text() == "my notes"


def test_same_file_is_left_alone_and_a_lost_one_returns(tmp_path: Path, source: Path) -> None:
    tutorials.copy(tmp_path / "mine", source)
    (tmp_path / "mine" / "02-next.ipynb").unlink()
    assert outcomes(tmp_path / "mine", source) == {
        "01-quickstart.ipynb": "same",
        "02-next.ipynb": "copied",
        "figures/tree.svg": "same",
    }


def test_file_of_the_folders_name_is_an_error(tmp_path: Path, source: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(OSError, match="mine"):
        tutorials.copy(tmp_path / "mine", source)


def test_checkout_reads_its_own_tutorials() -> None:
    assert tutorials.packaged() == ROOT / "notebooks"
    assert (tutorials.packaged() / tutorials.FIRST).is_file()


def test_skills_are_copied_and_what_the_user_changed_is_kept(tmp_path: Path) -> None:
    source = tutorials.packaged_skills()
    copied = tutorials.copy(tmp_path, source)
    assert {copy.outcome for copy in copied} == {"copied"}
    mine = tmp_path / "start" / "SKILL.md"
    assert mine in [copy.path for copy in copied]
    assert mine.read_text() == (source / "start" / "SKILL.md").read_text()
    mine.write_text("mine")
    again = {copy.path: copy.outcome for copy in tutorials.copy(tmp_path, source)}
    assert again.pop(mine) == "kept"
    assert set(again.values()) == {"same"}
    assert mine.read_text() == "mine"
