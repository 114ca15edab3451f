"""What the doctor measures of the machine itself."""

from pathlib import Path

import pytest

from accel_lab.doctor import machine as module
from accel_lab.doctor.cgroup import ControlGroup
from accel_lab.doctor.machine import machine, size
from tests.doctor.filing import by_name

GIB = 2**30


def test_machine_is_measured() -> None:
    machine_ = by_name(machine())
    assert all(finding.state != "missing" for finding in machine_.values())
    memory = machine_["memory"].size_bytes
    assert memory is not None
    assert memory > GIB // 4


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (8 * 2**20, "8 MiB"),
        (1.5 * GIB, "1.5 GiB"),
        (2**50, "1024 TiB"),
    ],
)
def test_sizes_are_written_with_binary_units(count: float, text: str) -> None:
    assert size(count) == text


def control_group(root: Path, membership: str, files: dict[str, str]) -> ControlGroup:
    (root / "membership").write_text(membership)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return ControlGroup(root, root / "membership")


def test_smallest_limit_of_nested_groups_counts(tmp_path: Path) -> None:
    group = control_group(
        tmp_path,
        "0::/user/lab\n",
        {
            "user/lab/memory.max": "max\n",
            "user/memory.max": f"{4 * GIB}\n",
            "memory.max": f"{8 * GIB}\n",
            "user/lab/cpu.max": "150000 100000\n",
            "user/cpu.max": "max 100000\n",
        },
    )
    assert group.memory_bytes() == 4 * GIB
    assert group.cores() == 1.5


def test_limits_of_version_1_are_read(tmp_path: Path) -> None:
    group = control_group(
        tmp_path,
        "4:memory:/box\n1:cpu,cpuacct:/box\n0::/\n",
        {
            "memory/memory.limit_in_bytes": "9223372036854771712\n",
            "memory/box/memory.limit_in_bytes": f"{2 * GIB}\n",
            "cpu/box/cpu.cfs_quota_us": "50000\n",
            "cpu/box/cpu.cfs_period_us": "100000\n",
        },
    )
    assert group.memory_bytes() == 2 * GIB
    assert group.cores() == 0.5


def test_machine_without_groups_has_no_limit(tmp_path: Path) -> None:
    group = ControlGroup(tmp_path, tmp_path / "absent")
    assert group.memory_bytes() is None
    assert group.cores() is None


def test_compiler_is_the_one_that_kernels_are_built_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nowhere/g++ -O1")
    compiler = by_name(machine())["compiler"]
    assert compiler.state == "limited"
    assert "/nowhere/g++" in compiler.found
    assert "jit" in compiler.disables


@pytest.mark.parametrize(
    ("script", "found"),
    [
        (b"\x7fELF of no machine", "{}, which CXX names, does not answer"),
        (b"#!/no/such/shell\n", "{}, which CXX names, does not answer"),
        (b"#!/bin/sh\nexec sleep 60\n", "{}, which CXX names, does not answer"),
        (b"#!/bin/sh\nprintf 'g\\374 13.2'\n", "{} 13.2"),
    ],
)
def test_a_compiler_that_does_not_answer_is_told(
    script: bytes, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c++"
    path.write_bytes(script)
    path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))
    monkeypatch.setattr(module, "ANSWER_S", 0.5)
    assert by_name(machine())["compiler"].found == found.format(path)


def test_a_compiler_that_is_no_command_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "'g++ -O1")
    assert by_name(machine())["compiler"].found == "CXX holds no command: No closing quotation"
