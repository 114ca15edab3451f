"""What a system is asked to have its messages followed by, and whether that can be.

Runs in the notebook's process.
"""

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any, Literal, get_args

from accel_lab.compute.message.validation import require_word
from accel_lab.display.install import pip_command
from accel_lab.errors import InvalidArgument, TelemetryUnavailable

Trace = Literal["nvtx", "cupti", "cupti-calls"]
_PACKAGES = {"nvtx": "nvtx", "cupti": "cupti-python", "cupti-calls": "cupti-python"}


def asked_for(
    trace: Trace | Iterable[Trace] | None, backend: str, module: Any, suspend_after_s: float | None
) -> tuple[Trace, ...]:
    """Return what follows, each once; `cupti-calls` brings `cupti`.

    Parameters:
        module: the backend's, which has `open_activity` where there is CUPTI.

    Raises:
        InvalidArgument: it is another word, or a device is to be suspended under CUPTI.
        TelemetryUnavailable: the backend has none, or the package is missing.
    """
    wanted = (trace,) if isinstance(trace, str) else tuple(trace or ())
    for one in wanted:
        require_word(one, "trace", get_args(Trace))
        if one != "nvtx" and not hasattr(module, "open_activity"):
            raise TelemetryUnavailable(
                f"the {backend} backend has no CUPTI, which records what NVIDIA's cards do; "
                'trace="nvtx" works here'
            )
        if find_spec(one.removesuffix("-calls")) is None:
            install = pip_command(f"install {_PACKAGES[one]}")
            raise TelemetryUnavailable(f"trace={one!r} needs {_PACKAGES[one]}: {install}")
    if "cupti-calls" in wanted:
        wanted = (*wanted, "cupti")
    if "cupti" in wanted and suspend_after_s is not None:
        raise InvalidArgument(f"suspend_after_s is {suspend_after_s:g}: {UNSUSPENDED}")
    return tuple(dict.fromkeys(wanted))


UNSUSPENDED = "a device that CUPTI records cannot be suspended, for its records would be lost"
