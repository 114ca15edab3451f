"""Files of CUTLASS's kernels: what is read is what was written, and damage is told."""

import contextlib
import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab import System, cutlass
from accel_lab.errors import FileDamaged, UnsupportedDtype
from accel_lab.libraries.cutlass.prebuilt import Prebuilt, packed, unpacked

names = st.text("0123456789abcdef", min_size=40, max_size=40)
files = st.builds(
    Prebuilt,
    st.sampled_from(("80", "90", "100")),
    names,
    st.dictionaries(names, st.binary(max_size=99), max_size=3),
    st.dictionaries(names, st.integers(0, 5), max_size=3),
)


@given(files)
def test_what_is_written_is_read(prebuilt: Prebuilt) -> None:
    assert unpacked(packed(prebuilt)) == prebuilt


SOME = Prebuilt("90", "a" * 40, {"b" * 40: bytes(range(250)) * 8}, {"c" * 40: 2})


@given(st.data())
def test_a_file_that_was_changed_is_told_or_the_same(data: st.DataObject) -> None:
    """Not all bytes of a ZIP file count; whatever is read is what was written."""
    content = bytearray(packed(SOME))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(FileDamaged):
        assert unpacked(bytes(content)) == SOME


@given(st.integers(0, len(packed(SOME)) - 1))
def test_a_file_that_is_cut_short_is_told(length: int) -> None:
    with pytest.raises(FileDamaged):
        unpacked(packed(SOME)[:length])


def rewritten(**changes: Any) -> bytes:
    """Return a file whose list says something else, and whose sums are right."""
    with zipfile.ZipFile(BytesIO(packed(SOME))) as file:
        told = json.loads(json.loads(file.read("manifest.json"))["of"]) | changes
        kernel = file.read("b" * 40)
    from accel_lab.libraries.cutlass import prebuilt

    text, made = json.dumps(told), BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        sealed = {"sum": prebuilt._sum(text.encode()), "of": text}
        file.writestr("manifest.json", json.dumps(sealed))
        file.writestr("b" * 40, kernel)
    return made.getvalue()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": 99}, "format 99"),
        ({"kernels": {"b" * 40: "0"}}, "damaged"),
        ({"kernels": {"../../kernel": "0"}}, "no hash"),
        ({"kernels": {"d" * 40: "0"}}, "damaged"),
        ({"kernels": None}, "damaged"),
        ({"tiles": {"e": 1}}, "no hash"),
        ({"tiles": {"e" * 40: "../x"}}, "tile"),
        ({"architecture": 90}, "damaged"),
    ],
    ids=str,
)
def test_a_list_that_is_wrong_is_told(changes: dict[str, Any], words: str) -> None:
    assert unpacked(rewritten()) == SOME
    with pytest.raises(FileDamaged, match=words):
        unpacked(rewritten(**changes))


def test_the_host_has_no_kernels_to_export(tmp_path: Path) -> None:
    path = tmp_path / "kernels.zip"
    with System("host", devices=1) as lab:
        (device,) = lab.devices
        with pytest.raises(UnsupportedDtype, match="compiles nothing for a product"):
            cutlass.export(device, path)
        assert not list(tmp_path.iterdir())
        path.write_bytes(packed(SOME))
        with pytest.raises(UnsupportedDtype, match="compiles nothing for a product"):
            cutlass.install(device, path)
        path.write_bytes(b"PK")
        with pytest.raises(FileDamaged, match="no file of kernels"):
            cutlass.install(device, path)
