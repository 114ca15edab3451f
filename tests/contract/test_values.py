"""`lab.observe` and `lab.watch_values` look at what results hold, beside NumPy."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import System, array, blas, solver
from accel_lab.compute.device import Device
from accel_lab.compute.events.samples import ValuesSeen
from accel_lab.errors import InvalidArgument

DTYPES = [
    "bool", "int8", "uint64", "float16", ml_dtypes.bfloat16, "float32", "float64", "complex64",
]  # fmt: skip


@pytest.fixture
def gpu(device: Device) -> Device:
    return device


@pytest.fixture
def lab(device: Device) -> System:
    system: System = device._system  # type: ignore[assignment]
    return system


def compare(seen: ValuesSeen, values: Any, bins: int) -> None:
    """Compare a look with what NumPy says of the same elements."""
    flat = np.abs(values) if np.iscomplexobj(values) else values
    narrow = flat.dtype.itemsize <= 4 and flat.dtype.kind in "fV"
    flat = flat.astype("float32" if narrow or flat.dtype == "float32" else "float64").ravel()
    inside = flat[np.isfinite(flat)]
    assert (seen.nans, seen.infs) == (np.isnan(flat).sum(), np.isinf(flat).sum())
    if not inside.size:
        assert (seen.least, seen.most, seen.mean, seen.counts) == (None, None, None, ())
        return
    assert (seen.least, seen.most) == pytest.approx((inside.min(), inside.max()), rel=1e-6)
    mean = inside.astype("float64").mean()
    assert seen.mean == pytest.approx(mean, rel=1e-5, abs=1e-6 * float(np.abs(inside).max()))
    if inside.min() == inside.max():
        assert seen.counts == (inside.size,)
    elif not np.iscomplexobj(values):  # a magnitude may be an ulp off, on either side of an edge
        assert seen.counts == tuple(np.histogram(inside, bins)[0])
    assert sum(seen.counts) == inside.size


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_it_says_what_numpy_says(lab: System, gpu: Device, dtype: object) -> None:
    values = np.random.default_rng(3).normal(scale=40, size=(30, 7)).astype(dtype)  # type: ignore[call-overload]
    if np.dtype(dtype).kind in "fVc":  # type: ignore[call-overload]
        values[0, :3] = [np.nan, np.inf, -np.inf]
    seen = lab.observe(f"as {np.dtype(dtype)}", gpu.put(values), bins=10)  # type: ignore[call-overload]
    assert (seen.dtype, seen.shape, seen.look) == (str(np.dtype(dtype)), (30, 7), 1)  # type: ignore[call-overload]
    compare(seen, values, 10)


@settings(max_examples=12, deadline=None)
@given(
    values=st.lists(st.floats(width=64) | st.sampled_from([0.0, -0.0, 1e308, -1e308]), max_size=12),
    bins=st.integers(1, 64),
)
def test_any_floats_are_summed_up(device: Device, values: list[float], bins: int) -> None:
    held = np.array(values, "float64")
    seen = device._system.observe("any", device.put(held), bins=bins)  # type: ignore[attr-defined]
    inside = held[np.isfinite(held)]
    with np.errstate(over="ignore"):
        if inside.size and not np.isfinite(inside.max() - inside.min()):
            assert (seen.least, seen.most, seen.counts) == (inside.min(), inside.max(), ())
        elif not inside.size or np.isfinite(inside.sum()):
            assert (seen.nans, seen.infs) == (np.isnan(held).sum(), np.isinf(held).sum())
            assert sum(seen.counts) == inside.size
        else:
            assert seen.mean is None
    assert seen.least == (inside.min() if inside.size else None)


def test_looks_are_facts_and_are_counted_by_name(lab: System, gpu: Device) -> None:
    x = gpu.put(np.arange(12.0).reshape(3, 4))
    told: list[ValuesSeen] = []
    with lab.events.subscribe(told.append, ValuesSeen):
        first = lab.observe("weights", array.transpose(x)[1:])  # no contiguous memory
        second = lab.observe("weights", x)
        other = lab.observe("others", x)
    assert told == [first, second, other]
    assert [one.look for one in told] == [1, 2, 1]
    compare(first, np.arange(12.0).reshape(3, 4).T[1:], 24)


def test_messages_are_watched_by_name(lab: System, gpu: Device) -> None:
    x = gpu.put(np.eye(4))
    told: list[ValuesSeen] = []
    with lab.events.subscribe(told.append, ValuesSeen):
        with lab.watch_values("Gemm", "Qr", every=2, bins=4):
            for factor in (1.0, 2.0, 3.0):
                blas.gemm(x, x, alpha=factor)
                array.exp(x)
            solver.qr(x)
        blas.gemm(x, x, alpha=7.0)
    assert [(one.name, one.most) for one in told[:2]] == [("Gemm", 1.0), ("Gemm", 3.0)]
    assert [one.name for one in told[2:]] == ["Qr.q", "Qr.r"]
    assert told[0].counts == (12, 0, 0, 4)
    told.clear()
    with lab.events.subscribe(told.append, ValuesSeen), lab.watch_values() as watch:
        array.add(x, x)
        assert repr(watch) == "<ValuesWatch of all messages>"
        with pytest.raises(InvalidArgument, match="is watched already; close that watch first"):
            lab.watch_finite()
    assert len(told) == 1


def test_what_a_look_sends_is_not_recorded(lab: System, gpu: Device) -> None:
    x = gpu.put(np.ones(4))
    lab.journal.flush()
    before = len(lab.journal)
    lab.observe("unrecorded", x)
    lab.journal.flush()
    names = {one.name for one in lab.journal[before:] if one.kind == "message"}
    assert names <= {"Download"}  # of the few numbers


def test_what_cannot_be_looked_at_is_refused(lab: System, gpu: Device) -> None:
    x = gpu.put(np.ones(4))
    with pytest.raises(InvalidArgument, match=r"x is array\(\[1.\]\); it is an array of"):
        lab.observe("x", np.ones(1))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="name is ''; it is text of 1 to 80 characters"):
        lab.observe("", x)
    with pytest.raises(InvalidArgument, match="bins is 65; it is a whole number from 1 to 64"):
        lab.observe("x", x, bins=65)
    with pytest.raises(InvalidArgument, match="every is 0; it is a whole number of at least 1"):
        lab.watch_values(every=0)
