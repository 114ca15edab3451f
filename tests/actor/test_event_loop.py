"""The event loop: order, timers, descriptors, wake-ups, and nothing left behind."""

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from accel_lab.actor.clock import FakeClock
from accel_lab.actor.event_loop import EventLoop
from tests.held import NOTHING, held


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def manual(clock: FakeClock) -> Iterator[EventLoop]:
    """Give an event loop that the test itself runs."""
    event_loop = EventLoop("manual", clock)
    yield event_loop
    event_loop.stop()


@pytest.fixture
def threaded() -> Iterator[EventLoop]:
    """Give an event loop with its thread."""
    event_loop = EventLoop("threaded")
    event_loop.start()
    yield event_loop
    event_loop.stop()


def flush(event_loop: EventLoop) -> None:
    """Wait until the thread has run what was queued."""
    done = threading.Event()
    event_loop.call_soon(done.set)
    assert done.wait(10)


def test_calls_run_in_order_and_calls_they_queue_run_after(manual: EventLoop) -> None:
    ran: list[str] = []

    def first() -> None:
        ran.append("a")
        manual.call_soon(ran.append, "c")

    manual.call_soon(first)
    manual.call_soon(ran.append, "b")
    assert ran == []
    assert manual.run_pending() == 3
    assert ran == ["a", "b", "c"]
    assert manual.run_pending() == 0


def test_timers_fire_when_due_earliest_first(manual: EventLoop, clock: FakeClock) -> None:
    ran: list[str] = []
    for delay_s, name in ((3.0, "third"), (1.0, "first"), (1.0, "second"), (9.0, "late")):
        manual.call_later(delay_s, ran.append, name)
    manual.run_pending()
    assert ran == []
    clock.advance(3.0)
    manual.run_pending()
    assert ran == ["first", "second", "third"]


def test_cancelled_timer_does_not_run_even_when_already_due(
    manual: EventLoop, clock: FakeClock
) -> None:
    ran: list[str] = []
    second = manual.call_later(1.0, ran.append, "second")
    first = manual.call_later(0.5, second.cancel)
    manual.run_pending()
    clock.advance(2.0)
    manual.run_pending()
    assert ran == []
    assert not first.pending
    assert not second.pending


def test_cancelled_timers_do_not_pile_up(manual: EventLoop) -> None:
    for _ in range(1000):
        manual.call_later(1000.0, print).cancel()
    manual.run_pending()
    assert len(manual._timers) <= 64


def test_raising_callback_is_reported_and_the_next_one_runs(clock: FakeClock) -> None:
    errors: list[BaseException] = []
    ran: list[int] = []
    event_loop = EventLoop("d", clock, on_error=errors.append)
    event_loop.call_soon(lambda: 1 / 0)
    event_loop.call_soon(exit, 3)
    event_loop.call_soon(ran.append, 1)
    event_loop.run_pending()
    assert [type(error) for error in errors] == [ZeroDivisionError, SystemExit]
    assert ran == [1]
    event_loop.stop()


def test_escaped_error_is_a_warning_by_default(manual: EventLoop) -> None:
    manual.call_soon(lambda: 1 / 0)
    with pytest.warns(RuntimeWarning, match="ZeroDivisionError"):
        manual.run_pending()


def test_readable_descriptor_calls_its_reader_until_removed(manual: EventLoop) -> None:
    left, right = socket.socketpair()
    with left, right:
        got: list[bytes] = []
        manual.add_reader(left.fileno(), lambda: got.append(left.recv(1)))
        right.send(b"ab")
        manual.run_pending()
        assert got == [b"a", b"b"]
        manual.remove_reader(left.fileno())
        right.send(b"c")
        manual.run_pending()
        assert got == [b"a", b"b"]


def test_paused_reader_is_called_only_after_resume(manual: EventLoop) -> None:
    left, right = socket.socketpair()
    with left, right:
        got: list[bytes] = []
        manual.add_reader(left.fileno(), lambda: got.append(left.recv(9)))
        manual.pause_reader(left.fileno())
        right.send(b"x")
        manual.run_pending()
        assert got == []
        manual.resume_reader(left.fileno())
        manual.run_pending()
        assert got == [b"x"]
        manual.remove_reader(left.fileno())


def test_hang_up_of_a_paused_descriptor_does_not_spin_and_is_seen_after_resume(
    manual: EventLoop,
) -> None:
    left, right = socket.socketpair()
    with left:
        got: list[bytes] = []

        def read() -> None:
            got.append(left.recv(9))
            manual.remove_reader(left.fileno())

        manual.add_reader(left.fileno(), read)
        manual.pause_reader(left.fileno())
        right.close()
        manual._serve(0.0)
        assert manual._epoll is not None
        assert manual._epoll.poll(0) == []
        assert got == []
        manual.resume_reader(left.fileno())
        manual.run_pending()
        assert got == [b""]


def test_no_wake_up_is_lost_between_four_threads(threaded: EventLoop) -> None:
    ran: list[int] = []
    asleep = threading.Barrier(4)

    def hand_in() -> None:
        asleep.wait(10)
        for number in range(500):
            threaded.call_soon(ran.append, number)
            if number % 100 == 0:
                flush(threaded)

    threads = [threading.Thread(target=hand_in) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    flush(threaded)
    assert len(ran) == 2000


def test_an_awake_event_loop_is_handed_work_without_a_system_call(threaded: EventLoop) -> None:
    busy, go_on = threading.Event(), threading.Event()

    def work() -> None:
        busy.set()
        go_on.wait(10)

    threaded.call_soon(work)
    assert busy.wait(10)
    for _ in range(10):
        threaded.call_soon(int)
    with pytest.raises(BlockingIOError):  # nobody rang
        os.eventfd_read(threaded._bell)
    go_on.set()
    flush(threaded)


def test_callbacks_know_that_they_are_on_the_event_loop(threaded: EventLoop) -> None:
    seen: list[bool] = []
    threaded.call_soon(lambda: seen.append(threaded.is_current()))
    flush(threaded)
    assert seen == [True]
    assert not threaded.is_current()


def test_threaded_timer_runs_at_its_time(threaded: EventLoop) -> None:
    done = threading.Event()
    asked = threaded.clock.now()
    due: list[float] = []

    def fire() -> None:
        due.append(threaded.clock.now())
        done.set()

    threaded.call_later(0.02, fire)
    assert done.wait(10)
    assert due[0] - asked >= 0.02


def test_threaded_timer_over_a_fake_clock_waits_for_the_test() -> None:
    clock = FakeClock()
    event_loop = EventLoop("d", clock)
    event_loop.start()
    done = threading.Event()
    event_loop.call_later(60.0, done.set)
    flush(event_loop)
    assert not done.is_set()
    clock.advance(60.0)
    assert done.wait(10)
    event_loop.stop()


def test_stop_runs_what_was_queued_and_refuses_what_comes_later() -> None:
    event_loop = EventLoop("d")
    ran: list[int] = []
    assert event_loop.call_soon(ran.append, 1)
    event_loop.start()
    event_loop.stop()
    event_loop.stop()
    assert ran == [1]
    assert not event_loop.call_soon(ran.append, 2)
    assert ran == [1]
    with pytest.raises(RuntimeError, match="started before"):
        event_loop.start()


def test_stop_from_a_callback_ends_the_thread() -> None:
    event_loop = EventLoop("d")
    event_loop.start()
    thread = event_loop._thread
    assert thread is not None
    event_loop.call_soon(event_loop.stop)
    thread.join(10)
    assert not thread.is_alive()
    assert event_loop._epoll is None


def test_nothing_is_left_after_stop() -> None:
    before = held()
    left, right = socket.socketpair()
    event_loops = [EventLoop("thread"), EventLoop("manual", FakeClock())]
    event_loops[0].start()
    for event_loop in event_loops:
        event_loop.add_reader(left.fileno(), print)
        event_loop.call_later(100.0, print)
        event_loop.stop()
    left.close()
    right.close()
    assert before.more() == NOTHING


def test_run_pending_is_refused_beside_a_thread(threaded: EventLoop) -> None:
    with pytest.raises(RuntimeError, match="already run"):
        threaded.run_pending()


def test_short_sleeps_are_measured_in_microseconds() -> None:
    """epoll alone would make whole milliseconds of them: 1.2 ms would be 2."""
    loop = EventLoop("short")
    loop.start()
    late = []
    for _ in range(30):
        fired = threading.Event()
        begun = time.perf_counter()
        loop.call_later(0.0012, fired.set)
        assert fired.wait(20)
        late.append(time.perf_counter() - begun - 0.0012)
    loop.stop()
    assert min(late) >= 0
    assert min(late) < 0.0006


def test_the_next_timer_is_told(manual: EventLoop) -> None:
    assert manual.next_due() is None
    first = manual.call_later(1.0, list)
    manual.call_later(2.0, list)
    manual.run_pending()
    assert manual.next_due() == 1.0
    first.cancel()
    assert manual.next_due() == 2.0
