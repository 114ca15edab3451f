"""What a trainer tells of a step: where its time went, and how large its batch was."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab.blueprints.train.telling import _amount, spent
from accel_lab.compute.events.collectives import CollectiveEnded

RANKS = ("gpu0", "gpu1")
TICKS = 40


def ended(begin: int, waited: tuple[int, int], took: int, failure: str = "") -> CollectiveEnded:
    """Return an operation in whole seconds."""
    return CollectiveEnded(
        at=float(begin + max(waited) + took),
        world="w",
        epoch=1,
        group=1,
        call="all_reduce",
        algorithm="ring",
        dtype="float32",
        nbytes=4,
        waited_s=tuple(map(float, waited)),
        seconds=float(max(waited) + took),
        bus_gb_s=1.0,
        failure=failure,
        ranks=RANKS,
    )


def by_moments(operations: list[CollectiveEnded], since: int) -> tuple[list[float], list[float]]:
    """Ask of each second and rank whether it was in an operation, and whether all were."""
    exchanging, waiting = [0.0, 0.0], [0.0, 0.0]
    for rank in (0, 1):
        for moment in range(since, TICKS):
            for one in operations:
                begin = one.at - one.seconds
                if begin + one.waited_s[rank] <= moment < one.at:
                    together = moment >= begin + max(one.waited_s)
                    (exchanging if together else waiting)[rank] += 1
                    break
    return exchanging, waiting


late = st.integers(0, 5).flatmap(lambda n: st.sampled_from([(0, n), (n, 0)]))


@given(
    operations=st.lists(st.builds(ended, st.integers(0, 20), late, st.integers(0, 8)), max_size=6),
    since=st.integers(0, 12),
)
def test_of_what_overlaps_each_moment_counts_once(
    operations: list[CollectiveEnded], since: int
) -> None:
    exchanging, waiting = spent(RANKS, operations, float(since))
    for rank in (0, 1):
        busy = {
            moment
            for one in operations
            for moment in range(since, TICKS)
            if one.at - one.seconds + one.waited_s[rank] <= moment < one.at
        }
        assert exchanging[rank] + waiting[rank] == len(busy)
        assert min(exchanging[rank], waiting[rank]) >= 0


@given(
    parts=st.lists(st.tuples(st.integers(0, 3), late, st.integers(0, 3)), max_size=3),
    since=st.integers(0, 12),
)
def test_what_comes_one_after_the_other_is_shared_out_by_moments(
    parts: list[tuple[int, tuple[int, int], int]], since: int
) -> None:
    operations, at = [], 0
    for gap, waited, took in parts:
        operations.append(ended(at + gap, waited, took))
        at = int(operations[-1].at)
    expected = by_moments(operations, since)
    assert tuple(map(list, spent(RANKS, operations, float(since)))) == expected


def test_other_devices_and_failed_operations_count_nothing() -> None:
    operations = [ended(0, (0, 3), 4), ended(10, (0, 1), 4, failure="gpu1 lost its context")]
    assert spent(("gpu1", "gpu7"), operations, 0.0) == ((4.0, 0.0), (0.0, 0.0))
    assert spent(RANKS, operations, 0.0) == ((4.0, 4.0), (3.0, 0.0))


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        ((np.zeros((8, 24), "int64"), np.zeros((8, 24), "int64")), (192, "tokens")),
        ((np.zeros((60, 64), "float32"), np.zeros(60, "int64")), (60, "rows")),
        ((np.zeros((5, 8, 8), "uint8"),), (5, "rows")),
        ((np.zeros(7, "int64"),), (7, "rows")),
        ((0.5, np.zeros((3, 2))), (3, "rows")),
        ((0.5,), (0, "")),
        ((), (0, "")),
    ],
)
def test_a_batch_has_rows_or_tokens(batch: Any, expected: tuple[int, str]) -> None:
    assert _amount(batch) == expected
