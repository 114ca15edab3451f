"""What a backend does without one of the shared libraries that its parts call."""

from types import ModuleType

import pytest

from accel_lab.backends import libraries
from accel_lab.errors import BackendUnavailable
from accel_lab.library_modules import module_of


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
        makers["fft"]()
    assert makers["array"]() is not None


def test_what_the_loader_does_not_find_is_refused_likewise(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_solver(library: str, package: str) -> ModuleType:
        if library == "solver":
            msg = "libcusolver.so.11: cannot open shared object file: No such file or directory"
            raise ImportError(msg)
        return module_of(library, package)

    monkeypatch.setattr(libraries, "module_of", without_solver)
    libraries.load("host", NotThere)
    with pytest.raises(BackendUnavailable, match=r"solver cannot be loaded on host: libcusolver"):
        libraries.makers("host", None)["solver"]()
