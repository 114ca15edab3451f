"""A small arena, and the sizes in which its tests count."""

from collections.abc import Iterator

import pytest

from accel_lab.compute.arena.arena import Arena

KIB = 1 << 10
MIB = 1 << 20
SEGMENT = 64 * KIB


@pytest.fixture
def arena() -> Iterator[Arena]:
    arena = Arena(MIB, segment_bytes=SEGMENT)
    yield arena
    arena.close()
