"""What tests of finalizers share: one that acts, in the middle of a call, within some time."""

import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest

WAIT = 30.0


class Finalized:
    """Does something when it is collected."""

    def __init__(self, deed: Callable[[], Any]) -> None:
        self.me, self._deed = self, deed

    def __del__(self) -> None:
        self._deed()


def in_time(deed: Callable[[], Any]) -> Any:
    """Return what it returns, on a thread that a deadlock may keep."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(deed()), daemon=True)
    thread.start()
    thread.join(WAIT)
    assert found, "it never came back"
    return found[0]


def collecting(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, deed: Callable[[], Any]
) -> None:
    """Have garbage collected in the next call of this, the finalizer of which acts."""
    called = getattr(owner, name)

    def collect(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(owner, name, called)
        Finalized(deed)
        gc.collect()
        return called(*arguments, **options)

    monkeypatch.setattr(owner, name, collect)
