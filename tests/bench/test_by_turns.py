"""Two trees are measured by turns, and a row tells how many times as fast the second one is."""

import json
from pathlib import Path

from tests.benchmarks.by_turns import main
from tests.project import ROOT


def test_a_tree_beside_itself(tmp_path: Path) -> None:
    kept = tmp_path / "rows.json"
    given = ["--only", "ping", "--rounds", "1", "--json", str(kept)]
    assert main([str(ROOT), str(ROOT), *given]) == 0
    rows = {row["name"]: row for row in json.loads(kept.read_text())}
    assert {"ping-result-p50", "ping-await-p50"} <= rows.keys()
    for row in rows.values():
        assert row["times as fast"] == row["first"] / row["second"] > 0
