"""Where a test's feeds are, who reads them, and a system that is offered."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from accel_lab.views.feed import feed
from accel_lab.views.feed.client import Watch
from accel_lab.views.feed.feed import FEED
from tests.views.made_up import Lab
from tests.views.made_up import lab as made_up


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a runtime folder of its own, with a long path; return where its feeds are."""
    place = tmp_path / ("long-" * 20)
    place.mkdir(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    monkeypatch.setenv("ACCEL_LAB_FEED", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(feed, "FAREWELL_S", 10.0)  # its thread may stand still for a while
    return place / "accel_lab"


@pytest.fixture
def watch(runtime: Path) -> Iterator[Watch]:
    watch = Watch()
    yield watch
    watch.close()


@pytest.fixture
def lab(runtime: Path) -> Iterator[Lab]:
    """A made-up system that is offered."""
    lab = made_up(2)
    FEED.add(lab)
    yield lab
    FEED.remove(lab)
