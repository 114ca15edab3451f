"""Actor systems with their thread: many senders, many systems, nothing left."""

import asyncio
import threading
import time

import pytest

from accel_lab.actor import events
from accel_lab.actor.actor import Actor, handles
from accel_lab.actor.message import Message
from accel_lab.actor.reply import Reply
from accel_lab.actor.system import ActorSystem
from accel_lab.errors import AccelError, ActorFailed, ActorStopped, QueueFull
from tests.actor.world import Add, Adder, Fail
from tests.held import NOTHING, held


class Hold(Message[None], frozen=True):
    """Keep the event loop busy until `go_on` is set."""

    busy: threading.Event
    go_on: threading.Event


class Holder(Adder):
    """An actor that breaks the rule not to block, so that tests know where it is."""

    @handles(Hold)
    def hold(self, message: Hold) -> None:
        message.busy.set()
        assert message.go_on.wait(20)


def test_each_of_many_senders_is_served_in_its_own_order() -> None:
    class Recorder(Actor):
        seen: dict[int, list[int]]

        def started(self) -> None:
            self.seen = {}

        @handles(Add)
        def add(self, message: Add) -> int:
            self.seen.setdefault(message.number // 1000, []).append(message.number % 1000)
            return len(self.seen[message.number // 1000])

    answers: dict[int, list[int]] = {}
    with ActorSystem() as system:
        ref = system.spawn(Recorder, capacity=4)

        def send(sender: int) -> None:
            replies = [ref.ask(Add(1000 * sender + n), timeout_s=20) for n in range(200)]
            answers[sender] = [reply.result(20) for reply in replies]

        threads = [threading.Thread(target=send, args=(sender,)) for sender in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert answers == {sender: list(range(1, 201)) for sender in range(4)}


def test_no_ask_hangs_while_the_actor_keeps_failing_and_the_system_closes() -> None:
    replies: list[Reply[int]] = []
    closing = threading.Event()
    with ActorSystem() as system:
        ref = system.spawn(Adder, capacity=64)

        def send() -> None:
            for number in range(300):
                if number % 100 == 50:
                    ref.tell(Fail(ValueError()), timeout_s=20)
                replies.append(ref.ask(Add(1), timeout_s=20))
                if number == 250:
                    closing.set()

        threads = [threading.Thread(target=send) for _ in range(3)]
        for thread in threads:
            thread.start()
        assert closing.wait(20)
    for thread in threads:
        thread.join(20)
    assert len(replies) == 900
    for reply in replies:
        kind: type
        try:
            kind = type(reply.result(10))
        except AccelError as error:
            kind = type(error)
        assert kind in {int, ActorStopped, ActorFailed}


async def test_ask_can_be_awaited_in_any_loop() -> None:
    with ActorSystem() as system:
        ref = system.spawn(Adder)
        assert await ref.ask(Add(1)) == 1
        replies = [ref.ask(Add(1)) for _ in range(10)]
        assert await asyncio.gather(*replies) == list(range(2, 12))
        with pytest.raises(ActorFailed):
            await ref.ask(Fail(KeyError("x")))


def test_sender_waits_for_room_up_to_its_deadline() -> None:
    with ActorSystem() as system:
        ref = system.spawn(Holder, capacity=1)
        busy, go_on = threading.Event(), threading.Event()
        ref.tell(Hold(busy, go_on))
        assert busy.wait(20)
        ref.tell(Add(1))
        with pytest.raises(QueueFull, match="1 of 1"):
            ref.tell(Add(1), timeout_s=0.01)
        sender = threading.Thread(target=ref.tell, args=(Add(1), 20))
        sender.start()
        go_on.set()
        sender.join(20)
        assert ref.ask(Add(0), timeout_s=20).result(20) == 2


def test_two_systems_share_nothing() -> None:
    with ActorSystem("one") as one, ActorSystem("two") as two:
        first, second = one.spawn(Adder, name="a"), two.spawn(Adder, name="a")
        assert (first.ask(Add(1)).result(10), second.ask(Add(5)).result(10)) == (1, 5)
        one.shutdown()
        assert not first.is_alive
        assert second.ask(Add(5)).result(10) == 10
        assert two.events.history(events.ActorStopped) == []


def test_nothing_is_left_after_shutdown() -> None:
    before = held()
    for _ in range(3):
        with ActorSystem() as system:
            system.spawn(Adder).ask(Add(1)).result(10)
    assert before.more() == NOTHING


def test_shutdown_past_a_stuck_handler_still_answers_what_is_queued() -> None:
    system = ActorSystem()
    ref = system.spawn(Holder)
    busy, go_on = threading.Event(), threading.Event()
    held = ref.ask(Hold(busy, go_on))
    queued = ref.ask(Add(1))
    assert busy.wait(20)
    with pytest.raises(TimeoutError, match="a handler of actors still runs"):
        system.shutdown(timeout_s=0.01)
    assert isinstance(queued.error, ActorStopped)
    go_on.set()
    assert held.result(20) is None
    system.shutdown()
    assert not system.event_loop.is_running


def test_ask_after_the_event_loop_was_stopped_under_the_system_is_answered() -> None:
    system = ActorSystem()
    ref = system.spawn(Adder)
    assert ref.ask(Add(1)).result(10) == 1
    system.event_loop.stop()
    assert isinstance(ref.ask(Add(1)).error, ActorStopped)
    system.shutdown()


def test_a_system_may_be_shut_down_by_one_of_its_actors() -> None:
    class End(Message[None], frozen=True):
        """Shut the system down."""

    class Ender(Actor):
        @handles(End)
        def end(self, message: End) -> None:
            del message
            system.shutdown()

    system = ActorSystem()
    assert system.spawn(Ender).ask(End()).result(10) is None
    deadline = time.monotonic() + 10
    while system.event_loop.is_running:
        assert time.monotonic() < deadline
