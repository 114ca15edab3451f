"""An OutOfMemory tells what libraries hold in cells that is no buffer, and by which names."""

from collections.abc import Iterator

import pytest

pytest.importorskip("IPython", reason="IPython comes with the lab extra")

from accel_lab import System, array
from accel_lab.compute.residency.library_memory import LibraryMemory, by_library
from accel_lab.errors import OutOfMemory
from tests.notebook.ipython import Lab, notebook

KIB = 1 << 10


@pytest.fixture
def lab() -> Iterator[Lab]:
    """Open a device of a MiB of which nothing gives way."""
    with System("host", memory_bytes=1 << 20, spill=False) as system, notebook(system) as opened:
        yield opened


def refused(lab: Lab) -> OutOfMemory:
    with pytest.raises(OutOfMemory) as caught:
        array.zeros(lab.gpu, (1000, 2 * KIB), dtype="uint8").result(60)
    return caught.value


def test_what_cells_hold_in_objects_is_told_with_its_names(lab: Lab) -> None:
    lab("%%gpu\nimport numpy\nclass Model: pass\nmodel = Model(); model.w = numpy.ones((50, 1024))")
    lab("%%gpu\nhistory = {'loss': [numpy.ones(1024)]}")
    error = refused(lab)
    assert error.libraries == (("NumPy", 51 * 8 * KIB),)
    assert error.library_names == (("model", "history"),)
    assert "in %%gpu cells, beside the buffers, NumPy has 408 KiB (kept by model, history)" in str(
        error
    )


def test_a_buffer_that_a_cell_has_a_name_for_is_told_as_one(lab: Lab) -> None:
    lab("%%gpu\nimport numpy\nweights = numpy.ones(1024)")
    error = refused(lab)
    assert error.libraries == ()
    assert "beside the buffers" not in str(error)


def test_an_allocator_counts_what_nothing_leads_to() -> None:
    tensor = type("Tensor", (), {"__module__": "torch"})()
    of_jax = type("ArrayImpl", (), {"__module__": "jaxlib._jax"})()
    named = [("model", tensor, 100), ("optimizer", tensor, 300), ("x", of_jax, 50)]
    assert by_library(named, [("PyTorch", 1000)]) == [
        LibraryMemory("PyTorch", 1000, ("optimizer", "model")),
        LibraryMemory("JAX", 50, ("x",)),
    ]
    assert by_library((), [("PyTorch", 0)]) == []
