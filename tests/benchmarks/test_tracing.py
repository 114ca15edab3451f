"""The benchmark of tracing, quickly: that it measures each mode, not how fast it is."""

from importlib.util import find_spec

from tests.benchmarks import tracing


def test_each_mode_has_a_row() -> None:
    rows = tracing.measure("host", rounds=2, messages=50)
    expected = ["off", "off again", *(["nvtx"] if find_spec("nvtx") else [])]
    assert [row["trace"] for row in rows] == expected
    assert all(row["us"] > 0 and row["ratio"] > 0 for row in rows)
    assert rows[0]["ratio"] == 1
    assert [
        row["trace"] for row in tracing.measure("host", rounds=2, messages=5, only=["off"])
    ] == ["off"]
