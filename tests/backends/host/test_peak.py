"""The most memory that a process had, as the kernel counts it."""

from pathlib import Path

import numpy as np
import pytest

from accel_lab.backends.host.machine import peak

MIB = 1 << 20


def test_what_was_held_only_for_a_while_is_seen() -> None:
    tell = peak.watch_peak()
    held = np.ones(256 * MIB, np.uint8)
    del held
    seen = tell()
    if seen is None:
        pytest.skip("this system does not let a process reset its high-water mark")
    assert seen.kind == "resident"
    assert seen.most_bytes - seen.before_bytes > 128 * MIB


def test_what_was_held_before_is_not() -> None:
    held = np.ones(256 * MIB, np.uint8)
    del held
    seen = peak.watch_peak()()
    if seen is None:
        pytest.skip("this system does not let a process reset its high-water mark")
    assert seen.most_bytes - seen.before_bytes < 128 * MIB


def test_a_system_without_such_a_mark_tells_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(peak, "_PROCESS", tmp_path / "none")
    assert peak.watch_peak()() is None
    (tmp_path / "clear_refs").touch()
    (tmp_path / "status").write_text("Name:\tpython\n")
    monkeypatch.setattr(peak, "_PROCESS", tmp_path)
    assert peak.watch_peak()() is None
