"""What is told of simulations and trainers is measured by commands that can be repeated."""

import json
from pathlib import Path

import pytest

from tests.benchmarks import simulations, trainers


@pytest.mark.slow
def test_every_simulation_has_a_rate(tmp_path: Path) -> None:
    kept = tmp_path / "rows.json"
    given = ["--backend", "host", "--small", "--rounds", "1", "--json", str(kept)]
    assert simulations.main(given) == 0
    rows = json.loads(kept.read_text())
    assert len(rows) == 6
    assert min(rows.values()) > 0


@pytest.mark.slow
def test_a_trainer_is_beside_torchrun(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    kept = tmp_path / "rows.json"
    given = ["--backend", "host", "--size", "small", "--devices", "2", "--steps", "2"]
    assert trainers.main([*given, "--rounds", "1", "--json", str(kept)]) == 0
    one, two = json.loads(kept.read_text())
    assert (one["devices"], two["devices"]) == (1, 2)
    assert one["scaling by DDP's"] == 1 < 99 * two["scaling by DDP's"]
    assert min(min(row.values()) for row in (one, two)) > 0
