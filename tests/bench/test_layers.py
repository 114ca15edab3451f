"""The benchmark of layers runs as it stands, on small extents."""

import json
from pathlib import Path

import pytest

from tests.benchmarks import layers


def test_every_row_has_ours_and_a_peer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    told = tmp_path / "rows.json"
    assert layers.main(["--backend", "host", "--small", "--json", str(told)]) == 0
    rows = json.loads(told.read_text())
    assert len(rows) == 8
    assert all(len(one) > 1 and min(one.values()) > 0 for one in rows.values())
    pages = {what: one for what, one in rows.items() if what.startswith(layers.DECODE)}
    assert [*pages] == ["decode, pages of 16", "decode, pages of 64"]
    assert all({*one} == {"ours", "torch copy"} for one in pages.values())
    out = capsys.readouterr().out
    for what, one in pages.items():  # 2 sequences of 2 heads, 64 tokens of 16 float32, twice
        rate = 2 * 4 * 2 * 2 * 64 * 16 / one["ours"] / 1e9
        assert f"{what}: 3.277e-05 GB of keys and values, {rate:.4g} GB/s; a copy has " in out
