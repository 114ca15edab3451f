"""How soon and how often a device's context is started again, on a clock that the test moves."""

from typing import Any, cast

import pytest

from accel_lab.actor.actor import ActorRef
from accel_lab.actor.supervision import AllForOne, OneForOne, RestForOne, Strategy
from accel_lab.compute.supervision.context_supervisor import ContextSupervisor
from accel_lab.compute.supervision.device_actor import DeviceActor
from accel_lab.errors import AccelError, BackendUnavailable, ContextLost
from tests.actor.world import World


class Requests:
    """The state of a device."""

    def __init__(self) -> None:
        self.state = "running"
        self.connection = self

    def half_open(self) -> bool:
        if self.state != "circuit open":
            return False
        self.state = "half-open"
        return True


class Process:
    def __init__(self, number: int) -> None:
        self.number = number


class MadeUpSupervisor:
    """Starts nothing, and writes down when it was asked to."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.requests = Requests()
        self.process: Process | None = None
        self.starts: list[float] = []
        self.circuits: list[AccelError] = []
        self.lost: Any = None
        self.restart: Any = None
        self._world = world

    def start(self) -> None:
        self.starts.append(self._world.clock.now())
        self.process = Process(len(self.starts))
        if self.requests.state != "half-open":
            self.requests.state = "running"

    def lose(self, error: AccelError | None = None) -> None:
        """Lose the context, and let the supervisor do what is due at once."""
        assert self.process is not None
        number, self.process = self.process.number, None
        self.lost(error or ContextLost(f"{self.name} lost"), number)
        self._world.run()

    def taken_along(self, cause: AccelError) -> None:
        del cause
        self.process = None

    def open_circuit(self, cause: AccelError) -> None:
        self.requests.state = "circuit open"
        self.circuits.append(cause)

    def reset(self) -> None:
        if self.requests.half_open():
            self.restart()
            self._world.run()


def supervise(world: World, strategy: Strategy, names: str) -> list[MadeUpSupervisor]:
    supervisors = [MadeUpSupervisor(world, name) for name in names]
    real = cast("list[ContextSupervisor]", supervisors)
    ref: ActorRef[Any] = world.system.spawn(lambda: DeviceActor(real, strategy), name="device")
    world.run()
    assert ref.is_alive
    return supervisors


@pytest.fixture
def world() -> World:
    return World()


def test_restarts_back_off_with_jitter_up_to_two_seconds(world: World) -> None:
    """None for the first, then 0.1, 0.2 … 2 s, each within a tenth of that."""
    nominal = [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    drawn: set[float] = set()
    for _ in range(20):
        (supervisor,) = supervise(world, OneForOne(max_restarts=8, within_s=1000.0), "a")
        for delay in nominal:
            lost_at, count = world.clock.now(), len(supervisor.starts)
            supervisor.lose()
            if delay:
                world.run(after_s=0.899 * delay)
                assert len(supervisor.starts) == count, "not so soon"
            while len(supervisor.starts) == count:
                world.run(after_s=0.001)
                assert world.clock.now() - lost_at <= 1.1 * delay + 0.002
            drawn.add(round(supervisor.starts[-1] - lost_at, 3))
        supervisor.lose()
        assert supervisor.requests.state == "circuit open"
        for ref in world.system.children:
            ref.stop()
        world.run()
    assert len(drawn) > 20, "no jitter"
    world.close()


def test_a_device_may_be_lost_for_ever_if_it_is_seldom(world: World) -> None:
    """Three in sixty seconds, sliding."""
    (supervisor,) = supervise(world, OneForOne(max_restarts=3, within_s=60.0), "a")
    for _ in range(100):
        supervisor.lose()
        world.run(after_s=20.5)
        assert supervisor.process is not None
    supervisor.lose()
    world.run(after_s=2.0)
    assert supervisor.requests.state == "running"
    supervisor.lose()
    assert supervisor.requests.state == "circuit open", "the fourth within 60 s"
    assert len(supervisor.circuits) == 1
    world.close()


def test_a_probe_that_fails_opens_the_circuit_at_once(world: World) -> None:
    """One that succeeds begins a new budget."""
    (supervisor,) = supervise(world, OneForOne(max_restarts=1, within_s=60.0), "a")
    supervisor.lose()
    supervisor.lose()
    assert supervisor.requests.state == "circuit open"
    before = len(supervisor.starts)
    for attempt in range(1, 4):
        supervisor.reset()
        assert (supervisor.requests.state, len(supervisor.starts)) == (
            "half-open",
            before + attempt,
        )
        supervisor.lose()
        assert supervisor.requests.state == "circuit open"
        world.run(after_s=100.0)
        assert len(supervisor.starts) == before + attempt, "nothing starts by itself"
    supervisor.reset()
    supervisor.requests.state = "running"
    supervisor.lose()
    assert supervisor.requests.state == "running"
    supervisor.lose()
    assert supervisor.requests.state == "circuit open"
    world.close()


def test_what_no_restart_mends_opens_the_circuit_at_once(world: World) -> None:
    (supervisor,) = supervise(world, OneForOne(), "a")
    error = BackendUnavailable("no driver")
    supervisor.lose(error)
    assert supervisor.requests.state == "circuit open"
    assert [str(cause) for cause in supervisor.circuits] == ["no driver"]
    world.close()


@pytest.mark.parametrize(
    ("strategy", "failed", "restarted", "resting"),
    [
        (AllForOne(max_restarts=1, within_s=60.0), 1, "abc", "abc"),
        (RestForOne(max_restarts=1, within_s=60.0), 1, "bc", "bc"),
        (RestForOne(max_restarts=1, within_s=60.0), 2, "c", "c"),
    ],
    ids=["all", "rest from the middle", "rest from the end"],
)
def test_a_group_restarts_rests_and_comes_back_together(
    world: World, strategy: Strategy, failed: int, restarted: str, resting: str
) -> None:
    supervisors = supervise(world, strategy, "abc")
    supervisors[failed].lose()
    world.run(after_s=1.0)
    assert "".join(k.name for k in supervisors if len(k.starts) == 2) == restarted
    late = supervisors[failed]
    late.lost(ContextLost("of a process that has been replaced"), 1)
    world.run(after_s=1.0)
    assert late.requests.state == "running"
    late.lose()
    assert "".join(k.name for k in supervisors if k.requests.state == "circuit open") == resting
    supervisors[2].reset()
    assert "".join(k.name for k in supervisors if k.requests.state == "half-open") == resting
    for supervisor in supervisors:
        supervisor.requests.state = "running"
    supervisors[failed].lose()
    world.run(after_s=1.0)
    assert [k.requests.state for k in supervisors] == ["running"] * 3
    assert all(k.process is not None for k in supervisors)
    world.close()
