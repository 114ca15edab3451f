"""The event stream: order, filters, isolation of listeners, honest bounds."""

import asyncio
import gc
import threading
import time
from typing import ClassVar

import pytest

from accel_lab.actor.events import ActorStarted, ActorStopped, Event, EventStream


class Pulse(Event, frozen=True):
    is_frequent: ClassVar[bool] = True
    number: int


class Beat(Event, frozen=True):
    """Comes too often."""

    is_frequent: ClassVar[bool] = True
    number: int


class Tick(Event, frozen=True):
    """A numbered event."""

    number: int


class Tock(Event, frozen=True):
    """Another kind."""


def test_history_keeps_order_and_filters_by_type() -> None:
    stream = EventStream()
    first, second, third = Tick(1), Tock(), Tick(2)
    for event in (first, second, third):
        stream.publish(event)
    assert stream.history() == [first, second, third]
    assert stream.history(Tick) == [first, third]
    assert stream.history(Tick, Tock) == [first, second, third]


def test_history_is_bounded_and_says_what_it_dropped() -> None:
    stream = EventStream(capacity=3)
    assert (stream.published, stream.dropped) == (0, 0)
    for number in range(10):
        stream.publish(Tick(number))
    assert [tick.number for tick in stream.history(Tick)] == [7, 8, 9]
    assert (stream.published, stream.dropped) == (10, 7)


def test_a_stream_says_how_many_of_what_it_holds() -> None:
    stream = EventStream(capacity=4)
    assert repr(stream) == "<EventStream of 0 events; 0 forgotten>"
    stream.publish(Tock())
    assert repr(stream) == "<EventStream of 1 event: 1 Tock; 0 forgotten>"
    for number in range(4):
        stream.publish(Tick(number))
    stream.publish(Tock())
    assert repr(stream) == "<EventStream of 4 events: 3 Tick, 1 Tock; 2 forgotten>"


def test_no_event_is_lost_when_threads_publish_together() -> None:
    stream = EventStream(capacity=100)
    heard: list[Event] = []
    stream.subscribe(heard.append)

    def publish() -> None:
        for number in range(500):
            stream.publish(Tick(number))

    threads = [threading.Thread(target=publish) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(heard) == 2000
    assert stream.dropped == 1900


def test_a_follower_has_each_event_once_whenever_it_comes() -> None:
    stream, count = EventStream(capacity=100_000), 30_000
    followers: list[tuple[list[Tick], list[Tick]]] = []

    def publish() -> None:
        for number in range(count):
            stream.publish(Tick(number))

    publisher = threading.Thread(target=publish)
    publisher.start()
    while publisher.is_alive() and len(followers) < 200:
        heard: list[Tick] = []
        before, forgotten, subscription = stream.follow(heard.append, Tick)
        assert (forgotten, subscription.closed) == (0, False)
        followers.append((before, heard))
    publisher.join()
    for before, heard in followers:
        assert [tick.number for tick in (*before, *heard)] == list(range(count))


def test_what_is_frequent_forgets_itself_alone() -> None:
    stream = EventStream(capacity=20)
    stream.publish(Tick(number=1))
    for number in range(100):
        stream.publish(Beat(number=number))
    stream.publish(Tick(number=2))
    assert [repr(event).partition(", at")[0] for event in stream.history()] == [
        "Tick(number=1",
        "Beat(number=98",
        "Beat(number=99",
        "Tick(number=2",
    ]
    assert (stream.published, stream.dropped) == (102, 98)
    stream.publish(Pulse(number=1))
    assert len(stream.history(Beat)) == 2
    assert len(stream.history(Pulse)) == 1


def test_a_follower_is_told_what_is_forgotten() -> None:
    stream = EventStream(capacity=3)
    for number in range(5):
        stream.publish(Tick(number))
    stream.publish(Tock())
    heard: list[Tick] = []
    before, forgotten, subscription = stream.follow(heard.append, Tick)
    stream.publish(Tock())
    stream.publish(Tick(5))
    subscription.close()
    stream.publish(Tick(6))
    assert ([tick.number for tick in before], forgotten) == ([3, 4], 3)
    assert [tick.number for tick in heard] == [5]


def test_subscriber_hears_its_types_until_closed() -> None:
    stream = EventStream()
    heard: list[Tick] = []
    with stream.subscribe(heard.append, Tick):
        stream.publish(Tick(1))
        stream.publish(Tock())
    stream.publish(Tick(2))
    assert [tick.number for tick in heard] == [1]


def test_raising_subscriber_is_a_warning_and_stops_nobody() -> None:
    stream = EventStream()
    heard: list[Event] = []

    def fail(event: Event) -> None:
        raise ZeroDivisionError(str(event))

    stream.subscribe(fail)
    stream.subscribe(heard.append)
    with pytest.warns(RuntimeWarning, match="ZeroDivisionError"):
        stream.publish(Tick(1))
    assert len(heard) == 1


@pytest.mark.filterwarnings("error")
def test_raising_subscriber_cannot_fail_a_publisher_where_warnings_are_errors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = EventStream()

    def fail(event: Event) -> None:
        raise ZeroDivisionError(str(event))

    stream.subscribe(fail)
    stream.publish(Tick(1))
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_wait_for_returns_an_event_published_by_another_thread() -> None:
    stream = EventStream()
    subscribed = threading.Event()

    def wanted(event: Event) -> bool:
        return isinstance(event, Tick) and event.number == 2

    def publish() -> None:
        subscribed.wait(5)
        stream.publish(Tick(1))
        stream.publish(Tick(2))

    thread = threading.Thread(target=publish)
    thread.start()
    mark = stream.published
    subscribed.set()
    assert stream.wait_for(wanted, 5, since=mark) == stream.history(Tick)[-1]
    thread.join()


def test_wait_for_counts_what_happened_since_the_mark_and_nothing_older() -> None:
    stream = EventStream()
    stream.publish(Tick(1))
    mark = stream.published
    with pytest.raises(TimeoutError, match="Tick within 0 s"):
        stream.wait_for(Tick, 0, since=mark)
    stream.publish(Tick(2))
    assert stream.wait_for(Tick, 0, since=mark).number == 2
    with pytest.raises(TimeoutError):
        stream.wait_for(Tick, 0)


def test_listener_yields_events_of_another_thread_in_order() -> None:
    stream = EventStream()

    def publish() -> None:
        for number in range(50):
            stream.publish(Tick(number))

    async def collect() -> list[int]:
        async with stream.listen(Tick) as listener:
            thread = threading.Thread(target=publish)
            thread.start()
            numbers = []
            async for tick in listener:
                numbers.append(tick.number)
                if tick.number == 49:
                    break
            thread.join()
            return numbers

    assert asyncio.run(asyncio.wait_for(collect(), 10)) == list(range(50))


def test_slow_listener_drops_the_oldest_and_counts_them() -> None:
    stream = EventStream()

    async def collect() -> tuple[list[int], int]:
        listener = stream.listen(Tick, capacity=2)
        for number in range(5):
            stream.publish(Tick(number))
        listener.close()
        return [tick.number async for tick in listener], listener.dropped

    assert asyncio.run(collect()) == ([3, 4], 3)


def test_closing_the_stream_ends_a_waiting_listener() -> None:
    stream = EventStream()

    async def collect() -> list[Event]:
        listener = stream.listen()
        task = asyncio.ensure_future(anext(listener, None))
        await asyncio.sleep(0)
        stream.close()
        assert await asyncio.wait_for(task, 10) is None
        return [event async for event in listener]

    assert asyncio.run(collect()) == []


def test_second_task_in_one_listener_is_refused() -> None:
    stream = EventStream()

    async def collect() -> None:
        listener = stream.listen()
        task = asyncio.ensure_future(anext(listener, None))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another task"):
            await anext(listener)
        listener.close()
        await task

    asyncio.run(collect())


def test_forgotten_listener_leaves_the_stream() -> None:
    stream = EventStream()
    listener = stream.listen()
    subscribers = stream._subscriptions
    assert len(subscribers) == 1
    del listener, subscribers
    until = time.monotonic() + 10
    # A thread of another test may hold it for a moment: one that looks through all objects.
    while stream._subscriptions and time.monotonic() < until:
        gc.collect()
        time.sleep(0.01)
    assert stream._subscriptions == ()


def test_listener_outlives_the_loop_it_waited_in() -> None:
    stream = EventStream()
    listener = stream.listen(Tick)

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(listener), 0.001)

    asyncio.run(give_up())
    stream.publish(Tick(1))

    async def read() -> int:
        return (await anext(listener)).number

    assert asyncio.run(read()) == 1


def test_actor_events_say_where_and_why() -> None:
    cause = ValueError("x")
    assert ActorStarted("/a").path == "/a"
    assert ActorStopped("/a", cause).cause is cause
    assert ActorStarted("/a").at > 1e9
