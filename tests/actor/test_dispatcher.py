"""The dispatcher: order, timers, descriptors, wake-ups, and nothing left behind."""

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from accel_lab.actor.clock import FakeClock
from accel_lab.actor.dispatcher import Dispatcher
from tests.held import NOTHING, held


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def manual(clock: FakeClock) -> Iterator[Dispatcher]:
    """Give a dispatcher that the test itself runs."""
    dispatcher = Dispatcher("manual", clock)
    yield dispatcher
    dispatcher.stop()


@pytest.fixture
def threaded() -> Iterator[Dispatcher]:
    """Give a dispatcher with its thread."""
    dispatcher = Dispatcher("threaded")
    dispatcher.start()
    yield dispatcher
    dispatcher.stop()


def flush(dispatcher: Dispatcher) -> None:
    """Wait until the thread has run what was queued."""
    done = threading.Event()
    dispatcher.call_soon(done.set)
    assert done.wait(10)


def test_calls_run_in_order_and_calls_they_queue_run_after(manual: Dispatcher) -> None:
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


def test_timers_fire_when_due_earliest_first(manual: Dispatcher, clock: FakeClock) -> None:
    ran: list[str] = []
    for delay_s, name in ((3.0, "third"), (1.0, "first"), (1.0, "second"), (9.0, "late")):
        manual.call_later(delay_s, ran.append, name)
    manual.run_pending()
    assert ran == []
    clock.advance(3.0)
    manual.run_pending()
    assert ran == ["first", "second", "third"]


def test_cancelled_timer_does_not_run_even_when_already_due(
    manual: Dispatcher, clock: FakeClock
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


def test_cancelled_timers_do_not_pile_up(manual: Dispatcher) -> None:
    for _ in range(1000):
        manual.call_later(1000.0, print).cancel()
    manual.run_pending()
    assert len(manual._timers) <= 64


def test_raising_callback_is_reported_and_the_next_one_runs(clock: FakeClock) -> None:
    errors: list[BaseException] = []
    ran: list[int] = []
    dispatcher = Dispatcher("d", clock, on_error=errors.append)
    dispatcher.call_soon(lambda: 1 / 0)
    dispatcher.call_soon(exit, 3)
    dispatcher.call_soon(ran.append, 1)
    dispatcher.run_pending()
    assert [type(error) for error in errors] == [ZeroDivisionError, SystemExit]
    assert ran == [1]
    dispatcher.stop()


def test_escaped_error_is_a_warning_by_default(manual: Dispatcher) -> None:
    manual.call_soon(lambda: 1 / 0)
    with pytest.warns(RuntimeWarning, match="ZeroDivisionError"):
        manual.run_pending()


def test_readable_descriptor_calls_its_reader_until_removed(manual: Dispatcher) -> None:
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


def test_paused_reader_is_called_only_after_resume(manual: Dispatcher) -> None:
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
    manual: Dispatcher,
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


def test_no_wake_up_is_lost_between_four_threads(threaded: Dispatcher) -> None:
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


def test_an_awake_dispatcher_is_handed_work_without_a_system_call(threaded: Dispatcher) -> None:
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


def test_callbacks_know_that_they_are_on_the_dispatcher(threaded: Dispatcher) -> None:
    seen: list[bool] = []
    threaded.call_soon(lambda: seen.append(threaded.is_current()))
    flush(threaded)
    assert seen == [True]
    assert not threaded.is_current()


def test_threaded_timer_runs_at_its_time(threaded: Dispatcher) -> None:
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
    dispatcher = Dispatcher("d", clock)
    dispatcher.start()
    done = threading.Event()
    dispatcher.call_later(60.0, done.set)
    flush(dispatcher)
    assert not done.is_set()
    clock.advance(60.0)
    assert done.wait(10)
    dispatcher.stop()


def test_stop_runs_what_was_queued_and_refuses_what_comes_later() -> None:
    dispatcher = Dispatcher("d")
    ran: list[int] = []
    assert dispatcher.call_soon(ran.append, 1)
    dispatcher.start()
    dispatcher.stop()
    dispatcher.stop()
    assert ran == [1]
    assert not dispatcher.call_soon(ran.append, 2)
    assert ran == [1]
    with pytest.raises(RuntimeError, match="started before"):
        dispatcher.start()


def test_stop_from_a_callback_ends_the_thread() -> None:
    dispatcher = Dispatcher("d")
    dispatcher.start()
    thread = dispatcher._thread
    assert thread is not None
    dispatcher.call_soon(dispatcher.stop)
    thread.join(10)
    assert not thread.is_alive()
    assert dispatcher._epoll is None


def test_nothing_is_left_after_stop() -> None:
    before = held()
    left, right = socket.socketpair()
    dispatchers = [Dispatcher("thread"), Dispatcher("manual", FakeClock())]
    dispatchers[0].start()
    for dispatcher in dispatchers:
        dispatcher.add_reader(left.fileno(), print)
        dispatcher.call_later(100.0, print)
        dispatcher.stop()
    left.close()
    right.close()
    assert before.more() == NOTHING


def test_run_pending_is_refused_beside_a_thread(threaded: Dispatcher) -> None:
    with pytest.raises(RuntimeError, match="already run"):
        threaded.run_pending()
