"""Actors: order, replies, restarts, names, death watch, dead letters."""

import weakref
from collections.abc import Callable
from typing import Any

import pytest

from accel_lab.actor import events
from accel_lab.actor.actor import Actor, ActorRef, Terminated, handles
from accel_lab.actor.cell import Cell
from accel_lab.actor.letter import Letter
from accel_lab.actor.message import Message
from accel_lab.actor.reply import Reply
from accel_lab.actor.supervision import Backoff, OneForOne
from accel_lab.errors import (
    AccelError,
    ActorError,
    ActorFailed,
    ActorStopped,
    Cancelled,
    ContextLost,
    Directive,
    InvalidArgument,
    LibraryError,
    NameTaken,
    QueueFull,
    SystemClosed,
)
from tests.actor.world import Add, Adder, Fail, Spawn, World


class Fatal(ActorError):
    """Stops the actor that raises it."""

    directive = Directive.STOP


class TooBig(ActorError):
    """Is the supervisor's failure."""

    directive = Directive.ESCALATE


class Later(Message[int], frozen=True):
    """Answer with `reply`."""

    reply: Reply[int]


class Watch(Message[None], frozen=True):
    """Watch, or no longer."""

    ref: ActorRef[Any]
    on: bool = True


class Do(Message[Any], frozen=True):
    """Run `what` with the actor and answer its value."""

    what: Callable[[Actor], Any]


class Handy(Adder):
    """Adds what the tests below need."""

    def __init__(self, diary: list[str] | None = None) -> None:
        super().__init__(diary)
        self.heard: list[Terminated] = []

    @handles(Later)
    def later(self, message: Later) -> Reply[int]:
        return message.reply

    @handles(Do)
    def do(self, message: Do) -> Any:
        return message.what(self)

    @handles(Watch)
    def watch(self, message: Watch) -> None:
        (self.context.watch if message.on else self.context.unwatch)(message.ref)

    @handles(Terminated)
    def terminated(self, message: Terminated) -> None:
        self.heard.append(message)


def test_message_type_handled_twice_is_an_error_of_the_class() -> None:
    with pytest.raises(TypeError, match="Twice handles Add twice: in add and in again"):

        class Twice(Adder):
            @handles(Add)
            def again(self, message: Add) -> int:
                return message.number


def test_handler_overridden_under_its_own_name_is_one_handler(world: World) -> None:
    class Double(Adder):
        @handles(Add)
        def add(self, message: Add) -> int:
            return 2 * message.number

    assert world.ask(world.system.spawn(Double), Add(4)) == 8


def test_messages_are_handled_one_by_one_in_order(world: World) -> None:
    ref = world.adder()
    replies = [ref.ask(Add(number)) for number in (1, 10, 100)]
    world.run()
    assert [reply.result(0) for reply in replies] == [1, 11, 111]


def test_turns_are_fair_between_actors(world: World) -> None:
    order: list[str] = []

    def act(actor: Actor) -> None:
        order.append(actor.context.self_ref.name)

    first, second = (world.system.spawn(Handy, name=name) for name in "ab")
    for _ in range(3):
        first.tell(Do(act))
    for _ in range(3):
        second.tell(Do(act))
    world.run()
    assert order == ["a", "b", "a", "b", "a", "b"]


def test_foreign_exception_rejects_its_ask_and_restarts(world: World) -> None:
    ref = world.adder()
    world.ask(ref, Add(5))
    original = ZeroDivisionError("x")
    failed, after = ref.ask(Fail(original)), ref.ask(Add(1))
    world.run()
    assert isinstance(failed.error, ActorFailed)
    assert failed.error.__cause__ is original
    assert after.result(0) == 1
    restarted = world.system.events.history(events.ActorRestarted)
    assert [(e.path, e.attempt, e.delay_s) for e in restarted] == [("/a", 1, 0.0)]
    assert restarted[0].cause is failed.error
    assert world.diary == ["a started", "a restarting", "a started"]


def test_resume_keeps_the_instance(world: World) -> None:
    ref = world.adder()
    world.ask(ref, Add(5))
    error = InvalidArgument("no")
    assert world.error(ref, Fail(error)) is error
    assert world.ask(ref, Add(1)) == 6
    assert world.diary == ["a started"]


def test_stop_directive_stops(world: World) -> None:
    ref = world.adder()
    error = Fatal("end")
    assert world.error(ref, Fail(error)) is error
    assert not ref.is_alive
    assert world.system.events.history(events.ActorStopped)[0].cause is error
    gone = world.error(ref, Add(1))
    assert isinstance(gone, ActorStopped)
    assert gone.__cause__ is error


def test_escalated_error_fails_the_parent_with_the_same_error(world: World) -> None:
    top = world.adder("top")
    middle = world.child(top, "middle")
    leaf = world.child(middle, "leaf")

    error = TooBig("x")
    assert world.error(leaf, Fail(error)) is error
    assert not top.is_alive  # every floor escalates, and above the top there is nobody
    assert [(e.path, e.cause) for e in world.system.events.history(events.ActorStopped)] == [
        ("/top/middle/leaf", error),
        ("/top/middle", error),
        ("/top", error),
    ]


def test_failure_of_a_told_message_is_an_event(world: World) -> None:
    ref = world.adder()
    error = InvalidArgument("no")
    ref.tell(Fail(error))
    world.run()
    (event,) = world.system.events.history(events.MessageFailed)
    assert event.cause is error
    assert event.path == "/a"


def test_restart_stops_the_children_first_and_frees_their_names(world: World) -> None:
    class Parent(Adder):
        def started(self) -> None:
            super().started()
            self.context.spawn(lambda: Adder(self.diary), name="child")

    ref = world.system.spawn(lambda: Parent(world.diary), name="parent")
    world.run()
    for _ in range(3):
        assert isinstance(world.error(ref, Fail(ValueError())), ActorFailed)
        world.run(10.0)
        assert ref.is_alive
    assert world.diary[:6] == [
        "parent started",
        "child started",
        "child stopped",
        "parent restarting",
        "parent started",
        "child started",
    ]
    assert world.system.events.history(events.HookFailed) == []
    paths = [e.path for e in world.system.events.history(events.ActorStarted)]
    assert paths == ["/parent", *["/parent/child"] * 4]


def test_name_is_taken_while_its_owner_lives_and_free_from_stop_on(world: World) -> None:
    ref = world.adder("x")
    with pytest.raises(NameTaken, match="already has a child named 'x'"):
        world.adder("x")
    ref.stop()
    again = world.adder("x")  # before the first one's stop has even run
    world.run()
    assert not ref.is_alive
    assert world.ask(again, Add(2)) == 2
    again.stop()
    world.run()
    assert world.ask(world.adder("x"), Add(3)) == 3


def test_handler_may_stop_a_child_and_spawn_its_name_again_at_once(world: World) -> None:
    ref = world.system.spawn(Handy, name="top")
    old = world.child(ref, "child")

    def replace(actor: Actor) -> ActorRef[Adder]:
        actor.context.stop(old)
        return actor.context.spawn(Adder, name="child")

    new = world.ask(ref, Do(replace))
    assert (old.is_alive, new.is_alive) == (False, True)
    assert world.ask(ref, Do(lambda actor: actor.context.children)) == (new,)


@pytest.mark.parametrize("name", ["", "a/b"])
def test_name_that_breaks_a_path_is_refused(world: World, name: str) -> None:
    with pytest.raises(InvalidArgument, match="no slash"):
        world.adder(name)


def test_unnamed_actors_get_names_of_their_own(world: World) -> None:
    assert [world.system.spawn(Adder).path for _ in range(2)] == ["/adder-1", "/adder-2"]


def test_messages_queue_in_order_during_back_off_and_survive_it(world: World) -> None:
    ref = world.adder()
    for _ in range(2):
        ref.tell(Fail(LibraryError("x")))
    replies = [ref.ask(Add(number)) for number in (1, 2, 3)]
    world.run()
    assert not any(reply.done for reply in replies)
    assert ref.depth == 3
    world.run(0.2)  # the second restart waits 0.1 s ± 10 %
    assert [reply.result(0) for reply in replies] == [1, 3, 6]


def test_exhausted_budget_stops_the_child_with_its_last_cause() -> None:
    world = World(OneForOne(max_restarts=2, within_s=60.0))
    ref = world.adder()
    errors = [LibraryError(str(number)) for number in range(3)]
    for error in errors:
        assert world.error(ref, Fail(error)) is error
        world.run(5.0)
    assert not ref.is_alive
    assert [e.cause for e in world.system.events.history(events.ActorStopped)] == [errors[-1]]
    assert [e.cause for e in world.system.events.history(events.ActorRestarted)] == errors[:2]
    world.close()


def test_old_failures_leave_the_window() -> None:
    world = World(OneForOne(max_restarts=1, within_s=10.0))
    ref = world.adder()
    for _ in range(5):
        world.error(ref, Fail(LibraryError("x")))
        world.run(10.0)
    assert ref.is_alive
    world.close()


def test_exhausted_budget_escalates_only_where_the_strategy_says_so(world: World) -> None:
    class Strict(Handy):
        strategy = OneForOne(max_restarts=0, exhausted=Directive.ESCALATE)

    ref = world.system.spawn(lambda: Strict(world.diary), name="strict")
    child = world.child(ref, "child")
    world.diary.clear()
    world.error(child, Fail(LibraryError("x")))
    assert world.diary == ["child stopped", "strict restarting", "strict started"]
    assert (child.is_alive, ref.is_alive) == (False, True)


def test_failures_of_started_count(world: World) -> None:
    attempts: list[int] = []

    class Fragile(Adder):
        def started(self) -> None:
            attempts.append(1)
            if len(attempts) < 3:
                raise InvalidArgument("not yet")  # would be resumed, were there an instance

    ref = world.system.spawn(Fragile, name="fragile")
    answer = ref.ask(Add(7))
    world.run()
    world.run(1.0)
    assert answer.result(0) == 7
    assert len(attempts) == 3
    assert len(world.system.events.history(events.ActorStarted)) == 1


def test_factory_that_always_raises_exhausts_the_budget(world: World) -> None:
    def broken() -> Adder:
        raise OSError("no")

    ref = world.system.spawn(broken, name="broken")
    answer = ref.ask(Add(7))
    for _ in range(4):
        world.run(3.0)
    assert not ref.is_alive
    assert isinstance(answer.error, ActorStopped)
    (stopped,) = world.system.events.history(events.ActorStopped)
    assert isinstance(stopped.cause, ActorFailed)
    assert isinstance(stopped.cause.__cause__, OSError)


def test_raising_hook_is_an_event_and_a_warning_and_the_end_goes_on(world: World) -> None:
    class Sour(Adder):
        def stopped(self) -> None:
            raise OSError("sour")

    ref = world.system.spawn(Sour, name="sour")
    world.run()
    ref.stop()
    with pytest.warns(RuntimeWarning, match=r"stopped\(\) of /sour raised"):
        world.run()
    assert [e.hook for e in world.system.events.history(events.HookFailed)] == ["stopped"]
    assert len(world.system.events.history(events.ActorStopped)) == 1


def test_chained_reply_answers_the_asker(world: World) -> None:
    ref = world.system.spawn(Handy)
    inner: list[Reply[int]] = [Reply(), Reply()]
    outer = [ref.ask(Later(reply)) for reply in inner]
    world.run()
    assert not outer[0].done
    inner[0].resolve(42)
    assert outer[0].result(0) == 42
    inner[1].reject(InvalidArgument("no"))
    assert isinstance(outer[1].error, InvalidArgument)


@pytest.mark.parametrize("end", ["restart", "stop"])
def test_chained_reply_that_will_never_come_is_failed(world: World, end: str) -> None:
    ref = world.system.spawn(Handy)
    inner: Reply[int] = Reply()
    outer = ref.ask(Later(inner))
    world.run()
    lost = ContextLost("gone", generation=1)
    if end == "restart":
        ref.tell(Fail(lost))
    else:
        ref.stop()
    world.run()
    assert outer.error is lost if end == "restart" else isinstance(outer.error, ActorStopped)
    inner.resolve(1)  # too late, and without effect
    assert isinstance(outer.error, AccelError)


def test_stop_takes_effect_before_the_messages_already_queued(world: World) -> None:
    ref = world.adder()
    world.run()
    asked = ref.ask(Add(1))
    ref.tell(Add(2))
    ref.stop()
    world.run()
    assert isinstance(asked.error, ActorStopped)
    letters = [e.message for e in world.system.events.history(events.DeadLetter)]
    assert [m.number for m in letters if isinstance(m, Add)] == [1, 2]


def test_message_to_the_dead_is_a_dead_letter(world: World) -> None:
    ref = world.adder()
    ref.stop()
    world.run()
    ref.tell(Add(9))
    assert isinstance(ref.ask(Add(8)).error, ActorStopped)
    letters = world.system.events.history(events.DeadLetter)
    assert [e.path for e in letters] == ["/a", "/a"]


def test_unknown_message_is_refused_with_what_is_known(world: World) -> None:
    ref = world.adder()
    error = world.error(ref, Later(Reply()))
    assert isinstance(error, InvalidArgument)
    assert "handles Add, Fail, Spawn; it was sent Later" in str(error)
    assert ref.is_alive
    assert len(world.system.events.history(events.DeadLetter)) == 1


def test_full_mailbox_refuses_the_ask(world: World) -> None:
    ref = world.adder(capacity=2)
    ref.ask(Add(1), timeout_s=0)
    ref.ask(Add(1), timeout_s=0)
    with pytest.raises(QueueFull, match="/a has no room: 2 of 2"):
        ref.ask(Add(1), timeout_s=0)
    world.run()
    assert world.ask(ref, Add(1)) == 3


def test_watcher_hears_the_end_and_its_cause(world: World) -> None:
    diary: list[Terminated] = []

    class Listener(Handy):
        @handles(Terminated)
        def terminated(self, message: Terminated) -> None:
            diary.append(message)

    watcher = world.system.spawn(Listener, name="watcher", capacity=1)
    targets = [world.adder(name) for name in ("asked", "failed", "unwatched", "dead")]
    targets[3].stop()
    for target in targets:
        world.ask(watcher, Watch(target))
    world.ask(watcher, Watch(targets[2], on=False))
    error = Fatal("x")
    world.error(targets[1], Fail(error))
    targets[0].stop()
    targets[2].stop()
    watcher.tell(Add(1))  # the mailbox is full; the notice gets in all the same
    world.run()
    assert [(m.ref, m.cause) for m in diary] == [
        (targets[3], None),
        (targets[1], error),
        (targets[0], None),
    ]


def test_watching_without_a_handler_is_refused(world: World) -> None:
    class Blind(Adder):
        @handles(Watch)
        def watch(self, message: Watch) -> None:
            self.context.watch(message.ref)

    ref = world.system.spawn(Blind)
    error = world.error(ref, Watch(ref))
    assert isinstance(error, InvalidArgument)
    assert "no handler for Terminated" in str(error)


def test_new_instance_does_not_hear_of_the_old_ones_children(world: World) -> None:
    ref = world.system.spawn(Handy, name="top")
    world.ask(ref, Watch(world.child(ref, "child")))
    world.error(ref, Fail(ValueError()))
    assert world.ask(ref, Do(lambda actor: list(getattr(actor, "heard", [1])))) == []


def test_withdrawn_ask_is_not_handled(world: World) -> None:
    ref = world.adder()
    first, second = ref.ask(Add(1)), ref.ask(Add(10))
    first.cancel()
    world.run()
    assert isinstance(first.error, Cancelled)
    assert second.result(0) == 10


def test_ask_that_is_taken_back_as_its_turn_comes_is_handled_or_cancelled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was handled, and the asker was told that it was not."""
    ref, handle = world.adder(), Cell._handle

    def late(cell: Cell, letter: Letter) -> None:
        first.cancel()
        handle(cell, letter)

    first = ref.ask(Add(1))
    with monkeypatch.context() as patch:
        patch.setattr(Cell, "_handle", late)
        world.run()
    assert first.result(0) == 1
    assert world.ask(ref, Add(10)) == 11


def test_handler_that_waits_for_a_reply_is_told_to_return_it(world: World) -> None:
    ref, other = world.system.spawn(Handy), world.adder()
    error = world.error(ref, Do(lambda _: other.ask(Add(1)).result()))
    assert "return the reply" in str(error)
    assert world.ask(ref, Do(lambda _: other.ask(Add(1)))) == 2


def test_shutdown_stops_children_first_and_answers_everything() -> None:
    world = World()
    top = world.adder("top")
    world.child(top, "child")
    backing_off = world.adder("backing-off")
    for _ in range(2):
        world.error(backing_off, Fail(LibraryError("x")))
    asked = [top.ask(Add(1)), backing_off.ask(Add(1)), world.adder("new").ask(Add(1))]
    world.close()
    assert all(isinstance(reply.error, ActorStopped) for reply in asked)
    assert [e.path for e in world.system.events.history(events.ActorStopped)] == [
        "/new",
        "/backing-off",
        "/top/child",
        "/top",
    ]
    assert isinstance(top.ask(Add(1)).error, ActorStopped)
    with pytest.raises(SystemClosed):
        world.adder("late")
    world.system.shutdown()


def test_spawning_below_a_stopping_actor_is_refused(world: World) -> None:
    ref = world.system.spawn(Handy)

    def stop_and_spawn(actor: Actor) -> None:
        actor.context.self_ref.stop()
        actor.context.spawn(Adder)

    assert isinstance(world.error(ref, Do(stop_and_spawn)), ActorStopped)
    assert not ref.is_alive


def test_context_knows_parent_and_services(world: World) -> None:
    ref = world.system.spawn(Handy, name="top")

    def look(actor: Actor) -> tuple[Any, ...]:
        context = actor.context
        return context.parent, context.self_ref, context.clock, context.event_loop, context.events

    child = world.ask(ref, Spawn("child", Handy))
    system = world.system
    services = (world.clock, world.event_loop, system.events)
    assert world.ask(ref, Do(look)) == (None, ref, *services)
    assert world.ask(child, Do(look)) == (ref, child, *services)


def test_back_off_grows_within_the_window() -> None:
    strategy = OneForOne(max_restarts=4, backoff=Backoff(jitter=0.0))
    world = World(strategy)
    ref = world.adder()
    for _ in range(4):
        world.error(ref, Fail(LibraryError("x")))
        world.run(1.0)
    delays = [e.delay_s for e in world.system.events.history(events.ActorRestarted)]
    assert delays == [0.0, 0.1, 0.2, 0.4]
    world.close()


def test_remembered_failure_does_not_keep_the_handlers_locals(world: World) -> None:
    class Heavy:
        """Stands for a buffer."""

    alive: list[weakref.ref[Heavy]] = []

    def use_and_fail(_: Actor) -> None:
        heavy = Heavy()
        alive.append(weakref.ref(heavy))
        raise ValueError

    error = world.error(world.system.spawn(Handy), Do(use_and_fail))
    assert isinstance(error, ActorFailed)
    assert alive[0]() is None


def test_child_spawned_while_restarting_does_not_outlive_the_instance(world: World) -> None:
    class Late(Adder):
        def restarting(self, cause: BaseException) -> None:
            super().restarting(cause)
            self.context.spawn(Adder, name="late")

    ref = world.system.spawn(Late, name="top")
    for _ in range(2):  # twice: the name must be free again
        world.error(ref, Fail(ValueError()))
        world.run(1.0)
    assert ref.is_alive
    assert world.system.events.history(events.HookFailed) == []
    stopped = [e.path for e in world.system.events.history(events.ActorStopped)]
    assert stopped == ["/top/late", "/top/late"]
