"""A stand-in for the package `nvtx`: writes down what it is told, a line each."""

import json
import os
import threading
from typing import Any

TOLD = "ACCEL_LAB_TEST_NVTX"


class Domain:
    """A domain, whose ranges are lines of a file."""

    def __init__(self, name: str) -> None:
        self.name = name

    def get_event_attributes(self, *, message: str, payload: Any) -> dict[str, Any]:
        """Return what a range is to say."""
        return {"name": message, **dict(zip(payload.dtype.names, payload.item(), strict=True))}

    def push_range(self, attributes: dict[str, Any]) -> None:
        """Begin a range."""
        self._write({"does": "push", **attributes})

    def pop_range(self) -> None:
        """End one."""
        self._write({"does": "pop"})

    def _write(self, told: dict[str, Any]) -> None:
        thread = threading.get_ident()
        line = json.dumps({"pid": os.getpid(), "thread": thread, "domain": self.name, **told})
        with open(os.environ[TOLD], "a") as file:  # noqa: PTH123 - one write, of a line
            file.write(line + "\n")


def get_domain(name: str) -> Domain:
    """Return a domain."""
    return Domain(name)
