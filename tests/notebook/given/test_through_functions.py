"""What functions of the notebook's change there when a cell calls them."""

import copy
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.user_code.call import pack
from accel_lab.compute.user_code.notebook_globals import NotebookGlobals
from accel_lab.errors import UserCodeError
from tests.notebook.cells import Notebook
from tests.notebook.ipython import Lab
from tests.notebook.ipython import notebook as opened

HELPERS = """
import functools
import numpy as np
losses, count, seen, rng = [], {"n": 0}, set(), np.random.default_rng(0)
weights, unused = np.zeros(2), []
def log(loss):
    losses.append(loss)
    return rng.random()
def twice(function):
    @functools.wraps(function)
    def both(*args):
        function(*args)
        return function(*args)
    return both
@twice
def tell(loss):
    return [log(loss) for _ in range(1)]
class Trainer:
    def __init__(self):
        self.steps = 0
    def step(self):
        self.steps += 1
        count["n"] += 1
        self.note("instance")
        return tell(0.5)
    @staticmethod
    def note(text):
        seen.add(text)
    @property
    def moved(self):
        weights[:] += 1
trainer = Trainer()
"""


@pytest.fixture
def ipython(lab: System) -> Iterator[Lab]:
    with opened(lab) as found:
        yield found


def test_what_a_function_changes_is_changed_in_the_notebook(notebook: Notebook) -> None:
    names = notebook.names
    names["__name__"] = "__main__"
    exec(HELPERS, names)  # noqa: S102 - of this file
    before = dict(names)
    plain = np.random.default_rng(0)
    notebook("log(1.0)")
    assert names["losses"] == [1.0]
    notebook("trainer.step()\ntrainer.moved")
    assert names["losses"] == [1.0, 0.5, 0.5]
    assert (names["count"], names["seen"], names["trainer"].steps) == ({"n": 1}, {"instance"}, 1)
    assert names["weights"].tolist() == [1.0, 1.0]
    plain.random(3)
    assert names["log"](2.0) == plain.random()
    with pytest.raises(UserCodeError):
        notebook("Trainer().step()\n1 / 0")
    assert names["count"] == {"n": 2}
    notebook("log(3.0)\ndone = 1", "-o done")
    assert names["losses"][-1] == 0.5, "it was not asked for"
    for name in ("losses", "count", "seen", "rng", "weights", "log", "trainer"):
        assert names[name] is before[name]


def test_a_function_finds_what_the_cell_itself_changes(notebook: Notebook) -> None:
    notebook.names["__name__"] = "__main__"
    exec(HELPERS, notebook.names)  # noqa: S102 - of this file
    notebook("count['n'] = 5\ntrainer.step()")
    assert notebook.names["count"] == {"n": 6}


def test_what_a_function_assigns_to_a_global_name_comes_back_and_to_a_class_does_not(
    notebook: Notebook,
) -> None:
    source = (
        "step = 0\nclass Counter:\n    n = 0\n"
        "def count():\n    global step\n    step += 1\n    Counter.n += 1\n    return step"
    )
    notebook.names["__name__"] = "__main__"
    exec(source, notebook.names)  # noqa: S102 - of this file
    assert notebook("count()") == "1"
    assert (notebook.names["step"], notebook.names["Counter"].n) == (1, 0)


def test_it_is_so_in_ipython_too(ipython: Lab) -> None:
    ipython(HELPERS)
    ipython("%%gpu\ntrainer.step()")
    assert ipython.names["losses"] == [0.5, 0.5]
    assert ipython("count") == {"n": 1}


def test_cached_and_dispatching_functions_are_found_behind(notebook: Notebook) -> None:
    source = (
        "import functools\nseen = []\n"
        "@functools.cache\ndef fib(n):\n    seen.append(n)\n"
        "    return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
        "@functools.singledispatch\ndef told(x):\n    return fib(x)\n"
        "@told.register\ndef _(x: str):\n    seen.append(x)\n    return x"
    )
    names = notebook.names
    names["__name__"] = "__main__"
    exec(source, names)  # noqa: S102 - as a cell does
    assert notebook("told(5), told('a')") == "(5, 'a')"
    assert names["seen"] == [5, 4, 3, 2, 1, 0, "a"]


def test_names_are_reached_behind_functions_classes_and_instances() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(HELPERS, names)  # noqa: S102 - of this file

    def reached(*values: Any) -> set[str]:
        home = NotebookGlobals(names, "notebook")
        with home.entered():
            pack(values, lambda _: None)
        return set(home.reached)

    assert reached(names["log"]) == reached([names["log"]]) == {"losses", "rng"}
    assert reached(names["tell"]) == {"log"}, "and behind that as above"
    assert reached(names["trainer"]) == {"count", "seen", "weights", "tell"}
    assert reached(names["Trainer"]) == {"count", "seen", "weights", "tell"}
    assert reached(np.mean, print, 1) == set()
    alone = pack(names["log"], lambda _: None)
    with NotebookGlobals(names, "notebook").entered():
        assert b"losses" in pack(names["log"], lambda _: None).replace(b"rng", b"")
        assert len(pack(names["log"], lambda _: None)) < len(alone), "nothing of rng is in it"


DEFINES = """
def scaled(x):
    return x * RATE
class Model:
    def step(self):
        seen.append(RATE)
        return helper(RATE)
def helper(x):
    return x + OFFSET
model = Model()
"""


def test_functions_that_cells_have_defined_see_what_the_notebook_has_bound_since(
    notebook: Notebook,
) -> None:
    notebook.names |= {"RATE": 0.5, "OFFSET": 1, "seen": []}
    notebook(DEFINES)
    assert notebook("scaled(2.0), model.step()") == "(1.0, 1.5)"
    notebook.names |= {"RATE": 0.25, "OFFSET": 10}
    assert notebook("scaled(2.0)") == "0.5"
    assert notebook("model.step()") == "10.25"
    assert notebook.names["seen"] == [0.5, 0.25]
    notebook("RATE = 2.0")
    assert notebook("scaled(2.0)") == "4.0", "the cell's own is the last one"
    notebook.names["OFFSET"] = (n for n in range(3))  # it cannot go there, and scaled needs it not
    assert notebook("scaled(2.0)") == "4.0"


def test_what_a_cell_has_had_once_is_what_the_notebook_has_now(notebook: Notebook) -> None:
    """Also for what no text leads to: generators, functions in lists, names inside strings."""
    notebook.names |= {"step_size": 3, "lock": [1]}
    notebook(
        "def steps():\n    while True:\n        yield step_size\n"
        "ahead = steps()\nlater = [lambda: step_size]\n(next(ahead), lock)"
    )
    notebook.names |= {"step_size": 4, "lock": [2]}
    assert notebook("next(ahead), later[0](), eval('step_size'), eval('lock')") == "(4, 4, 4, [2])"
    notebook.names["lock"] = threading.Lock()
    with pytest.raises(UserCodeError, match="'lock' is not defined"):
        notebook("eval('lock')")


def test_what_is_no_global_of_a_cells_function_is_not_taken_along(notebook: Notebook) -> None:
    notebook.names |= {"x": (n for n in range(3)), "y": 1}
    notebook("def local(a):\n    x = a + y\n    return [x for x in range(x)]")
    assert notebook("local(2)") == "[0, 1, 2]"
    notebook.names["y"] = 2
    assert notebook("local(2)") == "[0, 1, 2, 3]"


CLOSURES = """
def counter():
    n, seen, kept = 0, [], None
    def step(by=1):
        nonlocal n, kept
        n += by
        seen.append(n)
        kept = [n]
        return n
    def peek():
        return n, seen, kept
    def forget():
        nonlocal kept
        del kept
    return step, peek, forget
step, peek, forget = counter()
def around(function):
    import functools
    calls = 0
    @functools.wraps(function)
    def counted(*args):
        nonlocal calls
        calls += 1
        return function(*args), calls
    return counted
counted = around(step)
class Holder:
    pass
holder = Holder()
holder.hooks = [step]
def call_hooks():
    return [hook() for hook in holder.hooks]
"""
CALLS = (
    "step()",
    "step(2)",
    "peek()",
    "counted()",
    "peek()[1].append('more')",
    "call_hooks()",
    "(step(), step())",
    "peek()",
    "forget()",
    "step() and peek()",
    "counted()",
)


def test_what_functions_declare_nonlocal_is_counted_on_as_in_one_script(ipython: Lab) -> None:
    """Whichever cells run there: the oracle is IPython without any that do."""

    def values(heads: tuple[str, str]) -> list[Any]:
        ipython(CLOSURES)
        found = []
        for number, call in enumerate(CALLS):
            ipython(f"{heads[number % 2]}seen_now = {call}")
            now = ipython.names.pop("seen_now")
            found.append((call, copy.deepcopy(now)))
        return found

    expected = values(("", ""))
    assert expected[0] == ("step()", 1)
    for heads in (("", "%%gpu\n"), ("%%gpu\n", ""), ("%%gpu\n", "%%gpu\n")):
        assert values(heads) == expected


def test_a_closures_objects_stay_the_notebooks_own(ipython: Lab) -> None:
    ipython(CLOSURES)
    _, seen, _ = ipython("peek()")
    names = dict(ipython.names)
    ipython("%%gpu\nstep()\nsame = step")
    assert ipython.names["step"] is ipython.names["same"] is names["step"]
    assert ipython("peek()")[1] is seen
    assert seen == [1]
    ipython.fail("%%gpu\nstep()\n1 / 0")
    assert ipython("peek()") == (2, [1, 2], [2])
    ipython("%%gpu -o done\ndone = step()")
    assert ipython("peek()")[0] == 2, "it was not asked for"


def test_a_function_that_has_got_an_array_of_the_device_stays_there(
    ipython: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    ipython(
        "def cache():\n    held = None\n    def get(x):\n        nonlocal held\n"
        "        held = x if held is None else held\n        return held\n    return get\n"
        "get = cache()"
    )
    ipython("%%gpu\nget(xp.ones(3)).sum()")
    assert "held of get does not come back, so get stays there" in capsys.readouterr().err
    assert ipython.gpu.get(ipython("get(None)")).result().tolist() == [1.0, 1.0, 1.0]
    assert ipython("%%gpu\nfloat(get(None).sum())") == 3.0


def test_functions_that_share_a_variable_share_it_in_run_too(ipython: Lab) -> None:
    ipython(CLOSURES)
    ipython("def both(step, peek):\n    return step(), step(2), peek()[0], (step, peek)")
    *found, functions = ipython("gpu.run(both, step, peek).result()")
    assert found == [1, 3, 3]
    step, peek = functions
    assert (step(), peek()[0]) == (4, 4)
    assert ipython("peek()") == (0, [], None), "a copy has run"
