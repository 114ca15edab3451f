"""The thread that lets views send their state."""

import gc
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accel_lab.views.widget import publisher as module
from accel_lab.views.widget.publisher import IDLE_AFTER_S, Place, Publisher, interval_s

ROOT = Path(__file__).parents[3]
WAIT_S = 10.0


class Probe:
    """A view that tells when it is sampled."""

    def __init__(self, sample: Callable[[], bool] = lambda: True) -> None:
        self.ended = False
        self.samples: queue.SimpleQueue[float] = queue.SimpleQueue()
        self.threads: set[threading.Thread] = set()
        self._sample = sample

    def publish(self, at: float) -> bool:
        self.threads.add(threading.current_thread())
        self.samples.put(at)
        return self._sample()


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    publisher = Publisher()
    yield publisher
    publisher.close(WAIT_S)
    assert publisher._thread is None


def end_of(publisher: Publisher) -> bool:
    """Wait for the publisher's thread to end."""
    if (thread := publisher._thread) is not None:
        thread.join(WAIT_S)
    return publisher._thread is None


def test_a_changing_view_is_sampled_at_its_rate_and_at_most_thirty_times_a_second() -> None:
    assert interval_s(10, 0.0, 1) == pytest.approx(0.1)
    assert interval_s(1000, 0.0, 1) == pytest.approx(1 / 30)


def test_an_idle_view_is_sampled_twice_a_second_or_at_its_own_slower_rate() -> None:
    assert interval_s(10, IDLE_AFTER_S, 1) == pytest.approx(0.5)
    assert interval_s(0.2, IDLE_AFTER_S, 1) == pytest.approx(5)


def test_many_views_share_fifty_samples_a_second() -> None:
    assert interval_s(30, 0.0, 25) == pytest.approx(0.5)


def test_a_nudge_ends_idleness_but_not_the_rate() -> None:
    probe = Probe()
    place = Place(Publisher(), probe, 10)
    place.nudged, place.sampled, place.changed = False, 100.0, 90.0
    assert place.due(100.0, 1) == pytest.approx(100.5)
    place.nudge()
    assert place.due(100.0, 1) == pytest.approx(100.1)


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have an idle view's next turn come when the test has long ended."""
    monkeypatch.setattr(module, "IDLE_HZ", 0.001)


def test_a_nudged_view_is_sampled_before_its_idle_turn(far: None, publisher: Publisher) -> None:
    probe = Probe(lambda: False)
    place = publisher.add(probe, rate_hz=30)
    probe.samples.get(timeout=WAIT_S)
    first = place.sampled
    place.nudge()
    probe.samples.get(timeout=WAIT_S)
    assert place.sampled - first > 1 / 31


def test_a_sample_answers_the_nudges_before_it_and_not_those_during_it(
    far: None, publisher: Publisher
) -> None:
    nudged: list[bool] = []

    def sample() -> bool:
        nudged.append(place.nudged)
        if len(nudged) == 1:
            place.nudge()
        return False

    probe = Probe(sample)
    with publisher._lock:  # the thread waits until `place` has its name
        place = Place(publisher, probe, 30)
        publisher._places.append(place)
    publisher.add(Probe(lambda: False))
    probe.samples.get(timeout=WAIT_S)
    probe.samples.get(timeout=WAIT_S)
    publisher.close(WAIT_S)
    assert nudged == [False, False]
    assert place.nudged is False


def test_a_view_that_no_thread_can_be_had_for_is_not_in_the_way_of_the_next(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    refused, probe = Probe(), Probe()
    with monkeypatch.context() as scarce:
        scarce.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(RuntimeError, match="new thread"):
            publisher.add(refused)
    publisher.add(probe)
    probe.samples.get(timeout=WAIT_S)
    publisher.close(WAIT_S)
    assert refused.samples.empty()


def test_all_views_are_sampled_in_one_other_thread(publisher: Publisher) -> None:
    probes = [Probe() for _ in range(5)]
    for probe in probes:
        publisher.add(probe)
    for probe in probes:
        probe.samples.get(timeout=WAIT_S)
        probe.samples.get(timeout=WAIT_S)
    threads = set().union(*(probe.threads for probe in probes))
    assert len(threads) == 1
    assert threading.current_thread() not in threads


def test_the_thread_ends_with_the_last_view_and_starts_with_the_next(publisher: Publisher) -> None:
    for _ in range(2):
        probe = Probe()
        publisher.add(probe)
        probe.samples.get(timeout=WAIT_S)
        assert publisher._thread is not None
        probe.ended = True
        assert end_of(publisher)


def test_a_view_that_nobody_holds_is_let_go_at_once(publisher: Publisher) -> None:
    probe = Probe(lambda: False)
    samples = probe.samples
    place = publisher.add(probe, rate_hz=0.01)  # its next turn is far away
    samples.get(timeout=WAIT_S)
    assert publisher._thread is not None
    probe.threads.clear()
    del probe
    gc.collect()
    assert end_of(publisher)
    assert place.view() is None


def test_a_view_that_raises_is_warned_of_once_and_tried_again(publisher: Publisher) -> None:

    broken, well = Probe(lambda: 1 // 0 > 0), Probe()
    with pytest.warns(RuntimeWarning, match="Probe could not be updated") as warned:
        publish_twice(publisher, broken, well)
    assert len(warned) == 1


def publish_twice(publisher: Publisher, *probes: Probe) -> None:
    for probe in probes:
        publisher.add(probe)
    for probe in probes:
        probe.samples.get(timeout=WAIT_S)
        probe.samples.get(timeout=WAIT_S)
    publisher.close(WAIT_S)


def test_a_warning_that_is_an_error_does_not_end_the_thread(
    publisher: Publisher, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = Probe(lambda: 1 // 0 > 0)
    publish_twice(publisher, broken)
    assert capfd.readouterr().err.count("ZeroDivisionError") == 1


def test_a_rate_that_is_not_positive_is_refused() -> None:
    for rate_hz in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="positive rate"):
            Publisher().add(Probe(), rate_hz=rate_hz)


def test_a_forked_child_starts_over() -> None:
    program = """
import os
from accel_lab.views.widget.publisher import PUBLISHER
from tests.views.widget.test_publisher import Probe
probe = Probe()
PUBLISHER.add(probe)
probe.samples.get(timeout=10)
child = os.fork()
if child == 0:
    other = Probe()
    PUBLISHER.add(other)
    other.samples.get(timeout=10)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
