"""The campaign: all faults in all phases of the work of several devices, as planned.

After every scene each request has had its one answer, the generation has moved as it should, and
what is in the buffers is what NumPy says; at checkpoints nothing is left of what was dropped or
lost: no process, thread, descriptor, mapping, block of the arena, or buffer.
"""

import gc
import sys
from collections import Counter
from itertools import pairwise

from accel_lab import System
from accel_lab.compute.events import GenerationChanged
from accel_lab.errors import AccelError
from tests.faults.campaign_faults import until
from tests.faults.campaign_plan import Round
from tests.faults.campaign_stage import WAIT_S, Bench, Stage
from tests.faults.conftest import Census, census, no_more_than, settle, turns_are_usual

CHECK_EVERY = 50
ARENA_BYTES = 16 << 20


class Campaign:
    """Plays a plan on a system."""

    def __init__(self, lab: System, repeat: str, *, rebuilds: bool = False) -> None:
        self.bench = Bench(lab, rebuilds=rebuilds)
        self._lab = lab
        self._repeat = repeat
        self._baseline: Census | None = None
        self.background: Counter[str] = Counter()

    def play(self, rounds: list[Round]) -> None:
        """Play every round, and check the balance now and then."""
        try:
            for number, scenes in enumerate(rounds):
                self._play(number, scenes)
                if number % CHECK_EVERY == 0:
                    self.check()
            self.check()
        finally:
            self.bench.close()

    def _play(self, number: int, scenes: Round) -> None:
        stages = [Stage(self.bench, self.bench.twins[place], scene) for place, scene in scenes]
        try:
            for stage in sorted(stages, key=lambda stage: stage.haste):
                stage.prepare()
            for stage in stages:
                stage.strike()
            for stage in stages:
                stage.finish()
        except BaseException as error:
            error.add_note(f"in round {number}: {scenes}\nrepeat with {self._repeat}")
            for stage in stages:
                stage.after.close()
            raise

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
        assert turns_are_usual(), sys.getswitchinterval()
        if self._baseline is None:
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
