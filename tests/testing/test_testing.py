"""What accel_lab.testing has for users' own tests does what it says."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from accel_lab import Device, System
from accel_lab.actor import Actor, Message, handles
from accel_lab.blueprints.patterns import DynamicBatchingServer, stage
from accel_lab.errors import ContextLost, InvalidArgument, UserCodeError
from accel_lab.testing import Bench, Faults
from tests.project import ROOT


class Now(Message[float], frozen=True):
    """Answer the time."""


class Watch(Actor):
    """Tells the time of its event loop."""

    @handles(Now)
    def now(self, message: Now) -> float:
        del message
        return self.context.clock.now()


def test_time_stands_still_until_it_is_run() -> None:
    with Bench() as bench:
        watch = bench.spawn(Watch, name="watch")
        assert bench.answer(watch.ask(Now())) == 0.0
        at: list[float] = []
        for delay_s in (3.0, 1.0, 2.0):
            bench.event_loop.call_later(delay_s, lambda: at.append(bench.clock.now()))
        bench.run(2.5)
        assert at == [1.0, 2.0]
        assert bench.answer(watch.ask(Now())) == 2.5
        never = bench.stage(abs, seconds=float("inf"))(1)
        with pytest.raises(TimeoutError, match="10 s of the fake clock"):
            bench.answer(never, seconds=10)


def test_a_simulated_call_takes_its_time_and_fails_as_the_function_does() -> None:
    with Bench() as bench:
        slow = bench.stage(sum, seconds=len, name="slow")
        reply: Any = slow([1, 2, 3])
        bench.run(2.9)
        assert not reply.done
        assert bench.answer(reply) == 6
        assert bench.clock.now() == pytest.approx(3)
        broken: Any = bench.stage(lambda values: values[5])([1])
        with pytest.raises(UserCodeError, match="IndexError"):
            bench.answer(broken)
        taken: Any = slow([1])
        taken.cancel()
        bench.run(5)
        assert taken.failed


def test_what_escapes_a_callback_is_raised_at_the_end() -> None:
    bench = Bench()
    bench.event_loop.call_later(1.0, lambda: 1 / 0)
    bench.run(2)
    with pytest.raises(ZeroDivisionError):
        bench.close()


def test_faults_strike_at_their_call_and_at_no_other() -> None:
    faults = Faults({2: ContextLost("gone"), 4: KeyError("mine")})
    struck = faults.into(lambda value: value)
    found: list[Any] = []
    for n in range(5):
        try:
            found.append(struck(n))
        except (ContextLost, KeyError) as error:
            found.append(type(error))
    assert found == [0, ContextLost, 2, KeyError, 4]
    assert (faults.calls, faults.struck) == (5, [2, 4])
    with pytest.raises(InvalidArgument, match="none of"):
        Faults({1: "explode"})  # type: ignore[dict-item]
    with pytest.raises(InvalidArgument, match="needs a device"):
        Faults({1: "kill"}).into(lambda value: value)(1)


def test_a_fault_by_name_is_a_real_one() -> None:
    faults = Faults({2: "kill"})

    with System("host", max_restarts=1000) as lab:

        def add(device: Device, values: list[int]) -> Any:
            return device.run(_plus_one, values)

        with DynamicBatchingServer(lab, stage(devices=lab)(faults.into(add))) as server:
            assert [server.ask(n).result(30) for n in range(4)] == [1, 2, 3, 4]
            assert server.statistics.reruns == 1
        assert lab.devices[0].generation == 2


def _plus_one(values: list[int]) -> list[int]:
    return [one + 1 for one in values]


OF_A_USER = """
pytest_plugins = ["accel_lab.testing.fixtures"]

def test_on_a_bench(accel_bench):
    from accel_lab.blueprints.patterns import DynamicBatchingServer
    server = DynamicBatchingServer(accel_bench, accel_bench.stage(lambda values: values))
    assert accel_bench.answer(server.ask(5)) == 5

def test_on_devices(accel_lab_host):
    first, second = accel_lab_host.devices
    assert second.run(abs, -3).result() == 3
"""


def test_the_fixtures_work_in_a_project_of_a_user(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(OF_A_USER.splitlines()[1])
    (tmp_path / "test_own.py").write_text("\n".join(OF_A_USER.splitlines()[2:]))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
