"""Which modules are the user's own."""

import json
from pathlib import Path

import numpy as np

from accel_lab.compute.cells import user_modules


def test_what_python_pip_and_we_have_put_there_is_not_the_users(tmp_path: Path) -> None:
    theirs = (json.__file__, np.__file__, str(user_modules.__file__))
    assert all(map(user_modules.is_installed, theirs))
    assert not user_modules.is_installed(str(tmp_path / "model.py"))


def test_a_folder_is_looked_at_once(tmp_path: Path) -> None:
    """The first function of a context waits for this, and there are thousands of modules."""
    user_modules._are_installed.cache_clear()
    for number in range(100):
        assert not user_modules.is_installed(str(tmp_path / f"module_{number}.py"))
    assert user_modules._are_installed.cache_info().misses == 1
