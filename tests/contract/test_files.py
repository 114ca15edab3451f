"""Files on a device: what NumPy and safetensors write is loaded, and what is saved they read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import System
from accel_lab.compute.actors.fault import Inject
from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.errors import (
    ContextLost,
    DependencyFailed,
    FileDamaged,
    FileError,
    InvalidArgument,
    OutOfBounds,
)
from tests.compute.files.written import entry, npy, npz, safetensors_of
from tests.conftest import require
from tests.contract.samples import LAYOUTS, Layout, assert_same, place, refused, small, value

NUMPY = [name for name in NAMES if numpy_dtype(name).isbuiltin == 1]
LARGE = (3, 1 << 19, 2)
"""24 MiB of float64, in several parts."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def large() -> Any:
    return np.random.default_rng(0).standard_normal(LARGE)


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (4, 3, 2)])
def test_an_npy_is_loaded_and_saved(
    device: Device, tmp_path: Path, dtype: str, shape: tuple[int, ...]
) -> None:
    x = small(1, shape, dtype)
    np.save(tmp_path / "x.npy", x)
    ref = device.load(tmp_path / "x.npy")
    assert_same(value(device, ref), x)
    device.save(ref, tmp_path / "y.npy")
    assert_same(np.load(tmp_path / "y.npy"), x)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [">i2", ">i8", ">f4", ">f8", ">c8", ">c16", "<f2"])
def test_orders_of_axes_and_bytes_are_handled(
    device: Device, tmp_path: Path, order: Any, kind: str
) -> None:
    x = np.asarray(small(2, (3, 4, 5), "float64") * 321, order=order, dtype=kind)
    np.save(tmp_path / "x.npy", x)
    assert_same(value(device, device.load(tmp_path / "x.npy")), x.astype(x.dtype.newbyteorder("=")))


@pytest.mark.parametrize("dtype", NAMES)
def test_safetensors_keep_every_dtype(device: Device, tmp_path: Path, dtype: str) -> None:
    arrays = {name: small(3, shape, dtype) for name, shape in (("a", (3, 5)), ("b é", ()))}
    refs = {name: device.put(x) for name, x in arrays.items()}
    if dtype == "complex128":
        refs["a"].result()
        with refused(device, "complex128", "complex64"):
            device.save(refs, tmp_path / "x.safetensors")
        return
    device.save(refs, tmp_path / "x.safetensors")
    for name, ref in device.load(tmp_path / "x.safetensors").items():
        assert_same(value(device, ref), arrays.pop(name))
    assert not arrays


def test_the_safetensors_package_reads_what_is_saved(device: Device, tmp_path: Path) -> None:
    require("safetensors")
    import safetensors.numpy

    arrays = {name: small(4, (3, 5), name) for name in ("float16", "int8", "uint64", "bool")}
    arrays["empty"] = np.zeros((0, 2), "f4")
    device.save({name: device.put(x) for name, x in arrays.items()}, tmp_path / "x.safetensors")
    read = safetensors.numpy.load_file(tmp_path / "x.safetensors")
    assert read.keys() == arrays.keys()
    for name, x in read.items():
        assert_same(x, arrays[name])


def test_what_the_safetensors_package_saves_is_loaded(device: Device, tmp_path: Path) -> None:
    require("safetensors")
    require("torch")
    import safetensors.torch
    import torch

    drawn = torch.arange(-10.0, 11.0).reshape(7, 3) / 8
    narrow = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float32)
    tensors = {str(dtype).removeprefix("torch."): drawn.to(dtype) for dtype in narrow}
    safetensors.torch.save_file(tensors, tmp_path / "x.safetensors", {"made": "by them"})
    with device.open_file(tmp_path / "x.safetensors") as file:
        assert file.metadata == {"made": "by them"}
        assert {name: lazy.dtype for name, lazy in file.items()} == {name: name for name in tensors}
        for name, lazy in file.items():
            some = value(device, lazy[2:5])
            assert some.tobytes() == tensors[name][2:5].view(torch.uint8).numpy().tobytes()
            assert some.shape == (3, 3)


@pytest.mark.parametrize("packed", [False, True])
def test_an_npz_is_loaded_and_saved(
    device: Device, tmp_path: Path, large: Any, *, packed: bool
) -> None:
    arrays = {"large": large[:1], "turned": np.asfortranarray(large[0, :50]), "one": np.array(3)}
    (tmp_path / "x.npz").write_bytes(npz(arrays, packed=packed))
    refs = device.load(tmp_path / "x.npz")
    with device.open_file(tmp_path / "x.npz") as file:
        some = value(device, file["large"][0, 70_000:90_000])
        assert_same(value(device, file["large"][0, 5]), large[0, 5])  # back again
    assert_same(some, large[0, 70_000:90_000])
    device.save(refs, tmp_path / "y.npz")
    with np.load(tmp_path / "y.npz") as read:
        assert set(read) == set(arrays)
        for name, x in arrays.items():
            assert_same(value(device, refs[name]), x)
            assert_same(read[name], x)


def test_large_arrays_go_in_parts(device: Device, folder: Path, large: Any) -> None:
    for order in "CF":
        np.save(folder / "large.npy", np.asarray(large, order=order))  # type: ignore[call-overload]
        ref = device.load(folder / "large.npy")
        assert_same(value(device, ref), large)
    device.save(ref, folder / "saved.npy")
    assert np.array_equal(np.load(folder / "saved.npy", mmap_mode="r"), large)
    (folder / "large.npy").unlink()
    (folder / "saved.npy").unlink()


index = st.slices(9) | st.integers(-9, 8)


@settings(max_examples=30)
@given(
    entries=st.tuples(index, index, index),
    dots=st.integers(0, 3),
    kept=st.integers(0, 3),
    order=st.sampled_from("CF"),
    wide=st.sampled_from([1, 400]),
)
def test_a_part_is_what_numpy_takes(
    device: Device,
    folder: Path,
    entries: tuple[Any, ...],
    dots: int,
    kept: int,
    order: Any,
    wide: int,
) -> None:
    x = np.asarray(np.arange(9 * 9 * 9 * wide).reshape(9, 9, 9 * wide), order=order, dtype=">i4")
    np.save(folder / "part.npy", x)
    key: Any = entries[:kept]
    if dots <= kept:
        key = (*key[:dots], ..., *key[dots:])
    with device.open_file(folder / "part.npy") as file:
        (lazy,) = file.values()
        assert (lazy.shape, lazy.dtype, lazy.nbytes) == (x.shape, "int32", x.nbytes)
        if any(isinstance(e, slice) and (e.step or 1) < 0 for e in key):
            with refused(device, "forwards"):
                lazy[key]
            return
        assert_same(value(device, lazy[key]), np.asarray(x[key]).astype("=i4"))


def test_wrong_parts_are_refused(device: Device, folder: Path) -> None:
    np.save(folder / "wrong.npy", np.zeros((3, 4)))
    with device.open_file(folder / "wrong.npy") as file:
        lazy = file["arr_0"]
        for key, words in (((0, 0, 0), "3 axes"), (3, "axis 0 has 3 places")):
            with refused(device, words, error=OutOfBounds):
                lazy[key]
        wrong: Any
        for wrong in ([0, 1], None, True, 0.5, (..., ...), slice("a")):
            with refused(device):
                lazy[wrong]
        with pytest.raises(TypeError):
            iter(lazy)
        with pytest.raises(KeyError):
            file["other"]
    with refused(device, "closed", error=FileError):
        lazy[0]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_views_are_saved_as_they_look(device: Device, tmp_path: Path, layout: Layout) -> None:
    x = small(6, (5, 4), "float32")
    device.save(place(device, x, layout), tmp_path / "x.npy")
    assert_same(np.load(tmp_path / "x.npy"), x)


def test_bytes_of_a_bool_are_0_or_1(device: Device, tmp_path: Path) -> None:
    data = safetensors_of({"a": entry("BOOL", [4], 0, 4)}, bytes([0, 1, 2, 255]))
    (tmp_path / "x.safetensors").write_bytes(data)
    ref = device.load(tmp_path / "x.safetensors")["a"]
    assert value(device, ref).tobytes() == bytes([0, 1, 1, 1])


def test_names_choose_what_is_loaded(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    header = {"a": entry("F8_E8M0", [3], 0, 3), "b": entry("U8", [2], 3, 5)}
    path.write_bytes(safetensors_of(header, bytes(5)))
    assert list(device.load(path, ["b"])) == ["b"]
    for names, words in ((None, "names="), (["a"], "F8_E8M0"), (["c"], "no 'c', but 'b'")):
        with refused(device, words):
            device.load(path, names)
    with refused(device, "a list of names"):
        device.load(path, "b")


def test_nothing_is_sent_of_a_damaged_file(device: Device, tmp_path: Path) -> None:
    for name, data in (
        ("x.npy", npy(np.zeros(1000))[:-1]),
        ("x.npz", npz({"a": np.zeros(1000)})[:-9]),
        ("x.safetensors", safetensors_of({"a": entry("F32", [9], 0, 35)}, bytes(35))),
    ):
        (tmp_path / name).write_bytes(data)
        with refused(device, name, error=FileDamaged):
            device.load(tmp_path / name)


def test_a_wrong_checksum_is_damage(device: Device, tmp_path: Path) -> None:
    data = bytearray(npz({"a": np.zeros(5000)}))
    data[len(data) // 2] ^= 1
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(FileDamaged, match="CRC"):
        device.load(tmp_path / "x.npz")


def test_a_file_that_changes_is_damage(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(100_000))
    file = device.open_file(path)
    with path.open("r+b") as other:
        other.truncate(50_000)
    with refused(device, "was changed", error=FileDamaged):
        file["arr_0"][:1]
    file.close()


def test_a_file_cut_short_while_it_is_read_gives_nothing(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the check before the first part sees the file whole; reading meets its end."""
    from accel_lab.compute.files.byte_source import FileBytes

    path = tmp_path / "x.npy"
    np.save(path, np.zeros((3 << 20,)))
    monkeypatch.setattr(FileBytes, "require_unchanged", lambda _: None)
    file = device.open_file(path)
    with path.open("r+b") as other:
        other.truncate(20 << 20)
    with pytest.raises(FileDamaged, match="ends at byte 20,971,520"):
        file["arr_0"].load()
    file.close()


def test_a_save_that_fails_leaves_what_was_there(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    device.save(device.put(np.arange(3)), path)
    fine = device.put(np.zeros((3 << 20,)))
    refs = {"a": fine, "b": device.put(np.ones(2, ml_dtypes.bfloat16))}
    with refused(device, "bfloat16", "safetensors"):
        device.save(refs, tmp_path / "x.npz")
    with refused(device, "a .npy has one array"):
        device.save(refs, path)
    with refused(device, "by their names"):
        device.save(fine, tmp_path / "x.npz")
    with refused(device, "none of the formats"):
        device.save(fine, tmp_path / "x.txt")
    with refused(device, "AccelRef"):
        device.save({"a": np.zeros(3)}, tmp_path / "x.npz")  # type: ignore[dict-item]
    for suffix, name in ((".npz", "a\0b"), (".npz", "\ud800"), (".safetensors", "\ud800")):
        with refused(device, repr(name)):
            device.save({name: fine}, tmp_path / f"x{suffix}")
    with pytest.raises(FileNotFoundError):
        device.save(fine, tmp_path / "no" / "x.npy")
    device.run(_raise, fine, writes=(fine,))
    with pytest.raises(DependencyFailed):
        device.save(fine, path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.npy"]
    assert_same(np.load(path), np.arange(3))


def _raise(_: Any) -> None:
    raise ValueError("on purpose")


@pytest.fixture
def lab(backend: Any) -> Iterator[System]:
    with System(backend.__name__.rpartition(".")[2], devices=1, recover="replay") as system:
        yield system


def test_what_was_loaded_is_there_again_after_a_kill(lab: System, tmp_path: Path) -> None:
    """The record keeps the bytes as those of a put: the file may be gone by then."""
    (device,) = lab.devices
    x = np.asfortranarray(np.random.default_rng(7).standard_normal((1 << 10, 1 << 11)))
    np.save(tmp_path / "x.npy", x)
    ref = device.load(tmp_path / "x.npy")
    (tmp_path / "x.npy").unlink()
    ref.result()
    assert ref.durability == "replayable"
    lost = device.ask(Inject("kill"))
    with pytest.raises(ContextLost):
        lost.result(timeout_s=30)
    assert_same(value(device, ref), np.ascontiguousarray(x))


def test_paths_that_are_none_are_refused(device: Device) -> None:
    with refused(device, "a path"):
        device.load(7)  # type: ignore[arg-type]
    ref = device.put(np.zeros(2))
    with refused(device, "a path"):
        device.save(ref, 7)  # type: ignore[arg-type]
    with refused(device, "no character 0"):
        device.load("a\0.npy")
    with refused(device, "no character 0"):
        device.save(ref, "a\0.npy")
    with pytest.raises(InvalidArgument):
        device.open_file("")
