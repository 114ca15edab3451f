"""A far machine for the tests of a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compute.cluster.ssh.far_host import FarHost
from tests.conftest import require


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarHost]:
    """Start an sshd; without one the test is skipped."""
    require("sshd")
    made = FarHost(Path(tmp_path_factory.mktemp("ssh")))
    yield made
    made.close()
