"""What IPython keeps of the values that `%%gpu` cells show: `_`, `__`, `___`, `_N` and `Out`."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import StaleRef
from accel_lab.notebook.object_ref import ObjectRef
from tests.interactive import shell
from tests.notebook.ipython import Lab, lose
from tests.notebook.ipython import notebook as opened

CELLS = (
    "x = np.arange(6.0).reshape(2, 3)\nx",
    "x.sum(axis=0)",
    "x * 2;",
    "x * 3;  # not shown",
    "x + 1  # shown;",
    "'a;'",
    "y = 1",
    "None",
    "1 + 1",
    "losses = [1.0]\nlosses",
    "losses.append(2.0)\nlosses",
    "[y, 'b']",
    "(1, [2, x.shape])",
    "class Model:\n    pass\nModel()",
    "given",
    "given.append(3)\ngiven",
    "_",
    "_.append(4)\n_",
    "__ + _12",
    "Out[11] + 1",
    "helper(2)",
    "y",
    "True",
    "print('text')",
    "0.5",
)
KEPT = ("_", "__", "___")


@pytest.fixture
def ipython(lab: System) -> Iterator[Lab]:
    with opened(lab) as found:
        yield found


def plain(value: Any) -> Any:
    """Return what both kinds of cells may have, as what can be compared."""
    if isinstance(value, AccelRef):
        value = value.device.get(value).result()
    if isinstance(value, ObjectRef):
        value = repr(value) if "Model" in value.type else value.get()
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return "Model" if "Model" in repr(value) else copy.deepcopy(value)


def kept(run: Any, names: dict[str, Any], head: str) -> list[Any]:
    """Run the cells; return what is kept after each, and what each returned."""
    names |= {"given": [1, 2]}
    run("def helper(n):\n    return [n] * n")
    found = []
    for cell in CELLS:
        value = plain(run(head + cell))
        out = {number: plain(one) for number, one in names["Out"].items()}
        numbered = {name: plain(one) for name, one in names.items() if name[1:].isdigit()}
        found.append((cell, value, [plain(names[name]) for name in KEPT], out, numbered))
    return found


def forget_outputs(ipython: Lab) -> None:
    """Have IPython forget what it has shown, but for the last three, which `%reset` leaves it."""
    for _ in range(3):
        ipython("'another'")
    ipython("%reset -f out")


def test_ipython_keeps_what_cells_show_as_it_keeps_that_of_its_own(lab: System) -> None:
    with shell() as own:
        own("pass\nimport numpy as np")
        oracle = kept(own, own.ipython.user_ns, "")
    with opened(lab) as ipython:
        for found, expected in zip(kept(ipython, ipython.names, "%%gpu\n"), oracle, strict=True):
            assert found == expected
        assert ipython.names["_"] == 0.5


def test_a_handle_that_the_notebook_has_is_what_is_kept(ipython: Lab) -> None:
    names = ipython.names
    names |= {"given": [1], "a": ipython.gpu.put(np.ones(3))}
    ipython("%%gpu\nb, made = a + 1, {'b': a}")
    for name in ("a", "b", "made", "given", "np.mean"):
        value = ipython(f"%%gpu\n{name}")
        assert value is names["_"]
        assert value is names.get(name, value)
    assert isinstance(value, ObjectRef)
    ipython("%%gpu\na")
    ipython("%%gpu\n1 / 1")
    assert names["__"] is names["a"]


def test_what_is_kept_is_shown_once(ipython: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    ipython("%%gpu\nxp.ones(3)")
    texts = [one["text/plain"] for one in ipython.shell.published]
    assert texts[0] == "array([1., 1., 1.])"
    assert [one for one in texts if "1., 1." in one] == texts[:1]
    assert "Out" not in capsys.readouterr().out


def test_a_cell_that_is_quiet_fails_or_is_captured_keeps_nothing(ipython: Lab) -> None:
    ipython("%%gpu\n'before'")
    for quiet in (
        "%%gpu --quiet\n'after'",
        "%%capture\n%%gpu\n'after'",
        "%%gputime -n 1 -r 1\n'a'",
    ):
        value = ipython(quiet)
        assert value != "after"
    assert ipython.names["_"] is value, "the timing"
    assert ipython.names["__"] == "before"
    ipython.fail("%%gpu\n1 / 0")
    ipython.fail("%%gpu -o other\n'shown'")
    assert ipython.names["_"] == "shown"


def test_a_name_that_does_not_come_back_has_a_handle_all_the_same(ipython: Lab) -> None:
    ipython.names |= {"model": "mine", "x": "mine"}
    ipython("%%gpu -o done\nmodel, x, done = {'w': np.ones(3)}, xp.ones(2), 1\nmodel")
    assert ipython("len(_)") == 1
    assert ipython("%%gpu\n__['w'].sum().tolist()") == 3.0
    ipython("%%gpu -o done\nx, done = xp.ones(2), 1\nx")
    assert plain(ipython.names["_"]) == [1.0, 1.0]
    assert ipython.names["model"] == ipython.names["x"] == "mine"


def test_a_name_of_the_users_is_not_taken(ipython: Lab) -> None:
    ipython("_ = 'mine'")
    ipython("%%gpu\n'shown'")
    assert ipython.names["_"] == "mine"
    assert "shown" in ipython.names["Out"].values()


def test_out_keeps_memory_until_it_is_reset(ipython: Lab) -> None:
    ipython("%%gpu\nxp.ones(1 << 16)")
    (row,) = ipython.gpu.resident
    assert row.kept_by == ("_", "Out[2]")
    forget_outputs(ipython)
    assert not list(ipython.gpu.resident)


def test_xdel_frees_what_out_keeps_of_a_name(ipython: Lab) -> None:
    ipython("%%gpu\nx = xp.ones(1 << 16)\nx")
    assert ipython.names["_"] is ipython.names["x"]
    ipython("%%gpu\nx + 1")
    ipython("%xdel x")
    ipython("%xdel _3")
    ipython("%%gpu --quiet\npass")
    assert not list(ipython.gpu.resident)


def test_an_object_that_only_out_keeps_goes_with_it(ipython: Lab) -> None:
    ipython("%%gpu\nclass Model:\n    pass")
    ipython("%%gpu\nmade = Model()\nimport weakref\nheld = weakref.ref(made)")
    ipython("%%gpu\n_kept = made\ndel made\n[_kept]")
    ipython("%%gpu\ndel _kept")
    assert ipython("%%gpu\nlen(_)") == 1
    assert ipython("%%gpu\nheld() is not None") is True
    forget_outputs(ipython)
    assert ipython("%%gpu\nheld() is None") is True


def test_a_loop_in_one_cell_keeps_what_each_has_shown(ipython: Lab) -> None:
    ipython("for one in 'ab':\n    get_ipython().run_cell_magic('gpu', '', f'[np.ones, {one!r}]')")
    assert ipython("_[1], __[1]") == ("b", "a")


def test_what_a_lost_context_has_taken_says_so(ipython: Lab, lab: System) -> None:
    ipython("%%gpu\n[np.ones]")
    ipython("%%gpu\nxp.ones(3)")
    lose(lab)
    assert plain(ipython.names["_"]) == [1.0, 1.0, 1.0]
    with pytest.raises(StaleRef, match="lost"):
        len(ipython.names["__"])
