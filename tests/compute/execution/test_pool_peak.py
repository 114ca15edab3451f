"""The peak of a made-up pool, beside what it really had in use at most."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab.compute.execution.backend import Peak
from accel_lab.compute.execution.pool_peak import CHEAP_S, SLACK_BYTES, SLACK_SHARE, PoolPeak

MIB = 1 << 20


TIME = [0.0]


@pytest.fixture(autouse=True, scope="module")
def _clock() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("accel_lab.compute.execution.pool_peak.perf_counter", lambda: TIME[0])
        yield


class Pool:
    """Pieces in use; it counts how often it was asked, which takes its time."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.pieces: list[int] = []
        self.asked = 0
        self._seconds = seconds

    def used(self) -> int:
        self.asked += 1
        TIME[0] += self._seconds
        return sum(self.pieces)


@given(
    st.lists(st.integers(1, 64).map(lambda n: n * MIB // 8), max_size=8),
    st.lists(st.tuples(st.integers(512, 4 * MIB).map(lambda n: n // 512 * 512), st.integers(0, 3))),
)
def test_what_is_told_is_the_maximum_but_for_the_slack(
    first: list[int], steps: list[tuple[int, int]]
) -> None:
    pool = Pool()
    pool.pieces = list(first)
    count = PoolPeak(pool.used)
    most = sum(first)
    for nbytes, freed in steps:
        pool.pieces.append(nbytes)
        count.took(nbytes)
        most = max(most, sum(pool.pieces))
        del pool.pieces[:freed]
    told = count.tell()
    assert told.before_bytes == sum(first)
    assert told.most_bytes <= most
    assert most - told.most_bytes <= max(SLACK_BYTES, told.most_bytes // SLACK_SHARE)


def test_a_large_piece_is_told_to_the_byte() -> None:
    pool = Pool()
    count = PoolPeak(pool.used)
    pool.pieces.append(256 * MIB)
    count.took(256 * MIB - 100)
    pool.pieces.clear()
    assert count.tell() == Peak(0, 256 * MIB, "in use")


def test_small_pieces_seldom_have_the_pool_asked() -> None:
    pool = Pool()
    count = PoolPeak(pool.used)
    for _ in range(6400):
        pool.pieces = [16384]
        count.took(16384)
    assert pool.asked <= 2 + 6400 * 16384 // SLACK_BYTES


def test_a_pool_that_answers_slowly_is_asked_less_often() -> None:
    asked = []
    for seconds in (0.0, 10 * CHEAP_S):
        pool = Pool(seconds)
        count = PoolPeak(pool.used)
        for _ in range(64):
            pool.pieces = [MIB]
            count.took(MIB)
        asked.append(pool.asked)
    quick, slow = asked
    assert slow <= 2 + quick // 5
