"""What is told of batching is measured by a command that can be repeated."""

import json
from pathlib import Path

import pytest

from tests.benchmarks.patterns import WAITS_S, main


def test_every_way_and_every_wait_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "rows.json"
    given = ["--clients", "4", "--requests", "16", "--rounds", "1", "--json", str(kept)]
    assert main(given) == 0
    rows = json.loads(kept.read_text())
    assert [row["way"] for row in rows[:3]] == ["direct", "batches of 1", "batches of 4"]
    assert all(row["requests a second"] > 0 for row in rows[:3])
    assert [row["max_wait_s"] for row in rows[3:]] == list(WAITS_S)
    assert all(row["median"] >= 1 for row in rows[3:])
    assert len(capsys.readouterr().out.splitlines()) == len(rows)


def test_a_kill_is_measured_beside_a_restart(tmp_path: Path) -> None:
    kept = tmp_path / "rows.json"
    given = ["--kill", "--clients", "4", "--requests", "80", "--rounds", "1", "--devices", "2"]
    assert main([*given, "--json", str(kept)]) == 0
    rows = json.loads(kept.read_text())
    assert [row["way"] for row in rows] == ["batches, 2 devices", "pool, 2 devices"]
    for row in rows:
        assert row["failed"] == 0
        assert min(row["p99 s"], row["p99 under a kill s"], row["restart s"]) > 0
