"""Leases on a state, against a plain simulation with a fake clock; and generations on a device."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import Device, System
from accel_lab.blueprints.agents import LeaseLost, SharedGpuStateCoordinator
from accel_lab.blueprints.patterns import RequestExpired
from accel_lab.errors import AccelError, Cancelled, InvalidArgument, UserCodeError
from accel_lab.testing import Bench
from tests.blueprints.patterns.load import adds_up, load


class Plain:
    """What should happen, second by second: a line, and leases with their ends."""

    def __init__(self) -> None:
        self.now = 0.0
        self.line: list[tuple[int, str, float, float]] = []  # number, use, lease, deadline
        self.leases: dict[int, tuple[str, float]] = {}
        self.fate: dict[int, str] = {}
        self.lost = 0

    def grant(self) -> None:
        while self.line:
            number, use, lease_s, _ = self.line[0]
            if self.leases and (use == "write" or "write" in [u for u, _ in self.leases.values()]):
                return
            self.line.pop(0)
            self.leases[number] = use, self.now + lease_s
            self.fate[number] = "granted"

    def run(self, until: float) -> None:
        while True:
            ends = [end for _, end in self.leases.values()] + [one[3] for one in self.line]
            due = min(ends, default=until + 1)
            if due > until:
                break
            self.now = due
            over = [number for number, (_, end) in self.leases.items() if end <= due]
            self.lost += len(over)
            for number in over:
                del self.leases[number]
            for one in [one for one in self.line if one[3] <= due]:
                self.line.remove(one)
                self.fate[one[0]] = "expired"
            self.grant()
        self.now = until


use = st.sampled_from(["read", "write"])
step = st.one_of(
    st.tuples(st.just("acquire"), use, st.integers(1, 6), st.integers(0, 6)),
    st.tuples(st.sampled_from(["release", "renew", "cancel"]), st.integers(0, 11)),
    st.tuples(st.just("run"), st.integers(1, 4)),
)


@settings(max_examples=50, deadline=None)
@given(steps=st.lists(step, max_size=25))
def test_leases_are_those_of_a_plain_line(device: Device, steps: list[Any]) -> None:
    """Leases end at whole seconds and a bit, deadlines at halves: nothing happens at once."""
    plain = Plain()
    with Bench() as bench:
        state = SharedGpuStateCoordinator(bench, device, {})
        replies: list[Any] = []
        start = bench.clock.now()
        for what, *args in steps:
            number = len(replies)
            if what == "run":
                bench.run(args[0])
                plain.run(plain.now + args[0])
            elif what == "acquire":
                kind, lease_s, patience_s = args
                lease, deadline = lease_s + 0.001, patience_s + 0.5 + number / 1000
                replies.append(state.acquire(kind, lease_s=lease, timeout_s=deadline))
                plain.line.append((number, kind, lease, plain.now + deadline))
                plain.fate[number] = "waiting"
                plain.grant()
            elif replies:
                number = args[0] % len(replies)
                reply = replies[number]
                held = plain.fate[number] == "granted"
                if what == "cancel":
                    reply.cancel()
                    if plain.fate[number] == "waiting":
                        plain.fate[number] = "cancelled"
                        plain.line = [one for one in plain.line if one[0] != number]
                elif held and what == "release":
                    was_there = plain.leases.pop(number, None) is not None
                    assert bench.answer(state.release(reply.result(0))) is was_there
                elif held and number in plain.leases:
                    state.renew(reply.result(0), lease_s=2.002)
                    plain.leases[number] = plain.leases[number][0], plain.now + 2.002
                elif held:
                    with pytest.raises(LeaseLost):
                        bench.answer(state.renew(reply.result(0)))
                plain.grant()
            bench.run()
            fates = {
                number: "waiting"
                if not reply.done
                else "granted"
                if reply.error is None
                else "expired"
                if isinstance(reply.error, RequestExpired)
                else "cancelled"
                for number, reply in enumerate(replies)
            }
            assert fates == plain.fate
            assert bench.clock.now() - start == pytest.approx(plain.now)
            more = state.statistics.more
            assert (more["leases"], more["lost leases"]) == (len(plain.leases), plain.lost)
            assert adds_up(state.statistics)


def test_a_holder_that_is_gone_costs_its_lease_alone(bench: Bench, device: Device) -> None:
    state = SharedGpuStateCoordinator(bench, device, {"x": np.zeros(3)}, lease_s=5)
    gone = bench.answer(state.acquire("write"))
    late = state.acquire("write", timeout_s=2)
    reader, behind = state.acquire("read"), state.acquire("write")
    bench.run(3)
    with pytest.raises(RequestExpired):
        late.result(0)
    assert not reader.done  # the writer's lease holds still
    bench.run(3)
    assert reader.done
    with pytest.raises(LeaseLost, match="lease 1"):
        bench.answer(state.commit(gone, {"x": np.ones(3)}))
    assert state.snapshot().generation == 1
    assert not behind.done
    bench.answer(state.release(reader.result(0)))
    assert bench.answer(state.commit(behind.result(0), {"x": np.ones(3)})) == 2
    np.testing.assert_array_equal(state.snapshot().state["x"].get(), np.ones(3))
    state.close()
    with pytest.raises(AccelError):
        bench.answer(state.acquire("read"))


def test_a_lease_that_is_renewed_lasts_from_then(bench: Bench, device: Device) -> None:
    state = SharedGpuStateCoordinator(bench, device, {}, lease_s=5)
    lease = bench.answer(state.acquire("write"))
    behind = state.acquire("read")
    bench.run(3)
    bench.answer(state.renew(lease))
    bench.run(4)
    assert not behind.done
    bench.run(2)
    assert behind.done
    with pytest.raises(LeaseLost):
        bench.answer(state.renew(lease))


def test_a_writer_writes_in_place_and_older_generations_stay(lab: System, device: Device) -> None:
    with SharedGpuStateCoordinator(lab, device, {"x": np.zeros(4)}, keep=3) as state:
        first = state.snapshot()
        for number in range(1, 4):
            with state.writing() as held:
                held["x"][number:] = number

        def give_up() -> None:
            with state.writing() as held:
                held["x"][:] = 99
                raise RuntimeError("mine")

        with pytest.raises(RuntimeError, match="mine"):
            give_up()
        with state.reading() as found:
            np.testing.assert_array_equal(found["x"].get(), [0, 1, 2, 3])
            with state.reading(timeout_s=30) as beside:  # readers are not in each other's way
                assert beside["x"] is found["x"]
        np.testing.assert_array_equal(first.state["x"].get(), np.zeros(4))
        np.testing.assert_array_equal(state.snapshot(2).state["x"].get(), [0, 1, 1, 1])
        with pytest.raises(InvalidArgument, match="generation 1 is not kept; those from 2 to 4"):
            state.snapshot(1)


def test_what_could_not_be_computed_is_not_committed(lab: System, device: Device) -> None:
    def broken(x: Any) -> Any:
        raise ValueError(x.shape)

    with SharedGpuStateCoordinator(lab, device, {"x": np.zeros(2)}) as state:
        with pytest.raises(UserCodeError), state.writing() as held:
            held["x"] = device.run(broken, held["x"])
        lease = state.acquire("write").result(60)
        for wrong in ({}, {"x": np.zeros(1), "y": np.zeros(1)}):
            with pytest.raises(InvalidArgument, match=r"\['x'\]"):
                state.commit(lease, wrong)
        assert state.release(lease).result(60)
        reader = state.acquire("read").result(60)
        with pytest.raises(InvalidArgument, match="write"):
            state.commit(reader, {"x": np.zeros(2)})
        waiting = state.acquire("write")
        waiting.cancel()
        with pytest.raises(Cancelled):
            waiting.result(60)
        with pytest.raises(InvalidArgument, match="acquired"):
            state.ask("x").result(60)
        for options in ({"lease_s": 0}, {"use": "own"}):
            with pytest.raises(InvalidArgument):
                state.acquire(**{"use": "read", **options})  # type: ignore[arg-type]
        assert state.snapshot().generation == 1


def test_each_write_counts_once_while_contexts_are_killed(lab: System, device: Device) -> None:
    """A write that meets a fault fails typed and changes nothing; all others add one."""
    with SharedGpuStateCoordinator(lab, device, {"x": np.zeros(8)}) as state:
        before = device.generation

        class Written:
            """The outcome of one write, as a reply has it."""

            def __init__(self, number: int) -> None:
                self.number = number

            def result(self, timeout_s: float) -> bool:
                with state.writing(timeout_s=timeout_s) as held:
                    if self.number in (3, 7):
                        lab.inject("kill").add_waiter(lambda: None)
                    held["x"][:] = held["x"] + 1.0
                return True

        found = load(Written, 12, threads=3)  # type: ignore[arg-type]
        assert device.generation > before
        done = sum(one is True for one in found.values())
        assert all(one is True or isinstance(one, AccelError) for one in found.values())
        assert done >= 8
        newest = state.snapshot()
        assert newest.generation == 1 + done
        np.testing.assert_array_equal(newest.state["x"].get(), np.full(8, float(done)))
