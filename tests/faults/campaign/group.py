"""Devices that share state: one is struck, and all lose their contexts, whatever they are at."""

import re
import signal

from accel_lab.errors import AccelError, ContextLost
from tests.faults.campaign import outside_faults as faults
from tests.faults.campaign.plan import NEIGHBOUR, Round, groups
from tests.faults.campaign.scenes import WORKING, Campaign
from tests.faults.campaign.stage import Stage
from tests.faults.campaign.twin import Sent
from tests.faults.campaign.verdict import moves


class Group(Campaign):
    """Plays rounds on a system whose strategy is `all_for_one`."""

    def complete(self, seed: int, times: int) -> str:
        """Have the loss of another meet every family in every phase so often."""
        devices = len(self._lab.devices)

        def late(attempt: int) -> list[Round]:
            lacking = self.bench.coverage.lacking([NEIGHBOUR], WORKING, times)
            return groups(seed + attempt, devices, lacking)

        rounds = late(0)
        return self.report(rounds, [NEIGHBOUR], self.play(rounds, late))

    def _cast(self, scenes: Round) -> list[Stage]:
        stages = [GroupStage(self.bench, self.bench.twins[place], scene) for place, scene in scenes]
        (striker,) = [stage for stage in stages if stage.scene.fault != NEIGHBOUR]
        for stage in stages:
            stage.striker = striker
        return [*stages]

    def _act(self, stages: list[Stage]) -> None:
        for stage in stages:
            stage.make_ready()
        for stage in sorted(stages, key=lambda stage: stage.haste):
            stage.enter()
        for stage in stages:
            stage.meet()
        for stage in sorted(stages, key=lambda stage: stage.scene.fault == NEIGHBOUR):
            stage.cause()
            stage.release()


class GroupStage(Stage):
    """A scene on one device of a group, all of which lose their contexts with the striker's."""

    striker: "GroupStage"

    def __repr__(self) -> str:
        return f"<{self.scene} on {self.device!r}, struck by {self.striker.scene}>"

    def _lose_first(self) -> None:
        """Have the striker's context lost, whichever of them comes first, and all with it."""
        # The striker's is the first to move: once it has, its next context must not be hit.
        if self.striker.device.generation == self.striker.generation:
            faults.send_signal(self.striker.device, signal.SIGKILL)
        assert faults.until(lambda: self.device.generation > self.generation), self.device

    def release(self) -> None:
        """Let go of what has been lost; the striker's loss may only be noticed then."""
        least, _ = self._moves()
        if self is not self.striker:
            assert faults.until(lambda: self.device.generation >= self.generation + least), self
        super().release()

    def _moves(self) -> tuple[int, int]:
        least, most = moves(self.striker.scene)
        if self is not self.striker:  # a start that fails takes along those that have begun
            most += self.striker.failing_starts
        return least, most

    def _may(self, sent: Sent, error: AccelError) -> bool:
        """Who is taken along is told by whom."""
        if self is not self.striker and isinstance(error, ContextLost):
            cause = error.__cause__
            assert isinstance(cause, ContextLost), (sent, error, self.striker.scene)
            told = rf"{self.striker.device.name}( of \w+)? lost"
            assert re.match(told, str(cause)), (
                error,
                cause,
            )
        return super()._may(sent, error)
