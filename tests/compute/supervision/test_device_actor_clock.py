"""How soon and how often a device's context is started again, on a clock that the test moves."""

from typing import Any, cast

import pytest

from accel_lab.actor.actor import ActorRef
from accel_lab.actor.supervision import AllForOne, OneForOne, RestForOne, Strategy
from accel_lab.compute.supervision.context_supervisor import DeviceKeeper
from accel_lab.compute.supervision.device_actor import DeviceActor
from accel_lab.errors import AccelError, BackendUnavailable, ContextLost
from tests.actor.world import World


class Requests:
    """The state of a device."""

    def __init__(self) -> None:
        self.state = "running"

    def half_open(self) -> bool:
        if self.state != "circuit open":
            return False
        self.state = "half-open"
        return True


class Process:
    def __init__(self, number: int) -> None:
        self.number = number


class Keeper:
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


def supervise(world: World, strategy: Strategy, names: str) -> list[Keeper]:
    keepers = [Keeper(world, name) for name in names]
    real = cast("list[DeviceKeeper]", keepers)
    ref: ActorRef[Any] = world.system.spawn(lambda: DeviceActor(real, strategy), name="device")
    world.run()
    assert ref.is_alive
    return keepers


@pytest.fixture
def world() -> World:
    return World()


def test_restarts_back_off_with_jitter_up_to_two_seconds(world: World) -> None:
    """None for the first, then 0.1, 0.2 … 2 s, each within a tenth of that."""
    nominal = [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    drawn: set[float] = set()
    for _ in range(20):
        (keeper,) = supervise(world, OneForOne(max_restarts=8, within_s=1000.0), "a")
        for delay in nominal:
            lost_at, count = world.clock.now(), len(keeper.starts)
            keeper.lose()
            if delay:
                world.run(after_s=0.899 * delay)
                assert len(keeper.starts) == count, "not so soon"
            while len(keeper.starts) == count:
                world.run(after_s=0.001)
                assert world.clock.now() - lost_at <= 1.1 * delay + 0.002
            drawn.add(round(keeper.starts[-1] - lost_at, 3))
        keeper.lose()
        assert keeper.requests.state == "circuit open"
        for ref in world.system.children:
            ref.stop()
        world.run()
    assert len(drawn) > 20, "no jitter"
    world.close()


def test_a_device_may_be_lost_for_ever_if_it_is_seldom(world: World) -> None:
    """Three in sixty seconds, sliding."""
    (keeper,) = supervise(world, OneForOne(max_restarts=3, within_s=60.0), "a")
    for _ in range(100):
        keeper.lose()
        world.run(after_s=20.5)
        assert keeper.process is not None
    keeper.lose()
    world.run(after_s=2.0)
    assert keeper.requests.state == "running"
    keeper.lose()
    assert keeper.requests.state == "circuit open", "the fourth within 60 s"
    assert len(keeper.circuits) == 1
    world.close()


def test_a_probe_that_fails_opens_the_circuit_at_once(world: World) -> None:
    """One that succeeds begins a new budget."""
    (keeper,) = supervise(world, OneForOne(max_restarts=1, within_s=60.0), "a")
    keeper.lose()
    keeper.lose()
    assert keeper.requests.state == "circuit open"
    before = len(keeper.starts)
    for attempt in range(1, 4):
        keeper.reset()
        assert (keeper.requests.state, len(keeper.starts)) == ("half-open", before + attempt)
        keeper.lose()
        assert keeper.requests.state == "circuit open"
        world.run(after_s=100.0)
        assert len(keeper.starts) == before + attempt, "nothing starts by itself"
    keeper.reset()
    keeper.requests.state = "running"
    keeper.lose()
    assert keeper.requests.state == "running"
    keeper.lose()
    assert keeper.requests.state == "circuit open"
    world.close()


def test_what_no_restart_mends_opens_the_circuit_at_once(world: World) -> None:
    (keeper,) = supervise(world, OneForOne(), "a")
    error = BackendUnavailable("no driver")
    keeper.lose(error)
    assert keeper.requests.state == "circuit open"
    assert [str(cause) for cause in keeper.circuits] == ["no driver"]
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
    keepers = supervise(world, strategy, "abc")
    keepers[failed].lose()
    world.run(after_s=1.0)
    assert "".join(k.name for k in keepers if len(k.starts) == 2) == restarted
    late = keepers[failed]
    late.lost(ContextLost("of a process that has been replaced"), 1)
    world.run(after_s=1.0)
    assert late.requests.state == "running"
    late.lose()
    assert "".join(k.name for k in keepers if k.requests.state == "circuit open") == resting
    keepers[2].reset()
    assert "".join(k.name for k in keepers if k.requests.state == "half-open") == resting
    for keeper in keepers:
        keeper.requests.state = "running"
    keepers[failed].lose()
    world.run(after_s=1.0)
    assert [k.requests.state for k in keepers] == ["running"] * 3
    assert all(k.process is not None for k in keepers)
    world.close()
