"""Random generators of the notebook's that cells draw from: there is one sequence."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel_lab.errors import UserCodeError
from tests.notebook.cells import Notebook

MAKERS: dict[str, tuple[Callable[[], Any], str]] = {
    "Random": (lambda: random.Random(1), "g.gauss(0, 1)"),
    "RandomState": (lambda: np.random.RandomState(1), "g.standard_normal()"),
    "Generator": (lambda: np.random.default_rng(1), "g.standard_normal()"),
    "Philox": (lambda: np.random.Generator(np.random.Philox(1)), "g.integers(9, dtype='u1')"),
    "PCG64": (lambda: np.random.PCG64(1), "g.random_raw()"),
    "SeedSequence": (lambda: np.random.SeedSequence(1), "g.spawn(1)[0].generate_state(1)[0]"),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_the_notebook_draws_on_where_a_cell_has_ended(notebook: Notebook, kind: str) -> None:
    make, draw = MAKERS[kind]
    plain = make()
    expected = [eval(draw, {"g": plain}) for _ in range(6)]  # noqa: S307 - of this file
    g = make()
    inside = {"one": g, "other": object(), "log": []}
    notebook.names |= {"g": g, "inside": inside}
    assert eval(draw, {"g": g}) == expected[0]  # noqa: S307 - as above
    notebook(f"drawn = [{draw} for _ in range(2)]")
    notebook(f"g = inside['one']\ninside['log'].append(str({draw}))")
    assert inside["one"] is g
    assert inside["log"] == [str(expected[3])]
    assert notebook("drawn") == repr(expected[1:3])
    with pytest.raises(UserCodeError):
        notebook(f"g = inside['one']\n{draw}\n1 / 0")
    assert eval(draw, {"g": g}) == expected[5]  # noqa: S307 - as above


def test_a_generator_spawns_on_where_a_cell_has_ended(notebook: Notebook) -> None:
    plain, rng = np.random.default_rng(4), np.random.default_rng(4)
    *_, expected = plain.spawn(3)
    notebook.names["rng"] = rng
    notebook("streams = rng.spawn(2)")
    assert rng.spawn(1)[0].random() == expected.random()


def test_a_generator_of_another_kind_replaces_one_inside_something(notebook: Notebook) -> None:
    state: dict[str, Any] = {"rng": np.random.default_rng(0), "also": object()}
    notebook.names["state"] = state
    notebook("state['rng'] = np.random.Generator(np.random.MT19937(5))")
    expected = np.random.Generator(np.random.MT19937(5))
    assert state["rng"].random() == expected.random()
