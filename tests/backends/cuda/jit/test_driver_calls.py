"""Launches in clusters and tiles of arrays, as the driver is given them; without a GPU."""

import ctypes
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab.errors import InvalidArgument

if find_spec("cupy") is None:
    pytest.skip(
        "the packages of the cuda12 or cuda13 extra are not installed", allow_module_level=True
    )

from accel_lab.backends.cuda.jit import nvrtc
from accel_lab.backends.cuda.jit.driver_calls import Attribute, Config, layout
from accel_lab.backends.cuda.jit.kernel import lacking_hopper

OFFSETS = """
#include <cstddef>
#include <cstdio>
#include <cuda.h>
int main() {
  printf("%zu %zu %zu %zu %zu %zu %d %d\\n", sizeof(CUlaunchConfig),
         offsetof(CUlaunchConfig, hStream), offsetof(CUlaunchConfig, attrs),
         offsetof(CUlaunchConfig, numAttrs), sizeof(CUlaunchAttribute),
         offsetof(CUlaunchAttribute, value), CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
         CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
}
"""


def test_the_structures_are_those_of_cuda(tmp_path: Path) -> None:
    folders = [folder for folder in nvrtc.include_folders() if Path(folder, "cuda.h").is_file()]
    compiler = shutil.which("g++")
    if not folders or compiler is None:
        pytest.skip("there is no cuda.h, or no g++")
    (tmp_path / "offsets.cpp").write_text(OFFSETS)
    command = [compiler, f"-I{folders[0]}", "offsets.cpp", "-o", "offsets"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "offsets"], capture_output=True, text=True, check=True)
    ours = (
        ctypes.sizeof(Config),
        Config.stream.offset,
        Config.attributes.offset,
        Config.count.offset,
    )
    assert tuple(map(int, done.stdout.split())) == (
        *ours,
        ctypes.sizeof(Attribute),
        Attribute.value.offset,
        4,
        6,
    )


@pytest.mark.parametrize(
    ("array", "strides"),
    [
        (np.zeros(64, np.float32), (4,)),
        (np.zeros((3, 8), np.float32), (32, 4)),
        (np.zeros((3, 8, 4), np.float32)[::2, 1:5], (256, 16, 4)),
        (np.zeros((1, 6), np.float32), (32, 4)),
        (np.zeros((6, 1, 16), np.uint8), (16, 16, 1)),
        (np.zeros((8, 8), np.float16)[:, :1], (16, 2)),
    ],
)
def test_strides_are_those_of_the_array(array: Any, strides: tuple[int, ...]) -> None:
    assert layout(array) == strides


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((8, 8), np.float32).T[:4], "its last axis has gaps"),
        (np.zeros((8, 3), np.float32), "a stride of 12 bytes"),
        (np.zeros((8, 8), np.float32)[::-1], "a stride of -32 bytes"),
        (np.broadcast_to(np.zeros(8, np.float32), (4, 8)), "a stride of 0 bytes"),
    ],
)
def test_strides_that_no_card_takes_are_refused(array: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        layout(array)


def test_older_cards_are_told_by_their_capability() -> None:
    assert lacking_hopper(90) == lacking_hopper(120) == ""
    assert "9.0 or higher, and this one has 8.9" in lacking_hopper(89)
