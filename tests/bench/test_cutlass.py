"""The rates of CUTLASS's products are measured beside cuBLASLt's, for every dtype and size."""

import json
from pathlib import Path

import pytest

from tests.benchmarks.products.cutlass import DTYPES, main


def test_every_dtype_and_size_has_both_rates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.benchmarks.products.cutlass.TURN_S", 0.001)
    kept = tmp_path / "rows.json"
    assert main(["--backend", "host", "--sizes", "16", "32", "--json", str(kept)]) == 0
    rows = json.loads(kept.read_text())
    assert [(row["dtype"], row["size"]) for row in rows] == [
        (d, n) for d in DTYPES for n in (16, 32)
    ]
    assert all(row["cutlass"] > 0 and row["blas_lt"] > 0 and row["ratio"] > 0 for row in rows)
    assert len(capsys.readouterr().out.splitlines()) == len(rows) + 2
