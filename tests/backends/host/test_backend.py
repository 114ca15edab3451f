"""What the contract cannot see of the host backend: bytes, foreign arrays, errors, faults."""

import itertools
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab.backends import host
from accel_lab.backends.host.array.library import HostArray
from accel_lab.backends.host.device import HostBackend
from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.execution.backend import Backend, Poison
from accel_lab.errors import InvalidArgument, LibraryError, OutOfMemory


@pytest.fixture
def backend() -> HostBackend:
    return HostBackend(0)


def test_the_protocol_is_met(backend: HostBackend) -> None:
    """mypy compares the signatures; this compares what is there."""
    device: Backend = backend
    promised = [name for name in vars(Backend) if not name.startswith("_")]
    assert [name for name in promised if not hasattr(device, name)] == []
    assert set(device.libraries) == {name.partition(".")[0] for name in host.SUPPORT}


def test_the_host_is_always_there_and_has_a_share_of_the_memory(backend: HostBackend) -> None:
    assert host.available() is None
    assert host.device_name(host.device_count() - 1) == "cpu0"
    assert backend.free_bytes() > 0
    assert backend.largest_free_bytes() > 0
    assert backend.total_bytes > (1 << 28)
    assert backend.model.endswith("part 0")


def test_its_light_files_load_nothing_heavy() -> None:
    code = (
        "import sys, accel_lab.backends.host as h; h.available(); h.SUPPORT;"
        "assert not [m for m in sys.modules if m.startswith('scipy')], 'scipy';"
        "h.preload(); assert 'scipy.linalg' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@given(
    dtype=st.sampled_from(NAMES),
    cut=st.tuples(st.integers(0, 96), st.integers(0, 96)).map(sorted),
    index=st.sampled_from([np.s_[:], np.s_[:, ::2], np.s_[::-1], np.s_[1:3, 1:]]),
    turned=st.booleans(),
)
def test_any_bytes_of_any_array_can_be_uploaded(
    dtype: str, cut: list[int], index: Any, *, turned: bool
) -> None:
    """A chunk may begin and end inside an element, and the array may have any strides."""
    base = np.zeros((4, 6), numpy_dtype(dtype))
    array = base[index].T if turned else base[index]
    start, end = (min(at, array.nbytes) for at in cut)
    data = (np.arange(end - start) % 2).astype(np.uint8)
    expected = np.zeros(array.nbytes, np.uint8)
    expected[start:end] = data
    HostBackend(0).upload(array, start, data)
    assert array.tobytes() == expected.tobytes()
    HostBackend(0).upload(array, start, bytes(end - start))
    assert not any(base.tobytes())


@given(dtype=st.sampled_from(NAMES), shape=st.sampled_from([(), (0,), (3,), (2, 0), (2, 3)]))
def test_a_download_is_in_c_order(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(math.prod(shape)).reshape(shape).astype(numpy_dtype(dtype)).T
    target = np.full(array.nbytes + 3, 255, np.uint8)
    HostBackend(0).download(array, target)
    assert target[: array.nbytes].tobytes() == array.tobytes()
    assert target[array.nbytes :].tolist() == [255] * 3


def test_only_plain_arrays_with_a_dtype_of_ours_are_adopted(backend: HostBackend) -> None:
    for value in (3.0, np.float32(3), [1], np.array(["a"]), np.zeros(2, np.longdouble)):
        assert backend.adopt(value) is None
    assert backend.adopt(np.ma.zeros(3)) is None
    whole = np.zeros((4, 8))
    for array in (whole, whole[1], whole.T[::2]):
        assert backend.adopt(array) == (pytest.approx(array), array.shape, "float64", whole.nbytes)
        assert backend.adopt(array)[0] is array  # type: ignore[index]


@pytest.mark.parametrize(
    "array",
    [
        np.broadcast_to(np.arange(3), (2, 3)),
        np.arange(6, dtype=">i8").reshape(2, 3),
        np.frombuffer(bytes(48), np.int64).reshape(2, 3),
    ],
    ids=["overlapping", "of foreign byte order", "read-only"],
)
def test_an_array_that_could_not_be_an_operand_is_adopted_as_a_copy(
    backend: HostBackend, array: Any
) -> None:
    adopted = backend.adopt(array)
    assert adopted is not None
    copied, shape, dtype, nbytes = adopted
    assert (shape, dtype, nbytes) == ((2, 3), "int64", 48)
    copied[...] = 7
    assert not (array == 7).any()


def test_memory_is_the_same_where_a_byte_is_common(backend: HostBackend) -> None:
    base = np.zeros((6, 6))
    assert backend.same_memory(base, base[2:, ::2])
    assert backend.same_memory(base.T, base)
    assert not backend.same_memory(base[::2], base[1::2])
    assert not backend.same_memory(base, base.copy())
    assert not backend.same_memory(base[:0], base)


@pytest.mark.parametrize("error", [ValueError("v"), TypeError("t"), np.linalg.LinAlgError("l")])
def test_what_a_library_raises_is_a_library_error(backend: HostBackend, error: Exception) -> None:
    explained = backend.explain(error, "blas")
    assert isinstance(explained, LibraryError)
    assert (explained.library, explained.name) == ("blas", type(error).__name__)
    assert explained.__cause__ is error
    assert str(error) in str(explained)


def test_no_memory_is_no_failure_of_a_library(backend: HostBackend) -> None:
    with pytest.raises(MemoryError) as caught:
        backend.empty((1 << 50,), "float64")
    explained = backend.explain(caught.value, "array")
    assert isinstance(explained, OutOfMemory)
    assert "8.00 PiB" in str(explained)


def test_errors_of_ours_stay_what_they_are(backend: HostBackend) -> None:
    for error in (InvalidArgument("x"), Poison(1, "N", "x")):
        assert backend.explain(error, "blas") is error


@pytest.mark.parametrize(("kind", "code"), [("poison", 700), ("trap", 719)])
def test_a_played_fault_says_that_it_is_played(backend: HostBackend, kind: str, code: int) -> None:
    with pytest.raises(Poison, match="injected on the host backend") as caught:
        backend.fault(kind)
    assert caught.value.code == code
    assert caught.value.name.startswith("CUDA_ERROR_")


def test_a_library_fails_on_request_and_a_word_without_a_fault_is_refused(
    backend: HostBackend,
) -> None:
    with pytest.raises(LibraryError, match="injected"):
        backend.fault("library")
    with pytest.raises(InvalidArgument, match="'flood'"):
        backend.fault("flood")


def test_a_stream_is_done_when_its_calls_are(backend: HostBackend) -> None:
    first, second = backend.native_stream(), backend.native_stream()
    first.activate()
    second.wait(first.record())
    second.synchronize(second.record())
    assert first.done()
    assert second.done()


@pytest.mark.parametrize("shape", [(6,), (2, 3), (3, 2), (1, 6, 1), (6, 1)])
def test_a_reshape_never_copies(shape: tuple[int, ...]) -> None:
    base = np.arange(6.0).reshape(2, 3)
    for array, order in itertools.product((base, base.T, base[:, ::-1]), (False, True)):
        source = array[::-1] if order else array
        view = HostArray().reshape(source, shape)
        if view is not None:
            assert np.shares_memory(view, base)
            assert (view == source.reshape(shape)).all()
    assert HostArray().reshape(base, shape) is not None
    assert HostArray().reshape(base.T, (6,)) is None


def test_a_power_that_is_refused_leaves_what_it_would_have_been_written_to() -> None:
    x, y = np.array([2, 3]), np.array([2, -1])
    with pytest.raises(InvalidArgument, match="negative integer powers"):
        HostArray().apply("power", (x, y), ("int64", "int64"), x, dtype="int64")
    assert x.tolist() == [2, 3]
