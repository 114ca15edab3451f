"""A key of the tests' own: none is made in the home of whoever runs them."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _key_of_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
