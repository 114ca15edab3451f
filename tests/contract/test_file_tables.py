"""Columns of Parquet and Arrow files, and Zarr stores, on a device."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab.compute.device import Device
from accel_lab.compute.files.formats import contents_of
from accel_lab.errors import FileDamaged, FileError, InvalidArgument
from tests.conftest import require
from tests.contract.samples import assert_same, refused, small, value

KINDS = ("bool", "int8", "int64", "uint16", "float16", "float32", "float64")
TABLES = (".parquet", ".arrow", ".feather")
each_table = pytest.mark.parametrize("suffix", TABLES)


def write(path: Path, table: Any, rows: int) -> None:
    """Write a table as pyarrow does, in chunks of so many rows."""
    if path.suffix == ".parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, path, row_group_size=rows, write_page_checksum=True)
    else:
        import pyarrow.feather

        pyarrow.feather.write_feather(table, str(path), chunksize=rows, compression="lz4")


@each_table
@pytest.mark.parametrize("n", [0, 1, 1000])
def test_columns_are_loaded_and_saved(device: Device, tmp_path: Path, suffix: str, n: int) -> None:
    require("pyarrow")
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    columns = {dtype: small(1, (n,), dtype) for dtype in KINDS}
    write(tmp_path / f"x{suffix}", pa.table(columns), 300)
    refs = device.load(tmp_path / f"x{suffix}")
    for name, x in columns.items():
        assert_same(value(device, refs[name]), x)
    device.save(refs, tmp_path / f"y{suffix}")
    read = pyarrow.parquet.read_table if suffix == ".parquet" else pyarrow.feather.read_table
    table = read(tmp_path / f"y{suffix}")
    assert table.column_names == list(columns)
    for name, x in columns.items():
        assert_same(table[name].to_numpy(), x)


@each_table
@settings(max_examples=25)
@given(index=st.slices(50) | st.integers(-50, 49), rows=st.integers(1, 60))
def test_rows_are_what_numpy_takes(
    device: Device, tmp_path_factory: pytest.TempPathFactory, suffix: str, index: Any, rows: int
) -> None:
    require("pyarrow")
    import pyarrow as pa

    x = np.arange(50) * 3
    path = tmp_path_factory.getbasetemp() / f"rows{suffix}"
    write(path, pa.table({"x": x}), rows)
    with device.open_file(path) as file:
        if isinstance(index, slice) and (index.step or 1) < 0:
            return
        assert_same(value(device, file["x"][index]), np.asarray(x[index]))


@each_table
def test_other_columns_and_nulls_are_refused(device: Device, tmp_path: Path, suffix: str) -> None:
    require("pyarrow")
    import pyarrow as pa

    path = tmp_path / f"x{suffix}"
    write(path, pa.table({"a": [1.0, None], "b": ["x", "y"], "c": [1, 2]}), 5)
    with refused(device, "column of string", "names="):
        device.load(path)
    with refused(device, "'a' has 1 nulls"):
        device.load(path, ["a"])
    assert value(device, device.load(path, ["c"])["c"]).tolist() == [1, 2]
    refs = {"a": device.put(np.zeros(3)), "b": device.put(np.zeros(2))}
    with refused(device, "one length"):
        device.save(refs, path)
    refs = {"a": device.put(np.zeros(3, "complex64"))}
    with refused(device, "complex64"):
        device.save(refs, path)


@each_table
def test_damaged_tables_raise_nothing_else(device: Device, tmp_path: Path, suffix: str) -> None:
    require("pyarrow")
    import pyarrow as pa

    path = tmp_path / f"x{suffix}"
    write(path, pa.table({"a": np.arange(100.0), "b": np.arange(100) % 7}), 30)
    whole = path.read_bytes()
    rng = np.random.default_rng(5)
    failed = 0
    for trial in range(60):
        data = bytearray(whole)
        if trial < 10:
            del data[rng.integers(len(data)) :]
        else:
            for at in rng.integers(0, len(data), 3):
                data[at] ^= int(rng.integers(1, 256))
        path.write_bytes(data)
        sent = device.last_number
        try:
            with device.open_file(path) as file:
                for lazy in file.values():
                    [*lazy._stored.parts(_whole(lazy.shape))]
        except (FileDamaged, InvalidArgument):
            failed += 1
        assert device.last_number == sent
    assert failed >= 10


def _whole(shape: tuple[int, ...]) -> Any:
    from accel_lab.compute.files.box import whole

    return whole(shape)


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_stores_are_loaded_and_saved(device: Device, tmp_path: Path, version: Any) -> None:
    require("zarr")
    import zarr

    arrays = {name: small(2, (7, 5, 3), name) for name in ("float32", "int16", "complex64", "bool")}
    arrays["deep/one"] = np.arange(20, dtype=">i4")
    group = zarr.create_group(tmp_path / "x.zarr", zarr_format=version)
    for name, x in arrays.items():
        made = group.create_array(name, shape=x.shape, dtype=x.dtype, chunks=(3,) * x.ndim)
        made[...] = x
    refs = device.load(tmp_path / "x.zarr")
    assert refs.keys() == arrays.keys()
    with device.open_file(tmp_path / "x.zarr") as file:
        for name, x in arrays.items():
            assert_same(value(device, refs[name]), x.astype(x.dtype.newbyteorder("=")))
            some = x[2:6:3].astype(x.dtype.newbyteorder("="))
            assert_same(value(device, file[name][2:6:3]), some)
    for _ in range(2):  # the second takes the place of the first
        device.save(refs, tmp_path / "y.zarr")
    back = zarr.open_group(tmp_path / "y.zarr", mode="r")
    for name, x in arrays.items():
        assert np.array_equal(back[name][...], x)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["x.zarr", "y.zarr"]


@pytest.mark.parametrize("shape", [(), (0, 2), (1 << 11, 1 << 10, 2)])
def test_one_array_is_a_store(device: Device, tmp_path: Path, shape: tuple[int, ...]) -> None:
    require("zarr")
    import zarr

    x = small(3, shape, "float32")
    device.save(device.put(x), tmp_path / "x.zarr")
    assert_same(np.asarray(zarr.open_array(tmp_path / "x.zarr", mode="r")[...]), x)
    assert_same(value(device, device.load(tmp_path / "x.zarr")), x)


def test_names_that_a_store_would_not_keep_are_refused(device: Device, tmp_path: Path) -> None:
    require("zarr")
    ref = device.put(np.arange(3.0))
    for name in ("/a", "a//b", "", ".", "../a", "a\\b", "a\0", "zarr.json", "__a", "\ud800"):
        with refused(device, "x.zarr", repr(name)):
            device.save({name: ref, "fine": ref}, tmp_path / "x.zarr")
    with refused(device, "'a/b'", "'a', which is an array"):
        device.save({"a": ref, "a/b": ref}, tmp_path / "x.zarr")
    assert not [*tmp_path.iterdir()]


def test_a_column_is_not_taken_for_a_part_of_another(device: Device, tmp_path: Path) -> None:
    require("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"a": [{"b": 1.0}, {"b": 2.0}], "a.b": [3.0, 4.0]})
    pq.write_table(table, tmp_path / "x.parquet")
    with device.open_file(tmp_path / "x.parquet") as file:
        assert [*file] == ["a.b"]
        assert_same(value(device, file["a.b"].load()), np.array([3.0, 4.0]))


def test_damaged_stores_are_refused(device: Device, tmp_path: Path) -> None:
    require("zarr")
    path = tmp_path / "x.zarr"
    device.save({"a": device.put(np.random.default_rng(4).random(5000))}, path)
    chunk = next(entry for entry in (path / "a" / "c").rglob("*") if entry.is_file())
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[: len(whole) // 2])
    with refused(device, "cannot be read", error=FileDamaged):
        device.load(path)
    (path / "a" / "zarr.json").write_text("{")
    with pytest.raises(FileDamaged):
        contents_of(path)
    (tmp_path / "other.zarr").mkdir()
    with refused(device, "no folder of Zarr's", error=FileError):
        device.load(tmp_path / "other.zarr")
    ref = device.put(np.zeros(2))
    with refused(device, "not replaced", error=FileError):
        device.save(ref, tmp_path / "other.zarr")


def test_what_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for package in ("pyarrow", "zarr"):
        monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "x.zarr").mkdir()
    for suffix, package in ((".parquet", "pyarrow"), (".arrow", "pyarrow"), (".zarr", "zarr")):
        path = tmp_path / f"x{suffix}"
        if suffix != ".zarr":
            path.write_bytes(b"")
        with pytest.raises(FileError, match=rf"{package}.*\[files\]"):
            contents_of(path)
