"""The measurement of a session that is killed and opened again, at a small size."""

import json
from pathlib import Path

import numpy as np
import pytest

from accel_lab import System
from tests.benchmarks.reopen import __main__ as reopen
from tests.benchmarks.reopen.notebook import compared
from tests.benchmarks.reopen.values import digest, values

MIB = 1 << 20


def test_a_killed_sessions_names_are_equal_on_host(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reopen, "SIDE", 64)
    told = tmp_path / "row.json"
    arguments = ["--gib", "0.002", "--uploads", "0.3", "--json", str(told), "--folder"]
    assert reopen.main([*arguments, str(tmp_path), "--then", "host"]) == 0
    row = json.loads(told.read_text())
    assert (row["lost"], row["differs"]) == ({}, [])
    assert {one["verdict"] for one in row["compared"].values()} == {"equal"}
    assert 0.0018 < row["nbytes"] / 2**30 < 0.0022
    assert row["gb_s"] > 0
    assert "all are equal" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == [told]


def test_a_session_is_of_the_size_and_the_parts_that_were_asked_for() -> None:
    made = values(400 * MIB, 0.5, 16)
    sizes = {one.name: 4 * one.numbers for one in made if "_" in one.name}
    assert abs(sum(sizes.values()) - 400 * MIB) < MIB
    uploaded = {one.name for one in made if one.is_uploaded}
    assert sum(sizes[name] for name in uploaded) == pytest.approx(200 * MIB, rel=1e-3)
    assert {name.partition("_")[0] for name in uploaded} == {"sent", "kept"}
    assert min(size for name, size in sizes.items() if name.startswith("kept")) > 64 * MIB


def test_a_digest_tells_values_and_their_places_apart() -> None:
    x = np.arange(1, 1000, dtype=np.float32)
    other = x.copy()
    other[[3, 500]] = other[[500, 3]]
    close = x.copy()
    close[998] = np.nextafter(close[998], 0)
    assert len({digest(one) for one in (x, other, close, x[:-1])}) == 4
    assert digest(x) == digest(x.copy())


def test_what_differs_is_told_with_its_place(tmp_path: Path) -> None:
    was = np.linspace(1, 2, 100, dtype=np.float32)
    np.save(tmp_path / "x.npy", was)
    now = was.copy()
    now[7] += np.float32(1e-3)
    with System("host", 1) as lab:
        names = {"x": lab.devices[0].put(now)}
        told = compared(tmp_path, names, {"x": 8.0})["x"]
        assert (told["verdict"], told["most_at"]) == ("differs", 7)
        within = compared(tmp_path, names, {"x": 1e4})["x"]
        assert within["verdict"] == "within tolerance"
    assert reopen.fits("wave_3", within)
    assert not reopen.fits("uniform_3", within)
    assert not reopen.fits("wave_3", told)
