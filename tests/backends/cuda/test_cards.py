"""Which cards the cuda backend counts, without opening CUDA."""

import subprocess
import sys

import pytest

from accel_lab.backends.cuda.device.cards import visible


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("0", 1),
        ("3,1", 2),
        (" 0 , 2 ", 2),
        ("", 0),
        ("-1", 0),
        ("0,-1,1", 1),
        ("1,4,2", 1),
        ("GPU-8932f937,1", 2),
        ("MIG-GPU-8932f937/1/2", 1),
        ("NoDevFiles", 0),
    ],
)
def test_visible_devices_are_counted_as_cuda_counts_them(chosen: str, expected: int) -> None:
    assert visible(chosen, total=4) == expected


def test_asking_for_the_backend_imports_no_cuda() -> None:
    code = (
        "import sys; import accel_lab.backends.cuda as cuda;"
        "cuda.available(), cuda.device_count(), cuda.device_name(0);"
        "print(sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for package in ("cupy", "nvmath", "cuda", "torch"):
        assert f"'{package}'" not in done.stdout
