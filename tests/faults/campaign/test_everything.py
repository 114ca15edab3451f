"""Every fault in every phase with every family of messages, and no surprise.

The plan is drawn from a seed, which a failure prints: with it in ACCEL_LAB_SEED, and as many times
in ACCEL_LAB_TIMES, the same actions are done again. Each campaign has several contexts at work: in
one file, and so on one worker of xdist, campaigns do not take the cores from one another.
"""

import os
import random
import sys
from collections import Counter
from collections.abc import Callable

import pytest

from tests.conftest import require
from tests.faults.campaign.closing import Closing
from tests.faults.campaign.libraries import WAYS
from tests.faults.campaign.messages import OWN, gated, ways
from tests.faults.campaign.plan import (
    CLOSE,
    ENDINGS,
    FAULTS,
    PHASES,
    Cell,
    Coverage,
    Round,
    Turns,
    closings,
    digest,
    plan,
)
from tests.faults.campaign.scenes import TIMES, WORKING, Campaign, opened
from tests.faults.campaign.store import Fickle

DEVICES, REPLAYED, MANY, STEPS = 3, 6, 22, 1000
SEED = int(os.environ.get("ACCEL_LAB_SEED", "4"))
ANOTHER = int(os.environ.get("ACCEL_LAB_SEED", random.SystemRandom().randrange(1 << 16)))
MORE = 2
"""How often all is met in the campaigns of another seed each time."""


def plans(seed: int, times: int) -> tuple[list[Round], list[Round]]:
    """Draw both campaigns: the second takes the ways to send a message that come next."""
    turns = Turns()
    first = plan(seed, DEVICES, times=times, turns=turns)
    return first, plan(seed + 1, REPLAYED, times=times, turns=turns)


def repeat(seed: int, times: int) -> str:
    return f"ACCEL_LAB_SEED={seed} ACCEL_LAB_TIMES={times}"


@pytest.mark.parametrize("seed", [SEED, ANOTHER], ids=["the seed", "another"])
def test_every_fault_is_dealt_every_way_to_use_a_library(seed: int) -> None:
    """Each way is in flight with each fault, and at the gate of one that ends a context."""
    met: set[tuple[str, str, int]] = set()
    gates: set[str] = set()
    both = [*plans(seed, 1)[0], *plans(seed, 1)[1]]
    for scene in (scene for scenes in both for _, scene in scenes):
        met |= {(scene.fault, m.family, m.turn % ways(m.family)) for m in scene.messages}
        if scene.phase == "running" and scene.fault in ENDINGS:
            gates.update(gated(scene.messages[0]))
    lacking = {(fault, f, way) for fault in FAULTS for f in OWN for way in range(ways(f))} - met
    assert not lacking
    assert {way.kind for kinds in WAYS.values() for way in kinds} <= gates


def every_fault_meets_every_message(seed: int, times: int) -> str:
    """Play the first campaign: what a loss takes is gone."""
    require("compiler")
    store = Fickle()
    with opened(DEVICES, store, "stale") as lab:
        campaign = Campaign(lab, store, repeat(seed, times))
        told = campaign.play_until_met(plans(seed, times)[0], seed, times)
        assert sum(entry.kind == "message" for entry in lab.journal) > STEPS * times // 2
    assert campaign.bench.steps >= STEPS * times
    assert store.refusals >= times
    assert campaign.bench.coverage.lacking(FAULTS, WORKING, times) == {}
    return told


def buffers_come_back(seed: int, times: int) -> str:
    """Play the second campaign, with `recover="replay"`: what was in flight is run again."""
    require("compiler")
    store = Fickle()
    with opened(REPLAYED, store, "replay") as lab:
        campaign = Campaign(lab, store, f"replay, {repeat(seed, times)}", rebuilds=True)
        told = campaign.play_until_met(plans(seed, times)[1], seed, times)
        assert any(entry.kind == "message" for entry in lab.journal)
    assert store.refusals >= times
    assert campaign.bench.coverage.lacking(FAULTS, WORKING, times) == {}
    return told


@pytest.mark.timeout(600)
def test_every_fault_in_every_phase_with_every_message(
    nothing_left: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each request has one answer with a reason, and each buffer what NumPy says."""
    told = every_fault_meets_every_message(SEED, TIMES)
    with capsys.disabled():
        sys.stdout.write(told)


@pytest.mark.timeout(600)
def test_buffers_come_back_whatever_the_fault(
    nothing_left: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Messages that were in flight are run again, too."""
    told = buffers_come_back(SEED, TIMES)
    with capsys.disabled():
        sys.stdout.write(told)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("played", [every_fault_meets_every_message, buffers_come_back])
def test_another_seed_each_time_brings_no_surprise(
    played: Callable[[int, int], str], nothing_left: None, capsys: pytest.CaptureFixture[str]
) -> None:
    told = played(ANOTHER, MORE)
    with capsys.disabled():
        sys.stdout.write(told)


@pytest.mark.timeout(300)
def test_every_system_closes_whatever_its_devices_are_at(
    nothing_left: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Everybody is answered within the five seconds that closing may take."""
    require("compiler")
    coverage, outcomes = Coverage(), Counter[str]()
    rounds = closings(SEED, MANY, times=TIMES)
    closing = Closing(coverage, outcomes, repeat(SEED, TIMES))

    def lacking() -> dict[Cell, int]:
        late = coverage.lacking([*FAULTS, CLOSE], PHASES[-1:], TIMES)
        return coverage.lacking([CLOSE], WORKING, TIMES) | late

    for scenes in rounds:
        closing.play("host", scenes)
    for more in range(6):
        if not lacking():
            break
        # A device was up again, and had answered, before its system was closed.
        for scenes in closings(SEED + 1 + more, MANY, times=TIMES):
            closing.play("host", scenes)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{repeat(SEED, TIMES)}, plan {digest(rounds)}: {closing.steps} steps, "
            f"{len(rounds)} systems\n"
            f"answers: {dict(outcomes)}\n{coverage.table([CLOSE], WORKING)}\n"
            f"{coverage.table([*FAULTS, CLOSE], PHASES[-1:])}\n"
        )
    assert lacking() == {}
