"""Why buffers are lost where it is not known which there were."""

from typing import Any


class AllLost(dict[int, str]):
    """Says the same of every buffer."""

    def __init__(self, why: str) -> None:
        super().__init__()
        self._why = why

    def __contains__(self, _: object) -> bool:
        return True

    def __missing__(self, _: int) -> str:
        return self._why

    def get(self, _: int, __: Any = None) -> str:
        """Return why a buffer is lost."""
        return self._why
