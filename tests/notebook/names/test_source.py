"""The text of functions and classes of a notebook, as `inspect` finds it in a context."""

import inspect
import linecache
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("IPython", reason="IPython comes with the lab extra")

from accel_lab import System
from tests.notebook.ipython import Lab, lose, notebook

DEFINE = (
    "class Kind:\n    size = 3\n\n    def twice(self, x):\n        return 2 * x  # of Kind\n\n"
    "class Empty:\n    size = 4\n\n"
    "def outer(k):\n    def inner(x):\n        return k * x\n    return inner\n\n"
    "small = lambda x: x + 1\nthrice = outer(3)"
)


def text(of: Any) -> str:
    """Return the source of something, where this runs."""
    return inspect.getsource(of)


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with System("host", max_restarts=20, within_s=0.1) as system:
        yield system


@pytest.fixture
def lab(system: System) -> Iterator[Lab]:
    with notebook(system) as lab:
        lab.names["text"] = text
        yield lab


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("outer", "def outer(k):\n    def inner(x):\n        return k * x\n    return inner\n"),
        ("thrice", "    def inner(x):\n        return k * x\n"),
        ("small", "small = lambda x: x + 1\n"),
        ("Kind.twice", "    def twice(self, x):\n        return 2 * x  # of Kind\n"),
        (
            "Kind",
            DEFINE[: DEFINE.index("\nclass Empty")],
        ),
    ],
)
def test_a_context_has_the_source_of_what_the_notebook_defines(
    lab: Lab, name: str, source: str
) -> None:
    lab(DEFINE)
    assert lab(f"gpu.run(text, {name}).result()") == source
    lab(f"%%gpu --quiet\nimport inspect\nfound = inspect.getsource({name})")
    assert lab("found.get()") == source


@pytest.mark.parametrize("name", ["outer", "thrice", "small", "Kind.twice", "Kind", "Empty"])
def test_a_context_has_the_source_of_what_a_cell_defines(
    lab: Lab, system: System, name: str
) -> None:
    lab(f"%%gpu --quiet\n{DEFINE}")
    lab(f"%%gpu --quiet\nimport inspect\nfirst = inspect.getsource({name})")
    assert lab("first.get()") in f"{DEFINE}\n"
    if name not in ("small", "thrice"):  # these are lost with their context
        lose(system)
        lab(f"%%gpu --quiet\nimport inspect\nsecond = inspect.getsource({name})")
        assert lab("first.get() == second.get()")


def test_the_source_of_a_cells_function_comes_along_to_the_notebook(lab: Lab) -> None:
    lab(f"%%gpu --quiet\n{DEFINE}")
    made = lab("outer.get()")
    assert inspect.getsource(made).startswith("def outer(k):")
    assert made(3)(4) == 12


def test_the_source_of_a_cells_function_is_there_when_a_device_is_resumed(
    lab: Lab, system: System
) -> None:
    lab(f"%%gpu --quiet\n{DEFINE}\nkept = [outer]")
    system.suspend()
    system.resume()
    lab("%%gpu --quiet\nimport inspect\nfound = inspect.getsource(kept[0])")
    assert lab("found.get()").startswith("def outer(k):")


def test_a_text_that_is_long_stays_where_it_is(lab: Lab) -> None:
    lab("def small(x):\n    return x")
    name = lab.names["small"].__code__.co_filename
    entry: Any = linecache.cache[name]
    size, when, lines, full = entry
    linecache.cache[name] = size, when, [*lines, "#" * (1 << 20)], full
    assert lab("gpu.run(small, 3).result()") == 3
    assert "could not get source code" in str(lab.fail("gpu.run(text, small).result()"))
