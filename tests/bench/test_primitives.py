"""The rates of primitives are measured beside a peer's, for every case."""

import json
from pathlib import Path

import pytest

from tests.benchmarks.primitives import CASES, main


def test_every_case_has_a_rate_and_a_peer_s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "rows.json"
    given = ["--backend", "host", "--elements", "1000", "--loops", "1", "--json", str(kept)]
    assert main(given) == 0
    rows = json.loads(kept.read_text())
    assert [(row["call"], row["dtype"]) for row in rows] == [(c.call, c.dtype) for c in CASES]
    assert all(row["seconds"] > 0 and row["numpy"] > 0 for row in rows)
    assert len(capsys.readouterr().out.splitlines()) == len(CASES) + 2
