"""Functions, classes and other objects that cells have left, called in the notebook."""

import copy
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import StaleRef, UserCodeError
from accel_lab.notebook.callable_ref import CallableRef
from tests.notebook.cells import ONES, Notebook, empty, lose

DEFINE = """
class Model:
    def __init__(self, w):
        self.w = w

    def __call__(self, x):
        return self.w * x

    def grow(self):
        self.w += 1

def scaled(x, *, by=2.0):
    return x * by + offset

def counted(n=1):
    global count
    count += n
    return count

def fails(x):
    y = x - x
    return 1 / int(y)

def outer(k):
    def inner(x):
        return inner_scale * k * x
    return inner

inner_scale = 1
thrice = outer(3)
count = offset = 0
model = Model(xp.full(3, 2.0))
"""


@pytest.fixture
def cells(notebook: Notebook) -> Iterator[Notebook]:
    notebook(DEFINE, "--quiet")
    yield notebook
    empty(notebook)


def test_a_function_of_a_cells_runs_where_it_is(cells: Notebook) -> None:
    x = cells.gpu.put(ONES)
    answer = cells.names["scaled"](x, by=3.0)
    assert isinstance(answer, AccelRef)
    np.testing.assert_array_equal(cells.gpu.get(answer).result(), 3 * ONES)
    cells.names["y"] = answer
    assert cells("float(y.sum())") == "27.0"
    assert cells.names["thrice"](5) == 15
    assert cells.names["thrice"]([1])[:2] == [1, 1]


def test_an_object_and_a_class_are_called_too(cells: Notebook) -> None:
    assert cells.gpu.get(cells.names["model"](4.0)).result().tolist() == [8.0] * 3
    made = cells.names["Model"](3)
    assert (made.w, made(5)) == (3, 15)
    cells("bound = model.grow\nfrom functools import partial\npart = partial(scaled, by=5)")
    assert cells.names["bound"]() is None
    assert cells.gpu.get(cells.names["model"](4.0)).result().tolist() == [12.0] * 3
    assert cells.names["part"](2) == 10


def test_what_it_declares_global_is_bound_in_the_notebook(cells: Notebook) -> None:
    for turn in (1, 2):
        assert cells.names["counted"]() == turn
        assert cells.names["count"].get() == turn
    assert cells("count") == "2"


def test_it_finds_what_the_notebook_has_by_now(cells: Notebook) -> None:
    cells.names["offset"] = 10
    assert cells.names["scaled"](1) == 12.0
    cells.names["offset"] = 20
    assert cells.names["scaled"](1) == 22.0
    space = cells.names
    exec("unit = 7\ndef convert(x):\n    return unit * x", space)  # noqa: S102 - as IPython does
    cells("def through(f, x):\n    return f(x)")
    assert space["through"](space["convert"], 3) == 21
    space["unit"] = 8
    assert space["through"](space["convert"], 3) == 24


def test_its_error_is_the_users(cells: Notebook) -> None:
    with pytest.raises(UserCodeError, match="ZeroDivisionError: division by zero") as caught:
        cells.names["fails"](3)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "return 1 / int(y)" in str(caught.value)
    with pytest.raises(UserCodeError, match="unexpected keyword argument 'to'"):
        cells.names["scaled"](3, to=1)
    cells("def later():\n    global left\n    left = 5\n    return (i for i in range(3))")
    with pytest.raises(UserCodeError, match="the result, a generator, cannot be pickled"):
        cells.names["later"]()
    assert cells.names["left"].get() == 5, "what it had done by then is told"


def test_only_what_can_be_called_is_callable(cells: Notebook) -> None:
    assert {n for n, one in cells.names.items() if isinstance(one, CallableRef)} == {
        "Model",
        "counted",
        "fails",
        "model",
        "outer",
        "scaled",
        "thrice",
    }
    assert not callable(cells.names["count"])
    with pytest.raises(TypeError, match="not callable"):
        cells.names["count"]()


def test_it_is_called_after_a_loss_where_it_is_defined_again(cells: Notebook) -> None:
    lose(cells)
    old: Any = cells.names["scaled"]
    assert old(1) == 2.0
    assert cells.names["scaled"] is not old
    assert cells.names["scaled"](2) == 4.0
    with pytest.raises(StaleRef, match="'thrice'"):
        cells.names["thrice"](1)


def test_a_call_draws_from_the_notebooks_generators(cells: Notebook) -> None:
    cells("import random\ndef roll():\n    return random.random(), random.random()")
    random.seed(3)
    expected = [random.random() for _ in range(3)]
    random.seed(3)
    assert [*cells.names["roll"](), random.random()] == expected


def test_its_copy_is_the_object(cells: Notebook) -> None:
    assert copy.copy(cells.names["Model"])(2)(3) == 6
