"""Systems that are closed in the middle of everything: each device in some phase, with some fault.

A fault comes just before the close, or from another thread while it goes on.
"""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator

from accel_lab import System
from accel_lab.errors import ContextLost, StaleRef, SystemClosed
from tests.faults.campaign.plan import CLOSE, Coverage, Round
from tests.faults.campaign.scenes import ARENA_BYTES
from tests.faults.campaign.stage import Bench, Stage
from tests.faults.campaign.store import Fickle

CLOSE_LIMIT_S = 5.0


class Closing:
    """Plays one round on a system of its own, and closes that."""

    def __init__(self, coverage: Coverage, outcomes: Counter[str], repeat: str) -> None:
        self.coverage = coverage
        self.outcomes = outcomes
        self.steps = 0
        self._repeat = repeat

    def play(self, backend: str, scenes: Round) -> None:
        """Close a system whose devices are all at work."""
        store = Fickle()
        with System(
            backend,
            len(scenes),
            max_restarts=1_000_000,
            within_s=0.001,
            arena_bytes=ARENA_BYTES,
            journal=store,
            recover="replay",
        ) as lab:
            bench = Bench(lab, store, rebuilds=True)
            stages = [ClosingStage(bench, bench.twins[place], scene) for place, scene in scenes]
            try:
                for stage in sorted(stages, key=lambda stage: stage.haste):
                    with self._named(stage):
                        stage.prepare()
                self._close(lab, stages)
                for stage in stages:
                    with self._named(stage):
                        stage.finish()
            finally:
                for stage in stages:
                    stage.after.close()
                    if stage.held is not None:
                        stage.held.tell()
                bench.close()
        self.outcomes.update(bench.outcomes)
        self.steps += bench.steps + 1

    def _close(self, lab: System, stages: "list[ClosingStage]") -> None:
        for stage in stages:
            met, phase = stage.met(), stage.scene.phase
            self.coverage.add(CLOSE, phase, [stage.scene.family] if phase == "running" else met)
            self.coverage.add(stage.scene.fault, "closing", met)
        # Nobody comes to a gate of a system that is being closed.
        early = [stage for stage in stages if stage.scene.variant % 2 or stage.late]
        late = [stage for stage in stages if stage not in early]
        for stage in early:
            with self._named(stage):
                stage.strike()
        began = time.monotonic()
        closer = threading.Thread(target=lab.close)
        closer.start()
        for stage in late:
            with self._named(stage):
                stage.strike()
        closer.join(CLOSE_LIMIT_S)
        took_s = time.monotonic() - began
        assert not closer.is_alive(), lab.tree()
        assert took_s < CLOSE_LIMIT_S

    @contextlib.contextmanager
    def _named(self, stage: "ClosingStage") -> Iterator[None]:
        """Say of a failure whose it is."""
        try:
            yield
        except BaseException as error:
            error.add_note(f"in {stage.scene} on {stage.device!r}\nrepeat with {self._repeat}")
            raise


class ClosingStage(Stage):
    """A scene that ends with its system, which comes before any deadline."""

    deadline_s = 30.0

    def met(self) -> list[str]:
        """Return the families that wait for an answer."""
        return [s.family for s in self.sent if s.reply is None or not s.reply.done]

    def strike(self) -> None:
        """Cause the fault; that the system is closed may forbid it."""
        self.closing = True
        self.bench.steps += 1
        if self.scene.fault == CLOSE:
            self.after.close()
            return
        try:
            super().strike()
        except SystemClosed:
            self.after.close()  # there was nothing left to strike

    def finish(self) -> None:
        """Each request has one answer, and nothing can be sent any more."""
        for sent in self.sent:
            self._outcome(sent)
            if sent.error is not None:
                assert self._may(sent, sent.error), (sent, repr(sent.error), self.scene)
        for reply in self.others:
            self._answer(reply)
        for _, _, error in self.refused:
            assert isinstance(error, StaleRef | ContextLost | SystemClosed), error
        try:
            self.device.ping()
        except SystemClosed:
            return
        raise AssertionError(f"{self.device!r} takes messages")
