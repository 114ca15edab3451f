"""Fixtures of the actor floor."""

from collections.abc import Iterator

import pytest

from tests.actor.world import World


@pytest.fixture
def world() -> Iterator[World]:
    """Give a system that the test runs itself."""
    world = World()
    yield world
    world.close()
