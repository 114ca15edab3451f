"""A user's own actors: in the tree, supervised, at work with devices, and gone with the system."""

import os
import threading
import time
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, Device, System, blas
from accel_lab.actor import Actor, ActorRef, Message, OneForOne, handles
from accel_lab.actor.events import ActorRestarted, ActorStopped, MessageFailed
from accel_lab.errors import (
    ActorFailed,
    ContextLost,
    InvalidArgument,
    NameTaken,
    SystemClosed,
)
from accel_lab.errors import ActorStopped as Stopped
from tests.faults.conftest import settle

WAIT = 30.0
ONES = np.ones((4, 4), np.float32)


class Add(Message[float], frozen=True):
    """Add to the sum; the answer is the sum."""

    x: float


class Square(Message[AccelRef], frozen=True):
    """Multiply the actor's matrix by itself on the device."""


class Total(Message[float], frozen=True):
    """Wait for the device: the sum of the matrix's square."""


class Wait(Message[None], frozen=True):
    """Keep the actors' thread until the event is set."""

    event: threading.Event


class Open(Message[ActorRef[Any]], frozen=True):
    """Start a child."""

    name: str


class Worker(Actor):
    """Holds a device and a buffer on it."""

    strategy = OneForOne()

    def __init__(self, device: Device) -> None:
        self.device = device
        self.sum = 0.0

    def started(self) -> None:
        """Put the matrix on the device; again after each restart."""
        self.matrix = self.device.put(ONES)

    @handles(Add)
    def add(self, message: Add) -> float:
        self.sum += 1 / message.x
        return self.sum

    @handles(Square)
    def square(self, _: Square) -> Any:
        return blas.gemm(self.matrix, self.matrix)

    @handles(Total)
    def total(self, _: Total) -> float:
        return float(self.device.get(blas.gemm(self.matrix, self.matrix)).result(WAIT).sum())

    @handles(Wait)
    def wait(self, message: Wait) -> None:
        message.event.wait(WAIT)

    @handles(Open)
    def open(self, message: Open) -> ActorRef[Any]:
        return self.context.spawn(lambda: Worker(self.device), name=message.name)


def test_an_actor_uses_a_device_and_its_replies(lab: System, cpu: Device) -> None:
    """It may return the handle of an answer, or wait for it."""
    worker = lab.spawn(lambda: Worker(cpu), name="worker")
    assert worker.ask(Add(0.5)).result(WAIT) == 2.0
    square = worker.ask(Square()).result(WAIT)
    assert isinstance(square, AccelRef)
    assert (cpu.get(square).result(WAIT) == 4.0).all()
    assert worker.ask(Total()).result(WAIT) == 64.0
    with pytest.raises(InvalidArgument, match="handles Add"):
        worker.ask(Message()).result(WAIT)


def test_an_actor_that_fails_is_restarted_and_in_the_tree(lab: System, cpu: Device) -> None:
    """With its state, mailbox, restarts, children and the cause of the last failure."""
    worker = lab.spawn(lambda: Worker(cpu), name="worker")
    worker.ask(Open("child")).result(WAIT)
    nodes = {n.path: n for n in lab.tree().walk() if n.kind == "actor"}
    assert list(nodes) == [f"{lab.name}/worker", f"{lab.name}/worker/child"]
    node = nodes[f"{lab.name}/worker"]
    assert (node.state, node.mailbox, node.restarts, node.detail) == ("running", 0, 0, "Worker")
    worker.ask(Add(1.0)).result(WAIT)
    with pytest.raises(ActorFailed, match="division by zero"):
        worker.ask(Add(0.0)).result(WAIT)
    assert worker.ask(Add(0.5)).result(WAIT) == 2.0, "a new instance"
    (node,) = (n for n in lab.tree().walk() if n.kind == "actor")
    assert (node.name, node.restarts, node.children) == ("worker", 1, ())
    assert "division by zero" in node.detail
    go = threading.Event()
    worker.tell(Wait(go))
    for _ in range(3):
        worker.tell(Add(1.0))
    assert settle(lambda: next(n for n in lab.tree().walk() if n.kind == "actor").mailbox == 3)
    go.set()
    (restarted,) = lab.events.history(ActorRestarted)
    assert (restarted.path, restarted.attempt) == ("/worker", 1)


def test_a_loss_of_its_device_restarts_an_actor_that_waits_for_it(lab: System, cpu: Device) -> None:
    """The new instance puts its matrix again."""
    worker = lab.spawn(lambda: Worker(cpu), name="worker")
    assert worker.ask(Total()).result(WAIT) == 64.0
    slow = cpu.run(time.sleep, 60)
    failed = worker.ask(Total())
    assert settle(lambda: cpu.in_flight == 3)  # it waits behind the function
    cpu.replace()
    for reply in (slow, failed):
        with pytest.raises(ContextLost):
            reply.result(WAIT)
    assert worker.restarts == 1
    assert worker.ask(Total()).result(WAIT) == 64.0


def test_a_handler_that_waits_holds_up_no_device(lab: System, cpu: Device) -> None:
    """Supervision has a thread of its own."""
    worker, other = (lab.spawn(lambda: Worker(cpu)) for _ in range(2))
    go = threading.Event()
    held = worker.ask(Wait(go))
    with pytest.raises(ContextLost):
        lab.inject("kill", cpu).result(WAIT)
    assert (cpu.get(cpu.put(ONES)).result(WAIT) == 1.0).all()
    behind = other.ask(Add(1.0))
    assert not behind.done
    go.set()
    held.result(WAIT)
    assert behind.result(WAIT) == 1.0


def test_an_actor_that_fails_too_often_is_stopped(nothing_left: None) -> None:
    """Its askers learn so, and the system goes on."""
    with System("host", max_restarts=2) as lab:
        worker = lab.spawn(lambda: Worker(lab.devices[0]), name="worker")
        for _ in range(3):
            with pytest.raises((ActorFailed, Stopped)):
                worker.ask(Add(0.0)).result(WAIT)
        lab.events.wait_for(ActorStopped, WAIT, since=0)
        with pytest.raises(Stopped, match="/worker has stopped: an actor raised ZeroDivisionError"):
            worker.ask(Add(1.0)).result(WAIT)
        assert [n for n in lab.tree().walk() if n.kind == "actor"] == []
        again = lab.spawn(lambda: Worker(lab.devices[0]), name="worker")
        again.tell(Add(0.0))
        failed = lab.events.wait_for(MessageFailed, WAIT, since=0)
        assert failed.path == "/worker"
        assert again.ask(Add(1.0)).result(WAIT) == 1.0


class Rows(Actor):
    """Cannot be made."""

    def __init__(self) -> None:
        self.rows = open("/no/such/file")  # noqa: PTH123, SIM115 - it is not there

    @handles(Total)
    def total(self, _: Total) -> float:
        return 5.0


def test_an_actor_that_cannot_be_made_says_why(nothing_left: None) -> None:
    with System("host", max_restarts=1) as lab:
        rows = lab.spawn(Rows, name="rows")
        with pytest.raises(Stopped, match=r"/rows could not be made: .*No such file") as caught:
            rows.ask(Total()).result(WAIT)
        assert isinstance(caught.value.__cause__, ActorFailed)
        with pytest.raises(Stopped, match=r"/rows could not be made: .*No such file"):
            rows.ask(Total()).result(WAIT)


def test_an_instance_is_no_factory(lab: System, cpu: Device) -> None:
    worker: Any = Worker(cpu)
    with pytest.raises(InvalidArgument, match=r"as Worker or lambda: Worker\(…\), and calls it"):
        lab.spawn(worker)


def test_names_are_unique_beside_the_devices(lab: System, cpu: Device) -> None:
    """And a closed system takes no actors."""
    lab.spawn(lambda: Worker(cpu), name="worker")
    for name in ("worker", "cpu0"):
        with pytest.raises(NameTaken):
            lab.spawn(lambda: Worker(cpu), name=name)
    lab.close()
    with pytest.raises(SystemClosed):
        lab.spawn(lambda: Worker(cpu))


def test_closing_ends_actors_that_wait_for_a_device(nothing_left: None) -> None:
    """Their requests are answered with SystemClosed, and so they come back."""
    lab = System("host").ready()
    (cpu,) = lab.devices

    class Stuck(Actor):
        """Waits for a device that is busy for ever."""

        @handles(Total)
        def total(self, _: Total) -> float:
            cpu.run(time.sleep, 600).result()
            return 0.0

    stuck = lab.spawn(Stuck)
    reply, behind = stuck.ask(Total()), stuck.ask(Total())
    assert settle(lambda: cpu.in_flight == 1)
    begun = time.perf_counter()
    lab.close()
    assert time.perf_counter() - begun < 5.0
    assert isinstance(reply.error, SystemClosed)
    assert isinstance(behind.error, Stopped)


def test_a_forked_child_is_told_that_its_actors_are_not_there(lab: System, cpu: Device) -> None:
    """Instead of waiting for a thread that the fork does not have."""
    worker = lab.spawn(lambda: Worker(cpu))
    worker.ask(Add(1.0)).result(WAIT)
    child = os.fork()
    if child == 0:
        try:
            worker.ask(Add(1.0)).result(1.0)
        except Stopped:
            os._exit(0)
        except BaseException:  # noqa: BLE001
            os._exit(1)
        os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert worker.ask(Add(1.0)).result(WAIT) == 2.0
