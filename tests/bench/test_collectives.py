"""The benchmark of collective operations runs as it stands, on small arrays."""

import json
from pathlib import Path

import pytest

from tests.benchmarks.collectives import CALLS, LARGE, LEAST, MOST, Case, cases, main, row


def test_each_call_is_beside_pytorchs_and_copies_are_told(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    told = tmp_path / "rows.json"
    given = ["--backend", "host", "--ranks", "2", "--most", str(LEAST), "--json", str(told)]
    assert main(given) == 0
    rows = json.loads(told.read_text())["rows"]
    assert [one["call"] for one in rows] == [*CALLS, "peer copy"]
    assert all(one["seconds"] > 0 and one["bus_gb_s"] > 0 for one in rows)
    assert all(one["ratio"] > 0 for one in rows[:-1])
    assert [one["call"] for one in rows if "goal" in one] == ["all_reduce"]


def test_what_has_a_goal_is_a_small_all_reduce_and_all_that_is_large() -> None:
    large = [LARGE, 4 * LARGE, MOST]
    expected = {(call, nbytes) for call in CALLS for nbytes in large} | {("all_reduce", LEAST)}
    assert set(cases(MOST, goals=True)) == expected
    assert set(cases(MOST)) > expected


@pytest.mark.parametrize(
    ("case", "slower", "met"),
    [
        (Case("all_reduce", LEAST), 1.49, True),
        (Case("all_reduce", LEAST), 1.51, False),
        (Case("all_gather", LARGE), 0.99, True),
        (Case("all_gather", LARGE), 1.01, False),
        (Case("peer copy", LARGE), 1.04, True),
        (Case("peer copy", LARGE), 1.06, False),
    ],
)
def test_a_goal_is_met_by_how_much_slower_it_is(case: Case, slower: float, *, met: bool) -> None:
    assert row(case, 2, slower, 1.0)["met"] == met
    assert "met" not in row(case, 2, slower, None)
