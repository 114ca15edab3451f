"""What cells change in place of the notebook's own."""

from typing import Any

import numpy as np
import pytest

from accel_lab.compute import workspace
from accel_lab.errors import UserCodeError
from accel_lab.notebook.object_ref import ObjectRef
from tests.notebook.cells import Notebook


def test_what_a_cell_changes_of_the_notebooks_is_changed_there(notebook: Notebook) -> None:
    losses: list[float] = []
    options, seen, weights = {"n": 0}, {1}, np.zeros(3)
    same = losses
    notebook.names |= {"losses": losses, "options": options, "seen": seen, "weights": weights}
    notebook(
        "for k in range(3):\n    losses.append(k / 2)\noptions['n'] += 1\nseen.add(2)\nweights += 1"
    )
    assert (losses, options, seen) == ([0.0, 0.5, 1.0], {"n": 1}, {1, 2})
    assert notebook.names["losses"] is same, "it is the list that others have, too"
    np.testing.assert_array_equal(weights, np.ones(3))
    with pytest.raises(UserCodeError):
        notebook("losses.append(9)\n1 / 0")
    assert losses[-1] == 9, "as far as the cell got, as in one of the notebook's own"
    notebook("weights *= 3\nweights.shape = (3, 1)")
    np.testing.assert_array_equal(weights, np.full(3, 3.0), "its shape is the notebook's")
    notebook("losses.append(8)\noptions['n'] += 1", "-o options")
    assert (losses[-1], options) == (9, {"n": 2}), "the others stay as they are"
    notebook("losses = [7]")
    assert losses[-1] == 9
    assert isinstance(notebook.names["losses"], ObjectRef)


def test_what_a_timed_cell_has_changed_is_not_what_the_next_has(notebook: Notebook) -> None:
    """Not even of one that is stopped before it begins."""
    losses = notebook.names["losses"] = [1]
    notebook._cells.time("-n 1 -r 1", "losses.append(2)")
    assert notebook.gpu.run(workspace.outcome, notebook._cells._name).result().returned == {}
    assert losses == [1]
    notebook("losses.append(3)")
    assert losses == [1, 3]


def test_a_list_of_the_notebooks_that_gets_an_array_stays_with_the_arrays(
    notebook: Notebook,
) -> None:
    kept: list[Any] = [1]
    notebook.names |= {"kept": kept, "also": [2]}
    notebook("kept.append(np.ones(2))\nalso[0]")
    assert (kept, notebook.names["also"]) == ([1], [2])
    assert isinstance(notebook.names["kept"], ObjectRef)
    assert notebook("len(kept), kept[1].sum()") == "(2, np.float64(2.0))"
