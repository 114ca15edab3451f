"""Handles of what is no array, by a library that is added to a copy of the project."""

from pathlib import Path

import pytest

from tests.libraries.copied_project import run_scenarios

pytestmark = pytest.mark.timeout(150)  # long: it begins before files of short tests


@pytest.mark.parametrize("scenarios", ["scenarios", "lifetimes"])
def test_its_scenarios_pass(tmp_path: Path, scenarios: str) -> None:
    run_scenarios(Path(__file__).parent / "recurrent", "recurrent", tmp_path, scenarios)
