"""The random generators that have no name: a notebook and its cells have one of each."""

import random
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.cells.global_random import states
from accel_lab.errors import UserCodeError
from tests.conftest import require
from tests.notebook.cells import Notebook, lose

SEEDS = "import random\nimport numpy as np\nrandom.seed(7)\nnp.random.seed(7)\n"
DRAW = "float(random.random() + random.gauss(0, 1) + np.random.rand() + np.random.randn())"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - what is tested
    yield
    random.setstate(python)
    np.random.set_state(numpy)  # noqa: NPY002 - what is tested


def in_one_script(*, draws: int) -> list[str]:
    names: dict[str, Any] = {}
    exec(SEEDS, names)  # noqa: S102 - of this file
    return [repr(eval(DRAW, names)) for _ in range(draws)]  # noqa: S307 - of this file


@pytest.mark.parametrize("seeded_in_a_cell", [True, False])
def test_cells_and_the_notebook_draw_one_sequence(
    notebook: Notebook, *, seeded_in_a_cell: bool
) -> None:
    expected = in_one_script(draws=6)
    random.seed(1)
    names = notebook.names
    if seeded_in_a_cell:
        notebook(SEEDS)
        names["random"] = random
    else:
        exec(SEEDS, names)  # noqa: S102 - of this file
    assert notebook(DRAW) == expected[0]
    assert repr(eval(DRAW, names)) == expected[1]  # noqa: S307 - of this file
    assert notebook(DRAW) == expected[2]
    with pytest.raises(UserCodeError):
        notebook(f"{DRAW}\n1 / 0")
    lose(notebook)
    assert notebook(DRAW) == expected[4]
    notebook._cells.time("-n 3 -r 2", DRAW)
    assert repr(eval(DRAW, names)) == expected[5], "what is timed leaves nothing"  # noqa: S307


def test_functions_of_the_notebook_draw_from_them_too(notebook: Notebook) -> None:
    expected = in_one_script(draws=2)
    names = notebook.names | {"__name__": "__main__"}
    exec(f"{SEEDS}\ndef draw():\n    return {DRAW}", names)  # noqa: S102 - of this file
    notebook.names["draw"] = names["draw"]
    assert notebook("draw()") == expected[0]
    assert repr(names["draw"]()) == expected[1]


def test_functions_of_modules_draw_from_them_too(notebook: Notebook) -> None:
    """As `from random import random` binds one: it is a method of the one that has no name."""
    expected = in_one_script(draws=3)
    names = notebook.names | {"gauss": random.gauss, "draw": random.random}
    names |= {"rand": np.random.rand, "randn": np.random.randn}
    draw = "float(draw() + gauss(0, 1) + rand() + randn())"
    exec(SEEDS, names)  # noqa: S102 - of this file
    notebook.names |= {name: names[name] for name in ("gauss", "draw", "rand", "randn")}
    assert notebook(draw) == expected[0]
    assert notebook(draw) == expected[1]
    assert repr(eval(draw, names)) == expected[2]  # noqa: S307 - of this file


def test_two_devices_draw_what_one_script_does_and_functions_something_of_their_own() -> None:
    expected = in_one_script(draws=2)
    with System("host", devices=2) as lab:
        notebook = Notebook(lab)
        exec(SEEDS, notebook.names)  # noqa: S102 - of this file
        assert [notebook(DRAW, f"cpu{device}") for device in range(2)] == expected
        drawn = {float(device.run(np.random.rand).result()) for device in lab.devices}
        drawn.add(float(np.random.rand()))  # noqa: NPY002 - what is tested
        assert len(drawn) == 3


def test_torch_draws_one_sequence_too(notebook: Notebook) -> None:
    require("torch")
    torch = import_module("torch")
    torch.manual_seed(5)
    expected = [torch.rand(2).tolist() for _ in range(3)]
    torch.manual_seed(5)
    notebook.names["torch"] = torch
    assert notebook("torch.rand(2).tolist()") == repr(expected[0])
    assert torch.rand(2).tolist() == expected[1]
    assert notebook("torch.rand(2).tolist()") == repr(expected[2])


def test_nothing_travels_for_cells_that_draw_from_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    np.random.set_bit_generator(np.random.MT19937())  # type: ignore[attr-defined]
    assert states("x = 1", {"np": np}) == {}
    assert states("x = 1", {"rnd": random}).keys() == {"random"}
    assert states("x = 1", {"mix": random.shuffle}).keys() == {"random"}
    assert states("fix_seed(1)", {}).keys() == {"random", "numpy"}
    np.random.seed(3)  # noqa: NPY002 - what is tested
    assert states("x = 1", {}).keys() == {"random", "numpy"}
