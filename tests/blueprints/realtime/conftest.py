"""A system of one device of every backend there is; simulations are its actors."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from accel_lab import Device, System
from tests.conftest import require


@pytest.fixture(scope="session")
def backend(request: pytest.FixtureRequest) -> str:
    """Name a backend that can run here and compile."""
    name: str = request.param
    reason = import_module(f"accel_lab.backends.{name}").available()
    if reason is not None:
        pytest.skip(f"{name}: {reason}")
    if name == "host":
        require("compiler")
    return name


@pytest.fixture(scope="session")
def shared(backend: str) -> Iterator[System]:
    """Open a system for tests that lose no context."""
    with System(backend, devices=1) as lab:
        yield lab
        lab.check()


@pytest.fixture(scope="session")
def device(shared: System) -> Device:
    return shared.devices[0]


@pytest.fixture(scope="module")
def spawn(shared: System) -> Iterator[Any]:
    """Spawn actors that stop with the module."""
    spawned = []

    def spawns(factory: Any) -> Any:
        spawned.append(shared.spawn(factory))
        return spawned[-1]

    yield spawns
    for actor in spawned:
        actor.stop()
