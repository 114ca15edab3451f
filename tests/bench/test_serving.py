"""What is told of serving is measured by a command that can be repeated."""

import json
from pathlib import Path

from tests.benchmarks.serving import main


def test_clients_are_measured_alone_together_and_under_a_kill(tmp_path: Path) -> None:
    kept = tmp_path / "row.json"
    given = [
        "--random",
        "small",
        "--clients",
        "3",
        "--requests",
        "2",
        "--tokens",
        "4",
        "--rounds",
        "1",
    ]
    assert main([*given, "--json", str(kept)]) == 0
    row = json.loads(kept.read_text())
    rates = ("one_tokens_per_s", "tokens_per_s", "ratio", "p99_s", "p99_under_a_kill_s")
    assert min(*map(row.get, rates), row["restart_s"]) > 0
    assert row["clients"] == 3
