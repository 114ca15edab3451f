"""The headers of accel_lab for kernels: NVRTC compiles a kernel that uses each, without a GPU."""

from importlib.util import find_spec

import pytest

from accel_lab.errors import CompileError
from accel_lab.libraries.jit.messages import Compile
from accel_lab.libraries.jit.signature import TABLE, parameters_of
from tests.backends.cuda.jit import device_kernels as kernels

if find_spec("cupy") is None:
    pytest.skip(
        "the packages of the cuda12 or cuda13 extra are not installed", allow_module_level=True
    )

from accel_lab.backends.cuda.jit import nvrtc
from accel_lab.backends.cuda.jit.cubin import data_of


@pytest.mark.parametrize(
    ("source", "name", "architecture"),
    [
        (kernels.STAGED, "turn<4>", "80"),
        (kernels.STAGED, "turn<8>", "80"),
        (kernels.STAGED, "turn<16>", "80"),
        (kernels.OVERLAP, "grow", "90"),
        (kernels.CLUSTER, "sum", "90"),
        (kernels.ARRIVALS, "gather", "90"),
        (kernels.BYTES, "turn", "90"),
        (kernels.TILES, "grow", "90"),
        (kernels.AXES, "copy", "90"),
        (kernels.PRODUCT, "product<false>", "90"),
        (kernels.PRODUCT, "product<true>", "90"),
        (kernels.TENSOR_MEMORY, "product", "100"),
    ],
)
def test_a_kernel_of_each_header_compiles(source: str, name: str, architecture: str) -> None:
    built = nvrtc.build(Compile(source, name), architecture)
    assert parameters_of(data_of(built.cubin, TABLE))
    assert "error" not in built.log


def test_a_tensor_map_is_a_struct_of_128_bytes() -> None:
    built = nvrtc.build(Compile(kernels.TILES, "grow"), "90")
    assert [one.text for one in parameters_of(data_of(built.cubin, TABLE))] == [
        "struct of 128 bytes"
    ] * 2


@pytest.mark.parametrize("architecture", ["90", "100"])
def test_what_one_generation_has_is_compiled_for_it_alone(architecture: str) -> None:
    plain, special = Compile("__global__ void f() {}", "f"), Compile(kernels.PRODUCT, "product")
    assert nvrtc.options(plain, architecture)[0] == f"-arch=sm_{architecture}"
    assert nvrtc.options(special, architecture)[0] == f"-arch=sm_{architecture}a"


def test_a_card_without_them_refuses_the_instructions() -> None:
    with pytest.raises(CompileError):
        nvrtc.build(Compile(kernels.ARRIVALS, "gather"), "70")
    with pytest.raises(CompileError):
        nvrtc.build(Compile(kernels.TENSOR_MEMORY, "product"), "90")


def test_a_change_of_a_header_is_another_kernel() -> None:
    """All of ours that it includes are among the files by which it is found again."""
    found = nvrtc.includes(Compile(kernels.PRODUCT, "product"))
    assert found.whole
    names = {path.rpartition("/")[2] for path in found.paths if nvrtc.OWN_HEADERS in path}
    assert names >= {"tma.h", "wgmma.h", "mbarrier.h", "async_copy.h"}


@pytest.mark.parametrize(
    ("source", "waits"),
    [
        (kernels.OVERLAP, True),
        ("__global__ void f() { cudaGridDependencySynchronize(); }", True),
        ('__global__ void f() { asm volatile("griddepcontrol.wait;"); }', True),
        ('__global__ void f() { asm volatile("griddepcontrol.launch_dependents;"); }', False),
    ],
)
def test_whether_a_kernel_waits_for_the_one_ahead_is_read_off_it(
    source: str,
    waits: bool,  # noqa: FBT001 - a parameter
) -> None:
    assert nvrtc.waits_for_previous(Compile(source, "f")) == waits
