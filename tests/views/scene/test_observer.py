"""Who looks at a system for its views: one, whoever asks first."""

import threading

import pytest

from accel_lab.views.scene import observer
from accel_lab.views.scene.gauges import Gauges
from tests.views.made_up import lab as made_up


def test_threads_that_come_at_once_get_the_same_observer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device gives each answer once: of two observers each would see a part of the work."""
    lab, found = made_up(1), list[observer.Observer]()
    both = threading.Barrier(2)

    class Slow(Gauges):
        def __init__(self) -> None:
            super().__init__()
            both.wait(10)

    monkeypatch.setattr(observer, "Gauges", Slow)
    threads = [
        threading.Thread(target=lambda: found.append(observer.observer_of(lab))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    first, second = found
    assert first is second is observer.observer_of(lab)
