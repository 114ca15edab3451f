"""What a backend does without one of the shared libraries that its parts call."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from accel_lab.backends import libraries
from accel_lab.errors import BackendUnavailable
from accel_lab.library_modules import module_of
from tests.project import ROOT


class NotThere(RuntimeError):
    """A shared library is not installed."""


def test_a_library_that_cannot_be_loaded_is_refused_by_name_and_the_others_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without_fft(library: str, package: str) -> ModuleType:
        if library == "fft":
            msg = "no libcufft.so.12"
            raise ImportError(msg) from NotThere()
        return module_of(library, package)

    monkeypatch.setattr(libraries, "module_of", without_fft)
    libraries.load("host", NotThere)
    with pytest.raises(ImportError, match="libcufft"):
        libraries.load("host")
    with pytest.raises(ImportError, match="libcufft"):
        libraries.load("host", KeyError)
    makers = libraries.makers("host", None)
    with pytest.raises(BackendUnavailable, match=r"fft cannot be loaded on host: no libcufft"):
        makers["fft"]().c2c()
    assert not isinstance(makers["array"](), libraries.Absent)


def test_one_that_finds_it_missing_when_it_is_made_is_refused_likewise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Fft:
        def __init__(self) -> None:
            msg = "no libcufft"
            raise NotThere(msg)

    monkeypatch.setattr(libraries, "module_of", lambda *_: SimpleNamespace(HostFft=Fft))
    with pytest.raises(BackendUnavailable, match=r"fft cannot be loaded on host: no libcufft"):
        libraries.makers("host", None, NotThere)["fft"]().c2c()
    with pytest.raises(NotThere):
        libraries.makers("host", None)["fft"]()


def test_what_the_loader_does_not_find_is_refused_likewise(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_solver(library: str, package: str) -> ModuleType:
        if library == "solver":
            msg = "libcusolver.so.11: cannot open shared object file: No such file or directory"
            raise ImportError(msg)
        return module_of(library, package)

    monkeypatch.setattr(libraries, "module_of", without_solver)
    libraries.load("host", NotThere)
    with pytest.raises(BackendUnavailable, match=r"solver cannot be loaded on host: libcusolver"):
        libraries.makers("host", None)["solver"]().solve()


WITHOUT_FFT = """
from accel_lab.backends import libraries

known, load = libraries.module_of, libraries.load

def without(library, package):
    if library == "fft":
        raise ImportError("libcufft.so.12: cannot open shared object file")
    return known(library, package)

libraries.module_of = without
libraries.load = lambda backend, absent=None: load(backend, KeyError)
"""
USED = """
import numpy as np
from accel_lab import System, array, fft
from accel_lab.errors import BackendUnavailable

with System("host", devices=1) as lab:
    x = lab.devices[0].put(np.ones(8))
    assert array.sum(x).get() == 8
    try:
        fft.fft(x).result(30)
    except BackendUnavailable as error:
        print(error)
    assert (array.sum(x).get(), lab.devices[0].generation) == (8, 1)
"""


def test_a_device_works_without_a_library_and_refuses_its_messages(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_FFT)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    told = subprocess.run(
        [sys.executable, "-c", USED],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("fft cannot be loaded on host: libcufft.so.12")
