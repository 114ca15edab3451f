"""Packages are found by their metadata, and never imported."""

import sys
from collections.abc import Callable
from importlib import invalidate_caches
from pathlib import Path

import msgspec
import pytest

from accel_lab.display.install import pip_command, pip_install
from accel_lab.doctor import Report
from accel_lab.doctor.packages import core_packages, cuda_packages, jupyter_packages
from tests.bare_python import BarePython
from tests.doctor.filing import by_name
from tests.project import ROOT, requirements

Install = Callable[..., None]


def no_cuda() -> bool:
    return all(finding.state == "missing" for finding in cuda_packages(None))


needs_no_cuda = pytest.mark.skipif(not no_cuda(), reason="CUDA's packages are installed here")


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install packages into this process that end it when they are imported."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(distribution: str, version: str, module: str = "") -> None:
        info = tmp_path / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {distribution}\nVersion: {version}\n")
        if module:
            (tmp_path / module).mkdir(exist_ok=True)
            (tmp_path / module / "__init__.py").write_text("raise SystemExit('imported')\n")
        invalidate_caches()

    return install


def install_cuda(install: Install, major: int) -> None:
    suffix = "-cu12" if major == 12 else ""
    install(f"cupy-cuda{major}x", "14.2.0", "cupy")
    install("cuda-bindings", f"{major}.9.10", "cuda")
    install("cuda-core", "1.2.2")
    install("nvmath-python", "1.0.0", "nvmath")
    install(f"nvidia-cublas{suffix}", f"{major}.1.0.3")
    install(f"nvidia-cuda-nvrtc{suffix}", f"{major}.0.88")
    install("nccl4py", "0.6.0", "nccl")
    install("cuda-cccl", "1.2.1")
    install(f"nvidia-nccl-cu{major}", "2.28.9")


@needs_no_cuda
def test_packages_are_of_no_use_before_there_is_a_driver() -> None:
    assert {"needs the driver first" in f.disables for f in cuda_packages(None)} == {True}
    assert {"needs the driver first" in f.disables for f in cuda_packages((13, 0))} == {False}


@needs_no_cuda
@pytest.mark.parametrize("major", [12, 13])
def test_cuda_packages_are_found_without_importing_them(install: Install, major: int) -> None:
    install_cuda(install, major)
    named = by_name(cuda_packages((13, 0)))
    assert {finding.state for finding in named.values()} == {"ok"}
    assert named["cupy"].found == "14.2.0"
    assert named["cublas"].found == f"{major}.1.0.3"


@needs_no_cuda
@pytest.mark.parametrize(
    ("driver", "extra"),
    [(None, "cuda13"), ((12, 4), "cuda12"), ((13, 0), "cuda13"), ((14, 1), "cuda13")],
)
def test_driver_chooses_the_extra(driver: tuple[int, int] | None, extra: str) -> None:
    for finding in cuda_packages(driver):
        assert finding.state == "missing"
        assert finding.blocks == (
            () if finding.name in {"nccl4py", "cuda-cccl", "nccl"} else ("cuda",)
        )
        assert finding.command == pip_install(extra)


@needs_no_cuda
def test_cupy_for_a_newer_cuda_than_the_driver_does_not_count(install: Install) -> None:
    install_cuda(install, 13)
    named = by_name(cuda_packages((12, 4)))
    assert named["cupy"].state == "missing"
    assert named["cupy"].command == pip_install("cuda12")
    assert named["cupy for another CUDA"].command == pip_command("uninstall cupy-cuda13x")


def test_package_older_than_needed_is_named_with_both_versions(install: Install) -> None:
    install("ipykernel", "6.31.0", "ipykernel")
    kernel = by_name(jupyter_packages())["ipykernel"]
    assert kernel.state == "limited"
    assert kernel.found == "6.31.0, older than 7.1"
    assert kernel.command == pip_install("lab")


@needs_no_cuda
def test_package_without_its_files_is_installed_again(install: Install) -> None:
    install("nvmath-python", "1.0.0")
    nvmath = by_name(cuda_packages((13, 0)))["nvmath-python"]
    assert nvmath.state == "missing"
    assert nvmath.command.endswith("install --force-reinstall --no-deps nvmath-python")


def test_core_alone_is_enough_to_be_examined(tmp_path: Path) -> None:
    python = BarePython(tmp_path / "venv")
    python.link(f"{name}{specifier}" for name, specifier in requirements().items())
    python.see(ROOT)
    done = python.run("-m", "accel_lab.cli", "doctor", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = msgspec.json.decode(done.stdout, type=Report)
    assert report.host
    assert {finding.state for finding in report.findings if finding.topic == "core"} == {"ok"}
    for name in ("jupyterlab", "ipykernel", "ipywidgets", "anywidget", "panel"):
        assert report[name].state == "missing"
        assert "[lab]" in report[name].command


def test_missing_core_package_blocks_the_host(tmp_path: Path) -> None:
    python = BarePython(tmp_path / "venv")
    core = requirements()
    del core["nvidia-ml-py"]
    python.link(f"{name}{specifier}" for name, specifier in core.items())
    python.see(ROOT)
    done = python.run("-m", "accel_lab.cli", "doctor", "--json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    report = msgspec.json.decode(done.stdout, type=Report)
    assert not report.host
    assert report["nvidia-ml-py"].blocks == ("host", "cuda")


def test_core_is_complete_here() -> None:
    assert {finding.state for finding in core_packages()} == {"ok"}


def test_process_stays_free_of_cuda(tmp_path: Path) -> None:
    python = BarePython(tmp_path / "venv")
    python.see(ROOT, *map(Path, sys.path))
    done = python.run(
        "-c",
        "from accel_lab.doctor import examine; report = examine(); report._repr_html_()\n"
        "import sys; print(sorted({n.partition('.')[0] for n in sys.modules}))",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.strip("[]\n").replace("'", "").split(", "))
    assert "pynvml" in loaded
    assert loaded.isdisjoint({"cupy", "cupyx", "nvmath", "cuda", "cudnn", "nccl", "torch"})


def test_what_runs_from_a_checkout_is_installed_from_there() -> None:
    """Whatever pip has noted of it: by its name alone it would be looked for in an index."""
    command = pip_install("lab")
    assert command.endswith(f"install -e '{ROOT}[lab]'")
    assert pip_install().endswith(f"install -e {ROOT}")


def test_what_was_installed_from_a_folder_is_installed_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, install: Install
) -> None:
    monkeypatch.setattr("accel_lab.display.install.__file__", str(tmp_path / "a" / "b" / "c.py"))
    install("accel-lab", "0.1.0")
    assert pip_install("lab").endswith('install "accel-lab[lab]"')
    source = tmp_path / "the source"
    noted = tmp_path / "accel_lab-0.1.0.dist-info" / "direct_url.json"
    noted.write_text(f'{{"url": "{source.as_uri()}", "dir_info": {{}}}}')
    assert pip_install("lab").endswith('install "accel-lab[lab]"'), "it is gone"
    source.mkdir()
    (source / "pyproject.toml").touch()
    assert pip_install("lab").endswith(f"install '{source}[lab]'")
