"""The namespace beside its functions of arrays: devices, dtypes, DLPack, and what handles gain."""

import importlib
from collections.abc import Iterator
from typing import Any

import array_api_strict
import numpy as np
import pytest

from accel_lab import System, array, open_systems
from accel_lab import array_api as xp
from accel_lab.compute.arrays.dtypes import NAMES
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from tests.contract.samples import assert_equal, refused, unanswered, value

DTYPES = ("bool", "int8", "uint16", "int64", "uint64", "float32", "float64", "complex64")


@pytest.fixture(scope="module")
def pair(backend: Any) -> Iterator[tuple[Device, Device]]:
    """Open a system with two devices, where there are as many."""
    try:
        system = System(backend.__name__.rpartition(".")[2], devices=2)
    except InvalidArgument as error:
        pytest.skip(str(error))
    with system as lab:
        yield lab.devices[0], lab.devices[1]


@pytest.fixture(autouse=True)
def _on(device: Device) -> Iterator[None]:
    with xp.use_device(device):
        yield


def test_a_handle_names_the_namespace(device: Device) -> None:
    x = device.put(np.ones(3))
    assert x.__array_namespace__() is importlib.import_module("accel_lab.array_api")
    for version in ("2021.12", "2024.12", xp.__array_api_version__, None):
        assert x.__array_namespace__(api_version=version) is xp
    with refused(device, "'1999.12'", "2025.12"):
        x.__array_namespace__(api_version="1999.12")


def test_arrays_are_made_on_the_device_of_the_block(
    device: Device, pair: tuple[Device, Device]
) -> None:
    assert xp.zeros(3).device is device
    with xp.use_device(pair[1]) as chosen:
        assert chosen is pair[1]
        assert xp.zeros(3).device is xp.asarray([1]).device is pair[1]
        assert xp.__array_namespace_info__().default_device() is pair[1]
        assert xp.ones(3, device=device).device is device
        assert xp.ones_like(xp.ones(3, device=device)).device is device
    assert xp.zeros(3).device is device
    with refused(device, "device must be a device", "'cuda'"):
        xp.zeros(3, device="cuda")


def test_without_one_that_is_of_the_system_opened_first(device: Device) -> None:
    assert device.state
    devices = importlib.import_module("accel_lab.array_api.devices")
    with xp.use_device(device):
        token = devices._chosen.set(None)
        made = xp.zeros(2).device
        devices._chosen.reset(token)
    assert made is open_systems.running()[0].devices[0]
    assert made in xp.__array_namespace_info__().devices()


def test_a_handle_goes_to_another_device(pair: tuple[Device, Device]) -> None:
    here, there = pair
    x = here.put(np.arange(3))
    assert x.to_device(here) is x
    moved = x.to_device(there)
    assert moved.device is there
    assert_equal(value(there, moved), np.arange(3))
    assert xp.astype(x, xp.float32, device=there).device is there
    assert xp.asarray(x, device=there).device is there
    with refused(here, "as ref.device, not 'gpu'"):
        x.to_device("gpu")  # type: ignore[arg-type]
    with refused(here, "takes no stream"):
        x.to_device(there, stream=1)


def test_dlpack_gives_a_copy_of_the_host(device: Device) -> None:
    x = np.arange(6, dtype="float32").reshape(2, 3)
    ref = device.put(x)
    assert_equal(np.from_dlpack(ref), x)
    assert ref.__dlpack_device__() == (1, 0)
    for options in ({"copy": False}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError, match=r"copied|fetched to the host"):
            ref.__dlpack__(**options)
    made = xp.from_dlpack(x)
    assert made.device is device
    assert_equal(value(device, made), x)
    assert xp.from_dlpack(ref) is ref
    assert xp.from_dlpack(ref, copy=True) is not ref
    with pytest.raises(BufferError, match="copied to the device"):
        xp.from_dlpack(x, copy=False)


def test_asarray_copies_what_it_has_to(device: Device, pair: tuple[Device, Device]) -> None:
    ref = device.put(np.arange(3.0))
    assert xp.asarray(ref) is xp.asarray(ref, dtype=xp.float64, copy=False) is ref
    assert xp.asarray(ref, copy=True) is not ref
    assert xp.asarray(ref, dtype=xp.float32).dtype == xp.float32
    assert xp.asarray([ref[0], ref[2]]).get().tolist() == [0, 2]
    assert xp.asarray(np.arange(3, dtype="int8"), dtype=xp.int64).dtype == xp.int64
    for options in ({"dtype": xp.float32}, {"device": pair[0]}):
        with refused(device, "copy=False is not possible"):
            xp.asarray(ref, copy=False, **options)
    with refused(device, "a list is copied"):
        xp.asarray([1], copy=False)


def test_a_reshape_without_a_copy_is_a_view_or_refused(device: Device) -> None:
    ref = device.put(np.arange(6.0).reshape(2, 3))
    view = xp.reshape(ref, (3, 2), copy=False)
    array.copy(device.put(np.zeros((3, 2))), out=view)
    assert not ref.get().any()
    apart = xp.reshape(ref, (3, 2), copy=True)
    array.copy(device.put(np.ones((3, 2))), out=apart)
    assert not ref.get().any()
    with pytest.raises(InvalidArgument, match=r"the strides of x float64\[3, 2\] allow no view"):
        xp.reshape(ref.T, (6,), copy=False)


def test_a_matrix_is_transposed(device: Device) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    assert_equal(value(device, device.put(x).mT), x.mT)
    ref = device.put(np.ones(3))
    with refused(device, r"float64[3] is no matrix"):
        _ = ref.mT


@pytest.mark.parametrize("name", DTYPES)
def test_a_dtype_is_what_it_is_to_array_api_strict(name: str) -> None:
    ours, theirs = getattr(xp, name), getattr(array_api_strict, name)
    assert xp.empty(1, dtype=ours).dtype is xp.empty_like(xp.empty(1, dtype=ours)).dtype is ours
    kinds = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "numeric")
    for kind in (*kinds, "complex floating", ("integral", "bool")):
        assert xp.isdtype(ours, kind) == array_api_strict.isdtype(theirs, kind)
    for other in DTYPES:
        one, another = getattr(xp, other), getattr(array_api_strict, other)
        assert xp.isdtype(ours, one) == (name == other)
        try:
            together = str(array_api_strict.result_type(theirs, another)).rpartition(".")[2]
        except TypeError:
            continue  # the standard says nothing of them
        assert xp.result_type(ours, one) is getattr(xp, together)
        assert xp.can_cast(ours, one) == (together == other)
    limits: Any = array_api_strict
    if xp.isdtype(ours, "integral"):
        exact = limits.iinfo(theirs)
        assert xp.iinfo(ours)[:3] == (exact.bits, exact.max, exact.min)
        with pytest.raises(InvalidArgument, match="has no floats"):
            xp.finfo(ours)
    elif name != "bool":
        exact = limits.finfo(theirs)
        known = (exact.eps, exact.max, exact.min, exact.smallest_normal)
        assert xp.finfo(ours)[1:5] == known
        with pytest.raises(InvalidArgument, match="has no integers"):
            xp.iinfo(ours)


def test_numbers_promote_with_arrays_and_dtypes(device: Device) -> None:
    x = device.put(np.ones(2, np.float32))
    assert xp.result_type(x, 1.5) is xp.result_type(xp.float32, 1) is xp.float32
    assert xp.result_type(x, 1j) is xp.complex64
    with refused(device, "one at least must be an array"):
        xp.result_type(1, 2.5)
    with refused(device, "is no kind", "real floating"):
        xp.isdtype(xp.bool, "floating")


@pytest.mark.parametrize("name", NAMES)
def test_every_dtype_of_a_handle_has_its_limits_and_kind(name: str) -> None:
    kinds = ("bool", "integral", "real floating", "complex floating")
    (kind,) = [kind for kind in kinds if xp.isdtype(name, kind)]
    if kind.endswith("floating"):
        limits = xp.finfo(name)
        assert 0 < limits.smallest_normal < limits.eps < 1 < limits.max == -limits.min
    assert xp.can_cast(name, name)


def test_what_has_an_unknown_shape_is_an_operand_at_once(device: Device) -> None:
    x = device.put(np.asarray([3, 1, 3, 2]))
    with unanswered(device):
        found = xp.unique_values(x)
        doubled = xp.multiply(found, 2)
        assert not found.done
        assert not doubled.known
    assert doubled.shape == (3,)
    assert doubled.get().tolist() == [2, 4, 6]


def test_is_in_and_is_not_in_take_numbers_and_nothing(device: Device) -> None:
    x = device.put(np.asarray([1.0, np.nan, 3.0]))
    for other in (np.asarray([3.0, np.nan]), np.asarray([]), np.asarray([[9.0, 1.0]])):
        for invert in (False, True):
            got = xp.isin(x, device.put(other), invert=invert)
            assert_equal(value(device, got), np.isin(x.get(), other, invert=invert))
    assert xp.isin(x, 3).get().tolist() == [False, False, True]
    assert bool(xp.isin(3, x))


def test_a_mistake_is_refused_with_what_and_what_was_expected(device: Device) -> None:
    x, number = device.put(np.ones((2, 3))), device.put(np.ones(()))
    several = "float64[2, 3]: only of a vector is the axis clear"
    with refused(device, several):
        xp.take(x, x)
    with refused(device, several):
        xp.cumulative_sum(x)
    with refused(device, "var: correction must be a finite number, not nan"):
        xp.var(x, correction=float("nan"))
    with refused(device, "axis 2 is none of x float64[2, 3]"):
        xp.cumulative_prod(x, axis=2)
    with refused(device, "one operand must be an AccelRef, not int and int"):
        xp.add(1, 2)
    with refused(device, "dtype <U1 is not one of"):
        xp.asarray("a")
    with refused(device, "unstack: x is float64[]"):
        xp.unstack(number)
    with refused(device, "broadcast to no shape"):
        xp.broadcast_shapes((2,), (3,))
    with refused(device, "norm is 'backward', 'ortho', 'forward', not 'none'"):
        xp.fft.hfft(x, norm="none")  # type: ignore[arg-type]
