"""Which errors the cuda backend takes for the end of a context; no GPU needed."""

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

from accel_lab.backends.cuda.device.faults import STICKY, explain
from accel_lab.compute.execution.backend import Poison
from accel_lab.errors import InvalidArgument, LibraryError, OutOfMemory

# The driver's manual says of these that the process has to be relaunched, in these words.
MANUAL = """
import json
from cuda.bindings.driver import CUresult
names = {code.name: int(code) for code in CUresult}
print(json.dumps([names, [int(code) for code in CUresult if "relaunched" in (code.__doc__ or "")]]))
"""
# It says otherwise of these, or nothing, and yet no call succeeds any more.
MEASURED = {709, 710, 214, 220, 999}


class CUDARuntimeError(RuntimeError):
    """Looks like CuPy's."""

    def __init__(self, status: int, text: str = "") -> None:
        super().__init__(text)
        self.status = status


class cuBLASError(Exception):  # noqa: N801 - as nvmath spells it
    """Looks like nvmath's."""

    status = 7


class cuFFTError(Exception):  # noqa: N801 - as nvmath spells it
    """Looks like nvmath's."""

    status = 2


def healthy() -> int:
    return 0


def free() -> int:
    return 1000


def test_the_sticky_errors_are_those_of_the_manual() -> None:
    if find_spec("cuda") is None:
        pytest.skip("cuda-bindings is not installed")
    # In another process: this one is a notebook's, which imports no CUDA.
    command = [sys.executable, "-c", MANUAL]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    names, relaunched = json.loads(done.stdout)
    assert set(relaunched) | MEASURED == set(STICKY)
    assert {name: names[name] for name in STICKY.values()} == {v: k for k, v in STICKY.items()}


@pytest.mark.parametrize("code", STICKY)
def test_a_sticky_error_is_the_end_of_the_context(code: int) -> None:
    explained = explain(CUDARuntimeError(code, "no access"), "blas", healthy, free)
    assert isinstance(explained, Poison)
    assert (explained.code, explained.name) == (code, STICKY[code])
    assert STICKY[code] in str(explained)
    assert "no access" in str(explained)


def test_a_library_s_error_in_a_lost_context_is_the_context_s() -> None:
    explained = explain(cuBLASError("it failed"), "blas", lambda: 719, free)
    assert isinstance(explained, Poison)
    assert explained.code == 719


def test_the_code_of_a_library_is_never_taken_for_the_driver_s() -> None:
    error = cuBLASError("it failed")
    error.status = 700
    assert isinstance(explain(error, "blas", healthy, free), LibraryError)


def test_a_library_s_error_has_its_name_and_code() -> None:
    error = cuBLASError("an unsupported value (CUBLAS_STATUS_INVALID_VALUE)")
    explained = explain(error, "blas", healthy, free)
    assert isinstance(explained, LibraryError)
    assert (explained.library, explained.code) == ("blas", 7)
    assert explained.name == "CUBLAS_STATUS_INVALID_VALUE"
    assert explained.__cause__ is error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("no room"),
        CUDARuntimeError(2, "cudaErrorMemoryAllocation: out of memory"),
        cuBLASError("resource allocation failed (CUBLAS_STATUS_ALLOC_FAILED)"),
        cuFFTError("CUFFT_ALLOC_FAILED"),
    ],
)
def test_running_out_of_memory_is_no_fault_of_a_library(error: Exception) -> None:
    explained = explain(error, "blas", healthy, free)
    assert isinstance(explained, OutOfMemory)
    assert explained.free_bytes == 1000


def test_what_is_ours_stays_as_it_is() -> None:
    error = InvalidArgument("it does not fit")
    assert explain(error, "blas", healthy, free) is error


def test_an_error_that_cannot_say_what_it_is_is_explained() -> None:
    class Wordless(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    explained = explain(Wordless(), "run", healthy, free)
    assert isinstance(explained, LibraryError)
    assert str(explained) == "run: <its str raised RuntimeError>"
