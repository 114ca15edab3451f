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
    assert min(row["tokens_per_s"], row["products_per_s"], row["ratio"], row["first_s"]) > 0
    assert capsys.readouterr().out.startswith(f"{row['device']} | first_s ")
