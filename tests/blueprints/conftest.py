"""One device of every backend there is, for blueprints."""

from tests.contract.conftest import backend, device

__all__ = ["backend", "device"]
