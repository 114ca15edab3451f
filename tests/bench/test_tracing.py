"""The benchmark of tracing, quickly: that it measures each mode, not how fast it is."""

from importlib.util import find_spec

from tests.benchmarks import tracing


def test_each_mode_has_a_row() -> None:
    packages = {"nvtx": "nvtx", "otlp": "opentelemetry", "prometheus": "prometheus_client"}
    wanted = ["off", *(mode for mode, package in packages.items() if find_spec(package))]
    rows = tracing.measure("host", rounds=2, messages=50, only=wanted)
    assert [row["trace"] for row in rows] == wanted
    assert all(row["us"] > 0 and row["ratio"] > 0 for row in rows)
    assert rows[0]["ratio"] == 1
    assert list(tracing.modes("host", ["off", "cupti", "cupti-calls"])) == ["off"]
