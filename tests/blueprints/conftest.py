"""One device of every backend there is, for blueprints."""

from tests.contract.conftest import backend, device, pytest_generate_tests

__all__ = ["backend", "device", "pytest_generate_tests"]
