"""JAX's arrays of cells: handles in the notebook, and JAX's again in the next cell."""

import sys

import numpy as np
import pytest

from accel_lab.compute.message.buffer import AccelRef
from tests.conftest import require
from tests.notebook.cells import Notebook


@pytest.fixture(autouse=True)
def _jax() -> None:
    require("jax")


def test_an_array_of_a_cell_is_a_handle_and_jaxs_in_the_next_cell(notebook: Notebook) -> None:
    notebook("import jax.numpy as jnp\nx = jnp.arange(4.0)")
    notebook("half = x.astype('bfloat16')\nboth = [x]")
    x, half = notebook.names["x"], notebook.names["half"]
    assert isinstance(x, AccelRef)
    assert (x.dtype, half.dtype) == ("float32", "bfloat16")
    np.testing.assert_array_equal((x + 1).get(), [1, 2, 3, 4])
    np.testing.assert_array_equal(notebook.names["both"].get()[0].get(), x.get())
    notebook("y = x.at[0].set(7)")
    assert notebook.names["x"] is x
    np.testing.assert_array_equal(notebook.names["y"].get(), [7, 1, 2, 3])
    assert "jax" not in sys.modules


def test_an_array_that_comes_back_after_a_loss_is_jaxs_again(notebook: Notebook) -> None:
    notebook("import jax.numpy as jnp\nx = jnp.arange(4.0)")
    notebook.gpu.checkpoint(notebook.names["x"]).result()
    notebook.gpu.replace()
    notebook("z = x.at[1].set(5)\nkind = type(x).__module__")
    np.testing.assert_array_equal(notebook.names["z"].get(), [0, 5, 2, 3])
    assert str(notebook.names["kind"]).startswith("jax")
