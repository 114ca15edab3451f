"""What a backend has for caches, beside what layers need."""

from typing import Any, Protocol

from accel_lab.libraries.dnn.evaluation.kit import Kit


class CacheKit(Kit, Protocol):
    """A backend's arrays."""

    def storage(self, dtype: str) -> Any:
        """Return the dtype of the arrays that buffers of this dtype are."""

    def fetched(self, x: Any) -> Any:
        """Return an array of the device as NumPy's; waits for it."""
