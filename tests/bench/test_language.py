"""What is told of tokens a second is measured by a command that can be repeated."""

import json
from pathlib import Path

import pytest

from tests.benchmarks.language import main


def test_a_rate_is_measured_beside_the_products(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "row.json"
    assert main(["--random", "--tokens", "3", "--json", str(kept)]) == 0
    row = json.loads(kept.read_text())
    rates = ("tokens_per_s", "products_per_s", "ratio", "first_s", "texts_tokens_per_s")
    assert min(*map(row.get, rates), row["texts_ratio"]) > 0
    assert row["texts"] == 16
    assert capsys.readouterr().out.startswith(f"{row['device']} | first_s ")
