"""One device of every backend there is; each contract test runs on all of them."""

import functools
import os
from collections.abc import Generator, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest
from hypothesis.errors import FailedHealthCheck, Unsatisfiable

from accel_lab.backends import listed
from accel_lab.compute.device import Device
from accel_lab.system import System
from tests.conftest import require
from tests.contract.on_wgpu import helped, is_refusal, is_refused, may_be_refused, runs_on_wgpu

_NOTHING: Any = SimpleNamespace(params={})
HERE = {Path(__file__).parents[1] / folder for folder in ("contract", "blueprints")}
"""The folders whose tests are for each backend."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on every backend; on wgpu, which compiles long, what is chosen for it."""
    if "backend" not in metafunc.fixturenames:
        return
    chosen = runs_on_wgpu(Path(metafunc.module.__file__ or "").name, metafunc.function.__name__)
    names = [name for name in listed() if name != "wgpu" or chosen]
    metafunc.parametrize("backend", names, indirect=True, scope="session")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what asks wgpu for what its table lacks.

    A test for a backend that cannot run here is skipped with the reason for one set of its other
    parameters, and not for thousands.
    """
    seen: set[tuple[str, str]] = set()
    refused = []
    for one in items:
        params = getattr(one, "callspec", _NOTHING).params
        name = params.get("backend", "") if HERE.intersection(one.path.parents) else ""
        again = (name, one.nodeid.partition("[")[0])
        if is_refused(one.path.name, params) or (again in seen and _cannot_run(name)):
            refused.append(one)
        elif name:
            seen.add(again)
    if refused:
        left = {*map(id, refused)}
        items[:] = [one for one in items if id(one) not in left]
        config.hook.pytest_deselected(items=refused)


@functools.cache
def _cannot_run(name: str) -> bool:
    """Return whether a backend cannot run here, and nobody has promised that it does."""
    promised = os.environ.get("ACCEL_LAB_REQUIRE", "").split(",")
    return (
        name not in promised and import_module(f"accel_lab.backends.{name}").available() is not None
    )


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Skip what wgpu refuses; of the examples that Hypothesis draws those are left out."""
    of = getattr(getattr(pyfuncitem, "callspec", _NOTHING), "params", {}).get("backend")
    if of != "wgpu" or not may_be_refused(pyfuncitem.path.name, pyfuncitem.function.__name__):
        return (yield)
    handle = getattr(pyfuncitem.obj, "hypothesis", None)
    drawn = handle and handle.inner_test
    refused: list[Exception] = []
    if handle:
        handle.inner_test = _without_refusals(drawn, refused)
    try:
        return (yield)
    except Exception as error:
        nothing_left = refused and isinstance(error, FailedHealthCheck | Unsatisfiable)
        if nothing_left or is_refusal(error):
            pytest.skip(f"wgpu: {error}")
        raise
    finally:
        if handle:
            handle.inner_test = drawn


def _without_refusals(test: Any, refused: list[Exception]) -> Any:
    """Have Hypothesis draw another example in place of each that was refused, which is noted."""

    @functools.wraps(test)
    def tried(*args: Any, **kwargs: Any) -> Any:
        try:
            return test(*args, **kwargs)
        except Exception as error:
            if is_refusal(error):
                refused.append(error)
                hypothesis.reject()
            raise

    return tried


@pytest.fixture(scope="session")
def backend(request: pytest.FixtureRequest) -> Any:
    """Import a backend; skip with its reason where it cannot run, or fail if it was promised."""
    module = import_module(f"accel_lab.backends.{request.param}")
    reason = module.available()
    if reason is not None:
        if request.param in os.environ.get("ACCEL_LAB_REQUIRE", "").split(","):
            pytest.fail(f"ACCEL_LAB_REQUIRE names {request.param}: {reason}", pytrace=False)
        pytest.skip(f"{request.param}: {reason}")
    return module


@pytest.fixture(scope="session")
def support(backend: Any) -> Mapping[str, frozenset[str]]:
    """Give the backend's table of (operation, dtype)."""
    table: Mapping[str, frozenset[str]] = backend.SUPPORT
    return table


@pytest.fixture(scope="session")
def device(backend: Any) -> Iterator[Device]:
    """Open a system with one device; what failed unnoticed in it fails the last test."""
    name = backend.__name__.rpartition(".")[2]
    with System(name, devices=1, fallback=helped(name)) as lab:
        yield lab.devices[0]
        try:
            lab.check()
        except Exception as error:
            if lab.backend != "wgpu" or not is_refusal(error):
                raise


@pytest.fixture(scope="session")
def compiling(device: Device) -> None:
    """Require what compiles kernels: the system's C++ compiler, if the device is the host."""
    if device.name.startswith("cpu"):
        require("compiler")
