"""A sparse structure is SciPy's matrix of the same triplets, in each of its formats."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse as scipy_sparse

from accel_lab import Device, System
from accel_lab.blueprints.realtime import (
    AddEntries,
    Coo,
    Csr,
    GetFacts,
    GetStored,
    GpuSparseStructureActor,
    Multiply,
    SetEntries,
    SetFormat,
    sparse_structure,
)
from accel_lab.errors import ContextLost, InvalidArgument, OutOfBounds

FORMATS: tuple[Any, ...] = ("coo", "csr", "ell")


def triplets(seed: int, n: int, shape: tuple[int, int]) -> tuple[Any, Any, Any]:
    """Entries of which some share a place; the values are whole, so that sums are exact."""
    rng = np.random.default_rng(seed)
    return (
        rng.integers(0, shape[0], n),
        rng.integers(0, shape[1], n),
        rng.integers(-5, 6, n).astype(float),
    )


def put(device: Device, entries: tuple[Any, Any, Any]) -> list[Any]:
    return [device.put(one) for one in entries]


def matrix(entries: tuple[Any, Any, Any], shape: tuple[int, int]) -> Any:
    rows, columns, values = entries
    return scipy_sparse.coo_array((values, (rows, columns)), shape=shape).tocsr()


def as_scipy(stored: Any, shape: tuple[int, int]) -> Any:
    """Return what the buffers of a format say, by the format's definition."""
    first, *rest = (one.get() for one in stored)
    if isinstance(stored, Coo):
        return scipy_sparse.coo_array((rest[1], (first, rest[0])), shape=shape)
    if isinstance(stored, Csr):
        return scipy_sparse.csr_array((rest[1], rest[0], first), shape=shape)
    places, rows = np.nonzero(first >= 0)
    values = rest[0][places, rows]
    return scipy_sparse.coo_array((values, (rows, first[places, rows])), shape=shape)


@settings(max_examples=6)
@given(
    n=st.integers(0, 300),
    rows=st.integers(1, 40),
    columns=st.integers(1, 40),
    seed=st.integers(0, 99),
    way=st.permutations(FORMATS * 2),
)
def test_it_is_scipys_matrix_in_every_format_and_through_every_conversion(
    spawn: Any, device: Device, n: int, rows: int, columns: int, seed: int, way: list[Any]
) -> None:
    shape = rows, columns
    entries = triplets(seed, n, shape)
    want = matrix(entries, shape)
    actor = spawn(lambda: GpuSparseStructureActor(device, shape, dtype="float64"))
    assert actor.ask(SetEntries(*put(device, entries))).result() == want.nnz
    rng = np.random.default_rng(seed)
    x, b = rng.integers(-9, 9, columns).astype(float), rng.integers(-9, 9, (columns, 3)) * 1.0
    for format_ in way:
        actor.ask(SetFormat(format_)).result()
        stored = actor.ask(GetStored()).result()
        assert type(stored).__name__.lower() == format_
        np.testing.assert_array_equal(as_scipy(stored, shape).toarray(), want.toarray())
        got = actor.ask(Multiply(device.put(x))).result().get()
        np.testing.assert_array_equal(got, want @ x)
        got = actor.ask(Multiply(device.put(b))).result().get()
        np.testing.assert_array_equal(got, want @ b)
        facts = actor.ask(GetFacts()).result()
        longest = int(np.diff(want.indptr).max())
        assert facts.entries == want.nnz
        assert facts.stored == (longest * rows if format_ == "ell" else want.nnz)


def test_entries_are_in_order_and_doubles_are_added_in_float64(spawn: Any, device: Device) -> None:
    actor = spawn(lambda: GpuSparseStructureActor(device, (3, 4)))
    rows = device.put(np.array([2, 0, 2, 0, 2], "int32"))
    columns = device.put(np.array([1, 3, 1, 0, 1], "int32"))
    values = device.put(np.array([1e8, 2, 1, 3, -1e8], "float32"))
    assert actor.ask(SetEntries(rows, columns, values)).result() == 3
    stored = actor.ask(GetStored()).result()
    assert [one.get().tolist() for one in stored] == [[0, 0, 2], [0, 3, 1], [3, 2, 1]]
    assert stored.values.dtype == "float32"
    x = np.random.default_rng(0).random(4).astype("float32")
    for format_ in FORMATS:
        actor.ask(SetFormat(format_)).result()
        got = actor.ask(Multiply(device.put(x))).result().get()
        np.testing.assert_allclose(got, [3 * x[0] + 2 * x[3], 0, x[1]], rtol=1e-6)


def test_laws_of_a_matrix_hold(spawn: Any, device: Device) -> None:
    """Linear in the vector and in the entries; what cancels stays an entry, which is 0."""
    shape, rng = (50, 60), np.random.default_rng(4)
    some, more = triplets(1, 400, shape), triplets(2, 400, shape)
    actor = spawn(lambda: GpuSparseStructureActor(device, shape, dtype="float64"))
    actor.ask(SetFormat("ell")).result()
    x, y = (rng.integers(-9, 9, 60).astype(float) for _ in range(2))

    def times(v: Any) -> Any:
        return actor.ask(Multiply(device.put(v))).result().get()

    actor.ask(SetEntries(*put(device, some))).result()
    of_some = times(x)
    np.testing.assert_array_equal(times(2 * x + y), 2 * of_some + times(y))
    both = actor.ask(AddEntries(*put(device, more))).result()
    places = {*zip(*some[:2], strict=True), *zip(*more[:2], strict=True)}
    assert both == len(places)
    np.testing.assert_array_equal(times(x), of_some + matrix(more, shape) @ x)
    less = *more[:2], -more[2]
    assert actor.ask(AddEntries(*put(device, less))).result() == both
    np.testing.assert_array_equal(times(x), of_some)
    assert actor.ask(GetFacts()).result().format == "ell"


def test_infinities_meet_entries_alone(spawn: Any, device: Device) -> None:
    actor = spawn(lambda: GpuSparseStructureActor(device, (2, 2), dtype="float64"))
    one = device.put(np.array([0])), device.put(np.array([1])), device.put(np.array([2.0]))
    actor.ask(SetEntries(*one)).result()
    x = device.put(np.array([np.inf, 1.0]))
    for format_ in FORMATS:
        actor.ask(SetFormat(format_)).result()
        assert actor.ask(Multiply(x)).result().get().tolist() == [2, 0]


def test_no_entry_is_lost_with_the_context(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_structure, "KEEP_EVERY", 4)
    shape = 30, 20
    with System(backend, devices=1) as lab:
        (device,) = lab.devices
        actor = lab.spawn(lambda: GpuSparseStructureActor(device, shape, dtype="float64"))
        want = matrix(triplets(0, 0, shape), shape)
        x = np.arange(20.0)
        for i in range(8):
            entries = triplets(i, 40, shape)
            want = want + matrix(entries, shape)
            going = actor.ask(AddEntries(*put(device, entries)))
            actor.ask(SetFormat(FORMATS[i % 3])).result()
            if i in {2, 6}:
                product = actor.ask(Multiply(device.put(x)))
                with pytest.raises(ContextLost):
                    lab.inject("kill").result()
                np.testing.assert_array_equal(product.result().get(), want @ x)
            going.result()
        stored = actor.ask(GetStored()).result()
        np.testing.assert_array_equal(as_scipy(stored, shape).toarray(), want.toarray())
        assert device.generation == 3
        lab.check()


def test_mistakes_are_refused_and_change_nothing(spawn: Any, device: Device) -> None:
    actor = spawn(lambda: GpuSparseStructureActor(device, (3, 2), dtype="float64"))
    index, one = device.put(np.array([1])), device.put(np.array([5.0]))
    actor.ask(SetEntries(index, index, one)).result()
    outside = device.put(np.array([0, 3, -1]))
    ones = device.put(np.ones(3))
    inside = device.put(np.array([0, 1, 0]))
    for message, text in (
        (SetEntries(outside, inside, ones), r"triplet 1 is at \(3, 1\), outside .* \(3, 2\)"),
        (AddEntries(inside, outside, ones), r"AddEntries: triplet 1 is at \(1, 3\)"),
    ):
        with pytest.raises(OutOfBounds, match=text):
            actor.ask(message).result()
    for wrong, text in (
        (SetEntries(index, inside, one), r"columns must be .*int64\[1\] .* not int64\[3\]"),
        (SetEntries(index, index, index), r"values must be .*float64\[1\]"),
        (SetFormat("csc"), "one of coo, csr, ell, not 'csc'"),  # type: ignore[arg-type]
        (Multiply(one), r"x must be .*float64\[2\] .* not float64\[1\]"),
        (Multiply(None), "not NoneType"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidArgument, match=text):
            actor.ask(wrong).result()
    got = actor.ask(Multiply(device.put(np.eye(2)))).result().get()
    assert got.tolist() == [[0, 0], [0, 5], [0, 0]]
    with pytest.raises(InvalidArgument, match="float32 or float64, not 'int32'"):
        GpuSparseStructureActor(device, (2, 2), dtype="int32")
    with pytest.raises(InvalidArgument, match="rows must be an int from 1"):
        GpuSparseStructureActor(device, (0, 2))
    with pytest.raises(InvalidArgument, match="shape must be rows and columns, not 3"):
        GpuSparseStructureActor(device, 3)  # type: ignore[arg-type]
