"""The bounded mailbox."""

import threading

import pytest

from accel_lab.actor.mailbox import Mailbox
from accel_lab.errors import ActorStopped, QueueFull


def test_items_leave_in_the_order_they_came() -> None:
    box: Mailbox[int] = Mailbox(3)
    for item in (1, 2, 3):
        box.put(item)
    assert [box.take(), box.take(), box.take(), box.take()] == [1, 2, 3, None]


def test_full_mailbox_refuses_and_names_depth_and_capacity() -> None:
    box: Mailbox[int] = Mailbox(2, name="/a")
    box.put(1)
    box.put(2)
    with pytest.raises(QueueFull, match="/a has no room: 2 of 2 messages"):
        box.put(3)
    with pytest.raises(QueueFull, match=r"within 0.01 s"):
        box.put(3, 0.01)
    assert len(box) == 2


def test_put_waits_until_there_is_room() -> None:
    box: Mailbox[int] = Mailbox(1)
    box.put(1)
    threads = [threading.Thread(target=box.put, args=(n, 20.0)) for n in (2, 3, 4)]
    for thread in threads:
        thread.start()
    taken: set[int] = set()
    while len(taken) < 4:
        item = box.take()
        if item is not None:
            taken.add(item)
    for thread in threads:
        thread.join(20)
    assert taken == {1, 2, 3, 4}


def test_thread_that_must_not_wait_is_refused_at_once() -> None:
    box: Mailbox[int] = Mailbox(1, never_waits=lambda: True)
    box.put(1)
    with pytest.raises(QueueFull):
        box.put(2, 3600.0)


def test_closing_fails_whoever_waits_and_returns_what_was_queued() -> None:
    box: Mailbox[int] = Mailbox(1, name="/a")
    box.put(1)
    errors: list[Exception] = []

    def put() -> None:
        try:
            box.put(2, 20.0)
        except ActorStopped as error:
            errors.append(error)

    thread = threading.Thread(target=put)
    thread.start()
    while not box._putters:
        pass
    assert box.close() == [1]
    thread.join(20)
    assert len(errors) == 1
    with pytest.raises(ActorStopped, match="/a has stopped"):
        box.put(3)


def test_notice_of_the_system_gets_in_over_capacity() -> None:
    box: Mailbox[int] = Mailbox(1)
    box.put(1)
    box.put(2, over_capacity=True)
    assert len(box) == 2


def test_only_one_turn_is_handed_out_at_a_time() -> None:
    box: Mailbox[int] = Mailbox(5)
    assert box.put(1)
    assert not box.put(2)
    assert not box.claim()
    box.take()
    assert box.end_turn(again=True)
    assert not box.claim()
    box.take()
    assert not box.end_turn(again=True)
    assert box.put(3)
    assert not box.end_turn(again=False)
    assert box.claim()
