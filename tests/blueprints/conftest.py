"""One device of every backend there is, for blueprints."""

from tests.contract.conftest import backend as backend
from tests.contract.conftest import device as device
