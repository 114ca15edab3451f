"""Packages that stand in for NVIDIA's, in this process and in the contexts."""

import os
from pathlib import Path

import pytest

from accel_lab import backends

HERE = Path(__file__).parent
TOLD = "ACCEL_LAB_TEST_NVTX"


@pytest.fixture(scope="session")
def ranges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one file for all, so that each test has the environment of the one before it."""
    return tmp_path_factory.mktemp("nvtx") / "ranges.jsonl"


@pytest.fixture
def told(ranges: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have the packages found; return where the stand-in of `nvtx` writes."""
    places = [str(HERE / "packages"), str(HERE / "recorded_backend")]
    before = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*places, before]))
    monkeypatch.syspath_prepend(places[0])
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, places[1]])
    monkeypatch.setenv(TOLD, str(ranges))
    ranges.write_text("")
    return ranges
