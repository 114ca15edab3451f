"""Cells and the user's own modules, folder and environment."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from accel_lab import System
from accel_lab.errors import QueueFull, UserCodeError
from tests.notebook.cells import Notebook, lose

WAIT = 30.0


def test_a_hundred_edits_of_a_module_are_all_seen(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a pause between them, so that file times may repeat; the notebook left bytecode."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "edited_first.py").write_text("value = -1\n")
    (tmp_path / "edited.py").write_text(
        "from edited_first import value\ndef get():\n    return value\n"
    )
    import edited  # type: ignore[import-not-found]

    notebook.names |= {"edited": edited, "get": edited.get}
    seen = []
    for n in range(100):
        (tmp_path / "edited_first.py").write_text(f"value = {n:2}\n")
        seen.append((notebook("edited.get()"), notebook("get()")))
    assert seen == [(str(n), str(n)) for n in range(100)]
    for name in ("edited", "edited_first"):
        sys.modules.pop(name)


def test_an_instance_that_is_there_has_the_methods_of_its_module_as_it_is_now(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a class with a base, and inside a list."""
    monkeypatch.syspath_prepend(str(tmp_path))
    source = (
        "class Base:\n    def __call__(self):\n        return self.w\n"
        "class Model(Base):\n    def __init__(self):\n        self.w = 1\n"
        "    def __call__(self):\n        return super().__call__()"
    )
    (tmp_path / "modelled.py").write_text(source + "\n")
    notebook("from modelled import Model\nmodel = Model()\nboth = [model, Model()]")
    (tmp_path / "modelled.py").write_text(source + " + 10\n")
    assert notebook("model(), [one() for one in both]") == "(11, [11, 11])"
    assert notebook("model.w, isinstance(model, Model)") == "(1, True)"


def test_what_pip_has_installed_is_not_looked_at_again(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `pip install --target` does it: hundreds of files would be read before each cell."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "settled-1.0.dist-info").mkdir()
    (tmp_path / "settled.py").write_text("value = 1\n")
    assert notebook("import settled\nsettled.value") == "1"
    (tmp_path / "settled.py").write_text("value = 22\n")
    assert notebook("settled.value") == "1"


def test_a_module_that_is_broken_says_so_until_it_is_mended(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    source = tmp_path / "breakable.py"
    source.write_text("value = 1\n")
    import breakable  # type: ignore[import-not-found]

    notebook.names["breakable"] = breakable
    assert notebook("breakable.value") == "1"
    source.write_text("value = \n")
    for _ in range(2):
        with pytest.raises(UserCodeError, match="SyntaxError"):
            notebook("breakable.value")
    source.write_text("value = 22\n")
    assert notebook("breakable.value") == "22"
    sys.modules.pop("breakable")


def test_the_cell_works_in_the_notebooks_folder_and_environment(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_SETTING", "seven")
    assert notebook("import os\nos.getcwd()") == repr(str(tmp_path))
    assert notebook("os.environ['MY_SETTING']") == "'seven'"
    lose(notebook)
    assert notebook("import os\nos.environ['MY_SETTING']") == "'seven'"
    monkeypatch.delenv("MY_SETTING")
    assert notebook("'MY_SETTING' in os.environ") == "False"


def test_a_function_is_found_in_a_folder_that_was_added_since(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what it opens is in the notebook's folder; after a loss, too."""
    (tmp_path / "added.py").write_text("def read():\n    return open('data.txt').read()\n")
    (tmp_path / "data.txt").write_text("here")
    assert notebook.gpu.run(len, "before").result(WAIT) == 6
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    import added  # type: ignore[import-not-found]

    read: Any = notebook.gpu.function(added.read)
    assert notebook.gpu.run(added.read).result(WAIT) == "here"
    lose(notebook)
    assert read().result(WAIT) == "here"
    monkeypatch.undo()
    assert notebook.gpu.run(os.getcwd).result(WAIT) == os.getcwd()  # noqa: PTH109 - what runs there
    sys.modules.pop("added")


def test_a_function_finds_the_variables_that_the_notebook_has_by_then(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a context that has begun with others, and in one that had others kept."""
    gpu = notebook.gpu
    assert gpu.run(os.getenv, "MY_SETTING").result(WAIT) is None
    monkeypatch.setenv("MY_SETTING", "seven")
    assert gpu.run(os.getenv, "MY_SETTING").result(WAIT) == "seven"
    lose(notebook)
    assert gpu.run(os.getenv, "MY_SETTING").result(WAIT) == "seven"
    gpu.suspend()
    monkeypatch.delenv("MY_SETTING")
    gpu.resume()
    assert gpu.run(os.getenv, "MY_SETTING").result(WAIT) is None


def test_a_device_that_comes_back_works_in_the_notebooks_folder(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert notebook("2 + 2") == "4"
    notebook.gpu.suspend()
    monkeypatch.chdir(tmp_path)
    notebook.gpu.resume()
    assert notebook.gpu.run(os.getcwd).result(WAIT) == str(tmp_path)


def test_a_folder_whose_name_is_no_text_is_one_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No context started there."""
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / "found_there.py").write_text("value = 7")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    with System("host") as lab:
        notebook = Notebook(lab)
        assert notebook("import os\nos.getcwd()") == repr(str(folder))
        assert notebook("import found_there\nfound_there.value") == "7"
        lose(notebook)
        assert notebook.gpu.run(os.getcwd).result(WAIT) == str(folder)


def test_a_folder_that_was_removed_stops_nothing(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The context stays where it was; one that comes back begins where the notebook began."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    assert notebook.gpu.run(os.getcwd).result(WAIT) == str(gone)
    gone.rmdir()
    assert notebook.gpu.run(len, "abc").result(WAIT) == 3
    assert notebook("kept = 2 + 2; kept") == "4"
    notebook.gpu.suspend()
    notebook.gpu.resume()
    assert notebook("kept") == "4"


def test_a_journal_does_not_hold_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be given to others; the folder and the path are in it, for replays need those."""
    secret, folder = "a-token-of-the-notebook", tmp_path / "work"
    folder.mkdir()
    with System("host", journal=tmp_path / "journal.sqlite") as lab:
        notebook = Notebook(lab)
        monkeypatch.setenv("MY_TOKEN", secret)
        monkeypatch.chdir(folder)
        assert notebook.gpu.run(os.getenv, "MY_TOKEN").result(WAIT) == secret
        assert notebook("import os; len(os.environ['MY_TOKEN'])") == str(len(secret))
        lab.flush()
        written = b"".join(file.read_bytes() for file in tmp_path.glob("journal.sqlite*"))
    assert secret.encode() not in written
    assert str(folder).encode() in written
    assert os.environ["PATH"].encode() not in written


def test_surroundings_are_told_once(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = notebook.gpu.run(len, "abc")
    ran.result(WAIT)
    monkeypatch.syspath_prepend("/nowhere")
    before = notebook.gpu.last_number
    for _ in range(3):
        notebook.gpu.run(len, "abc")
    assert notebook.gpu.last_number == before + 4


def test_what_could_not_be_told_is_told_with_the_next_call(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert notebook.gpu.run(len, "abc").result(WAIT) == 3
    monkeypatch.chdir(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise QueueFull("no room")

    with monkeypatch.context() as patch:
        patch.setattr(notebook.gpu._transfers, "run", refuse)
        with pytest.raises(QueueFull):
            notebook.gpu.run(len, "abc")
    assert notebook.gpu.run(os.getcwd).result(WAIT) == str(tmp_path)
