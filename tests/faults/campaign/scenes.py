"""The campaign: all faults in all phases of the work of several devices, as planned.

After every scene each request has had its one answer, the generation has moved as it should, and
what is in the buffers is what NumPy says; at checkpoints nothing is left of what was dropped or
lost: no process, thread, descriptor, mapping, block of the arena, or buffer.
"""

import gc
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Literal

from accel_lab import System
from accel_lab.compute.events.lifecycle import GenerationChanged
from accel_lab.compute.supervision.restart_groups import Supervision
from accel_lab.errors import AccelError
from tests.faults.campaign.outside_faults import until
from tests.faults.campaign.plan import FAULTS, PHASES, Round, digest, supplement
from tests.faults.campaign.stage import WAIT_S, Bench, Stage
from tests.faults.campaign.store import LIMIT_BYTES, Fickle
from tests.faults.conftest import Census, census, no_more_than, settle, turns_are_usual

TIMES = int(os.environ.get("ACCEL_LAB_TIMES", "1"))
"""How often each fault meets each family in each phase; 5 times for `docs/reliability.md`."""
CHECK_EVERY = 50
ATTEMPTS = 3
ARENA_BYTES = 16 << 20
WORKING = PHASES[:-1]

Late = Callable[[int], list[Round]]


def opened(
    devices: int,
    store: Fickle,
    recover: Literal["stale", "replay"],
    strategy: Supervision = "one_for_one",
) -> System:
    """Open a system that no number of losses wears out, for a campaign on `host`."""
    return System(
        "host",
        devices,
        max_restarts=1_000_000,
        within_s=0.001,
        arena_bytes=ARENA_BYTES,
        journal=store,
        journal_bytes=LIMIT_BYTES,
        recover=recover,
        strategy=strategy,
    )


class Campaign:
    """Plays a plan on a system.

    Parameters:
        store: of the system's journal.
        repeat: how to do it again.
        rebuilds: whether the system makes buffers again after a loss.
    """

    def __init__(self, lab: System, store: Fickle, repeat: str, *, rebuilds: bool = False) -> None:
        self.bench = Bench(lab, store, rebuilds=rebuilds)
        self._lab = lab
        self._repeat = repeat
        self._began = time.perf_counter()
        self._baseline: Census | None = None
        self.background: Counter[str] = Counter()

    def play_until_met(self, rounds: list[Round], seed: int, times: int) -> str:
        """Have every fault meet every family in every phase so often; returns what was done."""
        devices = len(self._lab.devices)

        def late(attempt: int) -> list[Round]:
            lacking = self.bench.coverage.lacking(FAULTS, WORKING, times)
            return supplement(seed + attempt, devices, lacking)

        return self.report(rounds, FAULTS, self.play(rounds, late))

    def play(self, rounds: list[Round], late: Late = lambda _: []) -> int:
        """Play every round, and what was late; check the balance now and then.

        Parameters:
            late: returns what has to be played again, for whichever attempt.

        Returns how many rounds those were.
        """
        again = 0
        try:
            self._play_all(rounds)
            for attempt in range(1, ATTEMPTS + 1):
                more = late(attempt)
                if not more:
                    break
                again += len(more)
                self._play_all(more)
        finally:
            self.bench.close()
        return again

    def report(self, rounds: list[Round], faults: Iterable[str], again: int) -> str:
        """Say what was done, with how often each fault met the families."""
        bench, losses = self.bench, sum(device.generation - 1 for device in self._lab.devices)
        return (
            f"\n{self._repeat}, plan {digest(rounds)}: {bench.steps} steps, {losses} losses, "
            f"{again} rounds again, {time.perf_counter() - self._began:.0f} s\n"
            f"answers: {dict(bench.outcomes)}\n{bench.coverage.table(faults, WORKING)}\n"
        )

    def _play_all(self, rounds: list[Round]) -> None:
        for number, scenes in enumerate(rounds):
            self._play(number, scenes)
            if number % CHECK_EVERY == 0:
                self.check()
        self.check()

    def _play(self, number: int, scenes: Round) -> None:
        stages = self._cast(scenes)
        try:
            self._act(stages)
            for stage in sorted(stages, key=lambda stage: stage.scene.fault == "hang"):
                stage.finish()  # what takes longest last
        except BaseException as error:
            error.add_note(f"in round {number}: {scenes}\nrepeat with {self._repeat}")
            for stage in stages:
                stage.after.close()
            raise

    def _cast(self, scenes: Round) -> list[Stage]:
        return [Stage(self.bench, self.bench.twins[place], scene) for place, scene in scenes]

    def _act(self, stages: list[Stage]) -> None:
        """Set the scenes of a round, and have the faults strike."""
        for stage in sorted(stages, key=lambda stage: stage.haste):
            stage.prepare()
        for stage in stages:
            stage.strike()

    def check(self) -> None:
        """Drop everything; nothing of it is left."""
        bench, lab = self.bench, self._lab
        for twin in bench.twins:
            twin.drop()
            bench.senders.drop(twin)
        gc.collect()
        self._check_background()
        for device in lab.devices:
            assert until(lambda d=device: d.state == "running", WAIT_S), device  # type: ignore[misc]
            Stage.empty_of(device)
            assert until(lambda d=device: d.in_flight == 0), device  # type: ignore[misc]
            changes = [e for e in lab.events.history(GenerationChanged) if e.device == device.name]
            assert all(e.after == e.before + 1 for e in changes)
            assert all(a.after == b.before for a, b in pairwise(changes))
        assert settle(lambda: lab.arena().blocks == 0), lab.arena()
        lab.flush()
        store = bench.store
        assert (store.away, store.gaps, lab.journal.damage) == (0, 0, None), store
        assert turns_are_usual(), sys.getswitchinterval()
        if self._baseline is None:
            lab.empty(3 << 20)  # the arena's second segment is there by then, or is made for this
            self._baseline = census()
        baseline = self._baseline
        assert settle(lambda: no_more_than(baseline)), (census(), baseline)

    def _check_background(self) -> None:
        """What failed and was not awaited is known, and is an AccelError."""
        found: list[Exception] = []
        try:
            self._lab.check()
        except AccelError as error:
            found = [error]
        except ExceptionGroup as group:
            found = list(group.exceptions)
        assert all(isinstance(error, AccelError) for error in found), found
        self.background.update(type(error).__name__ for error in found)
