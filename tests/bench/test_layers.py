"""The benchmark of layers runs as it stands, on small extents."""

import json
from pathlib import Path

import pytest

from tests.benchmarks import layers


def test_every_row_has_ours_and_a_peer(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    told = tmp_path / "rows.json"
    assert layers.main(["--backend", "host", "--small", "--json", str(told)]) == 0
    rows = json.loads(told.read_text())
    assert len(rows) == 6
    assert all(one["ours"] > 0 and one["torch"] > 0 for one in rows.values())
