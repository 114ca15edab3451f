"""NVTX ranges of messages, for Nsight Systems and whatever else reads them.

Each library has a domain, `accel_lab.blas`, and each message a range of its name. The payload is a
structure of two integers, `message` and `cell`. Where no tool is attached NVTX does nothing.
"""

import threading
from typing import Any

import numpy as np

PAYLOAD = np.dtype([("message", np.int64), ("cell", np.int64)])


class NvtxRanges:
    """Puts ranges; raises ImportError where the package `nvtx` is not installed."""

    def __init__(self) -> None:
        import nvtx

        self._get_domain = nvtx.get_domain
        self._domains: dict[str, Any] = {}
        self._open = threading.local()  # the domains of this thread's open ranges

    def begin(self, library: str, name: str, seq: int, cell: int) -> None:
        """Push a range."""
        domain = self._domains.get(library)
        if domain is None:
            domain = self._domains[library] = self._get_domain(f"accel_lab.{library}")
        payload = np.array((seq, cell), PAYLOAD)
        domain.push_range(domain.get_event_attributes(message=name, payload=payload))
        vars(self._open).setdefault("domains", []).append(domain)

    def end(self) -> None:
        """Pop it."""
        self._open.domains.pop().pop_range()
