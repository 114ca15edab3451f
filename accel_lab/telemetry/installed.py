"""The packages of the `observability` extra, which are imported when they are first needed."""

from importlib.util import find_spec

from accel_lab.display.install import pip_install
from accel_lab.errors import TelemetryUnavailable


def require(what: str, *modules: str) -> None:
    """Refuse what needs a package that is not installed.

    Raises:
        TelemetryUnavailable: one of the modules is missing; says how to install it.
    """
    for module in modules:
        if find_spec(module.partition(".")[0]) is None:
            raise TelemetryUnavailable(
                f"{what} needs {module}. Install it with: {pip_install('observability')}"
            )
