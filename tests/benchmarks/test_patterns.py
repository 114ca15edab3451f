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
