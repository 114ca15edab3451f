"""Headers of files: what is damaged is refused before anything is made of it."""

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accel_lab.compute.files.formats import contents_of
from accel_lab.errors import FileDamaged, FileError, InvalidArgument
from tests.compute.files.written import entry, npy, npy_of, npz, safetensors_of

MOST_BYTES = 8 << 20
"""What reading a header of a few bytes may take."""
ARRAY = np.arange(6, dtype="<i4").reshape(2, 3)
WHOLE = {
    ".npy": npy(ARRAY),
    ".npz": npz({"a": ARRAY, "b": np.ones(40)}, packed=True),
    ".safetensors": safetensors_of(
        {"a": entry("I32", [2, 3], 0, 24), "b": entry("F64", [1], 24, 32)}, bytes(32)
    ),
}
each_format = pytest.mark.parametrize("suffix", WHOLE)
Read = Callable[[str, bytes], bool]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """Read the header of a file; tell whether it was one. No other failure than ours passes."""
    folder = tmp_path_factory.mktemp("headers")

    def read_header(suffix: str, data: bytes) -> bool:
        path: Path = folder / f"some{suffix}"
        path.write_bytes(data)
        tracemalloc.start()
        try:
            contents_of(path).close()
        except (FileDamaged, InvalidArgument):
            return False
        else:
            return True
        finally:
            taken = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert taken < MOST_BYTES

    return read_header


@each_format
def test_whole_files_are_read(read: Read, suffix: str) -> None:
    assert read(suffix, WHOLE[suffix])


@each_format
@settings(max_examples=80)
@given(data=st.binary(max_size=300))
@example(data=b"")
def test_random_bytes_are_refused(read: Read, suffix: str, data: bytes) -> None:
    read(suffix, data)


@each_format
@settings(max_examples=150)
@given(data=st.data())
def test_changed_bytes_raise_nothing_else(read: Read, suffix: str, data: st.DataObject) -> None:
    changed = bytearray(WHOLE[suffix])
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    read(suffix, bytes(changed))


@pytest.mark.parametrize("suffix", [".npy", ".safetensors"])
def test_every_file_that_is_cut_short_is_refused(read: Read, suffix: str) -> None:
    whole = WHOLE[suffix]
    for length in range(len(whole)):
        assert not read(suffix, whole[:length]), length
    assert not read(suffix, whole + b"x")


numbers = st.integers(-3, 2**70) | st.booleans() | st.none() | st.floats() | st.text(max_size=3)
shapes = st.lists(numbers, max_size=4) | numbers


@settings(max_examples=150)
@given(
    descr=st.sampled_from(["<f8", ">i4", "|b1", "O", "<U3", "f8", "<f3", "<M8[s]", "(2,3)f8", 7]),
    order=st.booleans() | st.none() | st.integers(),
    shape=shapes.map(lambda made: tuple(made) if isinstance(made, list) else made),
    data=st.binary(max_size=40),
    version=st.integers(0, 4),
)
def test_no_npy_header_raises_anything_else(
    read: Read, descr: Any, order: Any, shape: Any, data: bytes, version: int
) -> None:
    said = f"{{'descr': {descr!r}, 'fortran_order': {order!r}, 'shape': {shape!r}}}"
    read(".npy", npy_of(said, data, version))


@settings(max_examples=150)
@given(
    entries=st.dictionaries(
        st.sampled_from(["a", "b", "__metadata__"]),
        st.fixed_dictionaries(
            {
                "dtype": st.sampled_from(["F32", "BF16", "F4", "BOOL", "?", 3]),
                "shape": shapes,
                "data_offsets": st.lists(numbers, min_size=1, max_size=3) | numbers,
            }
        )
        | numbers,
    ),
    data=st.binary(max_size=40),
)
def test_no_safetensors_header_raises_anything_else(
    read: Read, entries: dict[str, Any], data: bytes
) -> None:
    read(".safetensors", safetensors_of(entries, data))


@pytest.mark.parametrize(
    ("header", "data"),
    [
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,)}", b""),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 8)}", b""),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", bytes(7)),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", b""),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (True,)}", bytes(8)),
        ("{'descr': '<f8', 'fortran_order': 1, 'shape': (1,)}", bytes(8)),
        ("{'descr': '<f8', 'shape': (1,)}", bytes(8)),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'more': 1}", bytes(8)),
        ("__import__('os').getcwd()", b""),
        ("(" * 5000, b""),
    ],
)
def test_lying_npy_headers_are_damage(tmp_path: Path, header: str, data: bytes) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(npy_of(header, data))
    with pytest.raises(FileDamaged, match=r"x\.npy"):
        contents_of(path)


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.array([{}, None], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidArgument, match="pickled"):
        contents_of(path)


@pytest.mark.parametrize(
    ("header", "size", "found"),
    [
        ({"a": entry("F32", [2], 0, 8), "b": entry("F32", [1], 4, 8)}, 8, "overlaps"),
        ({"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 8, 12)}, 12, "gap"),
        ({"a": entry("F32", [1], 0, 4)}, 5, "speaks of 4"),
        ({"a": entry("F32", [2], 0, 4)}, 4, "8 bytes, and lies in 4"),
        ({"a": entry("F32", [1], 4, 0)}, 4, "lies at"),
        ({"a": entry("F32", [2**62], 0, 2**62)}, 0, "lies in"),
        ({"a": {"dtype": "F32", "shape": [1]}}, 4, "no dtype, shape and data_offsets"),
        ({"__metadata__": {"a": 1}}, 0, "no table of texts"),
        (b'{"a":1,"a":2}', 0, "twice"),
        (b"[]", 0, "does not begin"),
        (b"{" * 100_000, 0, "cannot be read"),
        (b'{"\xff": 1}', 0, "cannot be read"),
    ],
)
def test_lying_safetensors_headers_are_damage(
    tmp_path: Path, header: Any, size: int, found: str
) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(safetensors_of(header, bytes(size)))
    with pytest.raises(FileDamaged, match=found):
        contents_of(path)


def test_a_length_beyond_the_file_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes((2**63).to_bytes(8, "little") + b"{}")
    with pytest.raises(FileDamaged, match="its header has"):
        contents_of(path)


def test_dtypes_that_no_device_has_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    header = {"a": entry("F8_E8M0", [3], 0, 3), "b": entry("U8", [2], 3, 5)}
    path.write_bytes(safetensors_of(header, bytes(5)))
    found = contents_of(path)
    assert list(found.arrays) == ["b"]
    assert found.refused == {"a": "it is of dtype F8_E8M0"}
    found.close()


def test_an_archive_that_unpacks_into_too_much_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    data = bytearray(npz({"a": ARRAY}, packed=True))
    central = data.rindex(b"PK\x01\x02")
    data[central + 24 : central + 28] = (2**31).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(FileDamaged, match="unpack into 2,147,483,648"):
        contents_of(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "x.npy"
    folder.mkdir()
    with pytest.raises(FileError, match="no regular file"):
        contents_of(folder)
    with pytest.raises(FileNotFoundError):
        contents_of(tmp_path / "y.npy")
    with pytest.raises(InvalidArgument, match=r"\.npz"):
        contents_of(tmp_path / "y.csv")


def test_the_longest_header_of_numpy_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    array = np.zeros((1,) * 64, "f4")
    with path.open("wb") as file:
        np.lib.format.write_array(file, array, version=(3, 0))
    found = contents_of(path)
    assert found.arrays["arr_0"].shape == array.shape
    found.close()
    assert json.dumps(found.metadata) == "{}"
