"""What `%%gpu` cells have defined, after the context that they ran in is lost."""

from collections.abc import Iterator

import pytest

from accel_lab import System
from accel_lab.compute.cells.definitions import changed, compiled, definitions
from accel_lab.errors import StaleRef, UserCodeError
from accel_lab.notebook.object_ref import ObjectRef
from tests.notebook.ipython import Lab, lose, shown
from tests.notebook.ipython import notebook as opened


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", max_restarts=20, within_s=0.1) as lab:
        yield lab


@pytest.fixture
def notebook(lab: System) -> Iterator[Lab]:
    with opened(lab) as notebook:
        yield notebook


def test_imports_functions_classes_and_constants_are_there_after_a_fault(
    notebook: Lab, lab: System, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook("%%gpu\nimport math, os.path\nRATE = -2.5")
    notebook(
        "%%gpu\nfrom __future__ import annotations\nfrom functools import cache\n"
        "@cache\ndef half(n: Unknown):\n    return n / 2"
    )
    notebook(
        "%%gpu\nclass Shape:\n    sides = 3, 4\n"
        "    def hypotenuse(self):\n        return math.hypot(*self.sides)"
    )
    capsys.readouterr()
    lose(lab)
    source = "(math.pi > 3, os.path.sep, RATE, half(3), Shape().hypotenuse())"
    assert shown(notebook, source) == "(True, '/', -2.5, 1.5, 5.0)"
    assert "run the cells again" not in capsys.readouterr().err
    half = notebook.names["half"]
    assert isinstance(half, ObjectRef)
    assert half.generation == lab.devices[0].generation


def test_what_a_failed_cell_had_defined_is_there_after_a_fault(
    notebook: Lab, lab: System, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after the failure itself; what stands behind the line that failed is not."""
    notebook("%%gpu --quiet\nimport string")
    error = notebook.fail(
        "%%gpu --quiet\nimport math, xml.dom\nfrom os import path as of_os\nk, n = 3, 4\n"
        "RATE = 2.5\n"
        "twice = lambda x: 2 * x\ndef area(r):\n    return math.pi * r * RATE\n"
        "1 / 0\nimport colorsys\nlate = 5"
    )
    assert isinstance(error.__cause__, ZeroDivisionError)
    use = "(area(2) > 15, xml.dom.__name__, of_os.sep, k + n, twice(4), string.digits[:2])"
    there = "(True, 'xml.dom', '/', 7, 8, '01')"
    assert shown(notebook, use) == there
    capsys.readouterr()
    lose(lab)
    assert shown(notebook, use) == there
    assert "run the cells again" not in capsys.readouterr().err
    for name in ("colorsys", "late"):
        assert isinstance(notebook.fail(f"%%gpu --quiet\n{name}").__cause__, NameError)


def test_only_objects_are_said_to_be_lost(
    notebook: Lab, lab: System, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook(
        "%%gpu\nimport random\nmodel = random.Random(3)\ndef draw():\n    return model.random()"
    )
    notebook("%%gpu\ndef first(dice=model.random()):\n    return dice")
    lose(lab)
    assert notebook.fail("%%gpu\nmodel").__class__ is StaleRef
    said = capsys.readouterr().err
    assert "with it model, first; run the cells again that made them" in said  # first needs it
    failed = notebook.fail("%%gpu\ndraw()")
    assert isinstance(failed, StaleRef)
    assert "'model', a random.Random, was lost with its context" in str(failed)
    assert isinstance(failed.__cause__, UserCodeError)
    notebook("%%gpu\nmodel = random.Random(4)")
    assert shown(notebook, "0 < draw() < 1") == "True"


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ("count += 1", 1),
        ("for count in range(3): pass", 2),
        ("bump()", 1),
        ("count = len('abc')", 3),
        ("count = [count, {'a': (1.5, 'b')}]", [0, {"a": (1.5, "b")}]),
    ],
)
def test_what_is_constant_no_more_is_what_it_was_last(
    notebook: Lab, lab: System, change: str, left: object
) -> None:
    notebook("%%gpu\ncount = 0")
    notebook("%%gpu\ndef bump():\n    global count\n    count += 1")
    notebook(f"%%gpu\n{change}")
    for _ in range(2):
        lose(lab)
        assert shown(notebook, "count") == repr(left)


def test_what_was_deleted_stays_away(notebook: Lab, lab: System) -> None:
    notebook("%%gpu\ncount = 0")
    notebook("%%gpu\ndel count")
    lose(lab)
    assert isinstance(notebook.fail("%%gpu\ncount"), UserCodeError)


def test_the_last_definition_of_a_name_counts(notebook: Lab, lab: System) -> None:
    notebook("%%gpu\ndef f():\n    return 'first'")
    notebook("%%gpu\ndef f():\n    return 'second'\nlimit = 5")
    notebook("%%gpu\nlimit = 6")
    for _ in range(2):
        lose(lab)
        assert shown(notebook, "f(), limit") == "('second', 6)"


def test_what_the_notebook_has_put_at_the_name_since_stays(notebook: Lab, lab: System) -> None:
    notebook("%%gpu\nlimit = 5\ndef get():\n    return limit")
    notebook("limit = 7")
    lose(lab)
    assert shown(notebook, "get(), limit") == "(7, 7)"
    assert notebook.names["limit"] == 7


def test_a_function_that_is_defined_again_has_what_it_uses_of_the_notebook(
    notebook: Lab, lab: System
) -> None:
    notebook("factor = 3\nbase = gpu.put(np.ones(4))")
    notebook("%%gpu\ndef scaled():\n    return factor * float(base.sum())")
    lose(lab)
    assert shown(notebook, "scaled()") == "12.0"
    lose(lab)
    assert shown(notebook, "scaled()") == "12.0"


def test_a_mistake_in_what_was_defined_again_shows_its_line(notebook: Lab, lab: System) -> None:
    notebook("%%gpu\n\ndef broken():\n    return 1 / 0")
    lose(lab)
    text = str(notebook.fail("%%gpu\nbroken()"))
    assert "line 3, in broken" in text
    assert "return 1 / 0" in text


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import a.b, c as d\nfrom e import f as g, h", {"a.b", "d", "g", "h"}),
        ("x = y = 3\nz = (1, 'a', None)\nw = -1", {"x", "y", "z", "w"}),
        ("from __future__ import annotations\nimport a", {"a"}),
        ("cp = xp\nnp = cp", {"cp"}),
        ("x = [1]\ny = f()\nz = x\nu, v = 1, 2", set()),
        ("def f(): pass\nf = g(f)", set()),
        ("if x:\n    def f(): pass", set()),
        ("x = 1\nfor x in y: pass", set()),
        ("x = 1\nx += 1", set()),
        ("x = y = z = 1\nmatch a:\n    case [x, *y] | {'k': x, **y}: pass", {"z"}),
        ("x = y = 1\ntry:\n    f()\nexcept E as x:\n    pass", {"y"}),
        ("x = 1\ndef f():\n    global x\n    x = 2", {"f"}),
        ("try:\n    import a\nexcept ImportError:\n    a = None", set()),
    ],
)
def test_what_a_cell_only_defines(source: str, names: set[str]) -> None:
    assert definitions(source, changed(source)) == names


def test_nothing_else_of_a_cell_is_run_again() -> None:
    source = "import math\nlog.append(1)\nsize = 2\nother = 3\ndef f():\n    return math.tau"
    names: dict[str, object] = {}
    for code in compiled(source, "<cell>", frozenset({"math", "size", "f"})):
        exec(code, names)  # noqa: S102 - what the notebook's cells are for
    assert names.keys() - {"__builtins__"} == {"math", "size", "f"}


def test_what_a_cell_has_defined_before_it_failed_replaces_what_was_there(
    notebook: Lab, lab: System
) -> None:
    notebook("%%gpu\ndef step(): return 1\ndef train(n): return step() * n")
    notebook.fail(
        "%%gpu\ndef step(): return 2\ndef fresh(): return 3\nassert False\ndef train(n): return 0"
    )
    assert shown(notebook, "train(10), fresh()") == "(20, 3)"
    lose(lab)
    assert shown(notebook, "train(10), fresh()") == "(20, 3)"
