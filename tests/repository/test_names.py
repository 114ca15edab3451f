"""Every name that a module promises is there."""

from collections.abc import Iterator
from importlib import import_module

import pytest

from accel_lab import default
from tests.project import PACKAGE

# The CUDA backend imports CUDA's packages, which are absent here; test_floors reads it instead.
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if not path.is_relative_to(PACKAGE / "backends" / "cuda")
)


@pytest.fixture
def closed() -> Iterator[None]:
    """Close what the name `gpu` opens."""
    yield
    default._close()


def test_promised_names_are_real_and_named_once(closed: None) -> None:
    wrong: dict[str, list[str]] = {}
    for name in MODULES:
        module = import_module(name)
        promised: list[str] = getattr(module, "__all__", [])
        absent = [one for one in promised if not hasattr(module, one)]
        if absent or len(set(promised)) < len(promised):
            wrong[name] = absent or promised
    assert wrong == {}
