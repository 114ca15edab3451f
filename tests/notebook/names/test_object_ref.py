"""What the handles of objects that stay in a context answer."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab.compute.cells import workspace_registry
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument, StaleRef, UserCodeError
from accel_lab.notebook.gpu_cell import GpuCells
from accel_lab.notebook.object_ref import ObjectRef
from tests.faults.conftest import settle
from tests.notebook.cells import Notebook


def test_an_object_is_described_as_it_describes_itself(notebook: Notebook) -> None:
    values: list[Any] = [
        [[1, (2,)], {"a": {3}}, []],
        list(range(500)),
        ({}, set(), "x" * 300),
    ]
    for value in values:
        notebook(f"thing = {value!r}")
        text = notebook.names["thing"]._resident.text
        assert text.removesuffix("…") == repr(value)[: len(text.removesuffix("…"))]
        assert len(text) == min(len(repr(value)), 200)
    notebook("loop = []\nloop.append(loop)")
    assert "..." in notebook.names["loop"]._resident.text


def test_a_repr_that_exits_costs_nothing_else(notebook: Notebook) -> None:
    notebook(
        "class Exiting:\n"
        "    def __repr__(self):\n"
        "        raise SystemExit\n"
        "early, thing, late = 1, Exiting(), 2"
    )
    assert "<its repr raised SystemExit>" in repr(notebook.names["thing"])
    assert notebook("early, late") == "(1, 2)"


def test_items_that_are_not_shown_are_not_asked_how_they_look(notebook: Notebook) -> None:
    """As a tensor on a card has to be fetched for that."""
    notebook(
        "class Costly:\n"
        "    asked = 0\n"
        "    def __repr__(self):\n"
        "        Costly.asked += 1\n"
        "        return 'costly ' * 9\n"
        "many = {n: [Costly() for _ in range(100)] for n in range(100)}"
    )
    assert int(notebook("Costly.asked")) < 9


def test_an_object_is_an_operand_of_run(notebook: Notebook) -> None:
    notebook("table = {'x': 5}")
    assert notebook.gpu.run(lambda t: t["x"] + 1, notebook.names["table"]).result() == 6


def test_an_object_that_was_replaced_or_dropped_says_so(notebook: Notebook) -> None:
    notebook("x = ['old']\ny = ['kept']")
    old, kept = notebook.names["x"], notebook.names["y"]
    notebook("x = ['new']")
    with pytest.raises(StaleRef, match="'x' was deleted, reassigned"):
        old.get()
    assert notebook.names["x"].get() == ["new"]
    kept.drop()
    with pytest.raises(StaleRef, match="'y' was deleted"):
        kept.get()


def test_another_name_of_an_object_is_not_what_the_notebook_binds_to_its_own(
    notebook: Notebook,
) -> None:
    notebook("loss = 5\nhistory = [5]")
    best, old = notebook.names["loss"], notebook.names["history"]
    notebook.names |= {"loss": 6, "history": [6]}
    assert notebook("loss, history") == "(6, [6])"
    assert best.get() == 5
    with pytest.raises(StaleRef, match="'history' was deleted, reassigned"):
        old.get()


def test_a_handle_that_goes_in_as_what_its_name_stands_for_stays_good(notebook: Notebook) -> None:
    """As after the extension's module was loaded again, which forgets what cells have bound."""
    notebook("history = [5]")
    notebook._cells = GpuCells(notebook.names, lambda _: notebook.gpu)
    notebook("history.append(6)\nhistory = history")
    history = notebook.names["history"]
    assert history.get() == [5, 6]
    notebook("history.append(7)")
    assert notebook.names["history"] is history
    assert history.get() == [5, 6, 7]


def test_a_copy_of_a_handle_is_one_of_the_object(notebook: Notebook) -> None:
    notebook("history = [[1], {'k': 2}]")
    history = notebook.names["history"]
    for made in (copy.copy(history), copy.deepcopy([history, history])[1]):
        made[0].append(3)
        assert made == [[1, 3], {"k": 2}]
    assert history.get() == [[1], {"k": 2}]


def test_the_pickle_of_a_handle_is_what_it_stands_for_or_refused(notebook: Notebook) -> None:
    notebook("history = [1]\nloss = 0.5")
    history, loss = notebook.names["history"], notebook.names["loss"]
    with pytest.raises(TypeError, match=r"an ObjectRef is not .* pickled: .* with get\(\)"):
        pickle.dumps({"history": history})
    assert pickle.loads(pickle.dumps([loss])) == [0.5]  # noqa: S301 - of this test
    assert notebook.gpu.run(lambda: history[0] + loss).result() == 1.5


def test_a_handle_that_a_pickle_of_elsewhere_names_is_refused(notebook: Notebook) -> None:
    with pytest.raises(InvalidArgument, match=r"'history': it can be loaded only") as refused:
        workspace_registry.resident("a notebook", "history", 1)
    assert ".get()" in refused.value.remedy


def test_an_object_answers_as_what_it_stands_for(notebook: Notebook) -> None:
    notebook("loss = 0.0625\nhistory = [3.0, 2.0, xp.ones(2)]\nbest = {'k': 1}\nnothing = []")
    loss, history, best, nothing = (
        notebook.names[name] for name in ("loss", "history", "best", "nothing")
    )
    assert (float(loss), int(loss), complex(loss), f"{loss:.1e}") == (0.0625, 0, 0.0625, "6.2e-02")
    assert loss < 1
    assert loss <= 0.0625
    assert not loss > 1
    assert loss >= 0
    assert (len(history), history[0], list(history)[1], 2.0 in history[:2]) == (3, 3.0, 2.0, True)
    assert isinstance(history[-1], AccelRef)
    assert best["k"] == 1
    assert "k" in best
    assert bool(best)
    assert not nothing
    notebook("count, losses = 2, [0.5, 0.25]")
    assert "abc"[notebook.names["count"]] == "c"
    np.testing.assert_array_equal(np.asarray(notebook.names["losses"]), [0.5, 0.25])
    assert (f"{loss}", str(loss)) == ("0.0625", "0.0625")
    assert "loss" in f"{loss!r}"
    assert "history" in f"{history}"
    for wrong, error in ((lambda: len(loss), TypeError), (lambda: best["no"], KeyError)):
        with pytest.raises(error):
            wrong()


def test_a_handle_tells_what_its_object_is_now(notebook: Notebook) -> None:
    notebook("losses = []\nrate = 0.5")
    losses = notebook.names["losses"]
    notebook("losses += [1, 2]")
    assert notebook.names["losses"] is losses
    assert "[1, 2]" in repr(losses)
    losses.get().append(3)
    assert losses.get() == [1, 2], "that was a copy"
    rate = notebook.names["rate"]
    assert (rate + 1, 1 - rate, rate * 4, 2 / rate, rate**2) == (1.5, 0.5, 2.0, 4.0, 0.25)
    assert (-rate, abs(rate), round(rate), 7 // rate, 7.25 % rate) == (-0.5, 0.5, 0, 14.0, 0.25)
    with pytest.raises(TypeError, match="losses is in the context: begin the cell with %%gpu"):
        losses[0] = 5
    three = [3]
    assert losses + three == [1, 2, 3]
    assert three + losses == [3, 1, 2]


def test_what_never_changes_is_equal_to_what_it_stands_for(
    notebook: Notebook, tmp_path: Path
) -> None:
    notebook.names["path"] = str(tmp_path / "file")
    notebook(
        "mode, none, acc, yes, n = 'train', None, 0.5, True, 3\nfile = path + '.txt'\n"
        "long = 'x' * 100_000\nlosses = [1.0]\nclass Model: pass\nmodel = Model()"
    )
    here = notebook.names
    mode, none, acc, yes, n = (here[name] for name in ("mode", "none", "acc", "yes", "n"))
    for handle, value in {mode: "train", none: None, acc: 0.5, yes: True, n: 3}.items():
        assert isinstance(handle, ObjectRef)
        assert handle == value
        assert value == handle
        assert not handle != value  # noqa: SIM202 - the operator is the point
        assert handle != "other"
        assert handle in (0, value)
        assert dict.fromkeys([value], 1)[handle] == 1  # type: ignore[index]
        assert (f"{handle}", f"{handle!s:>9}") == (f"{value}", f"{value!s:>9}")
        assert bool(handle) is bool(value)
        assert repr(handle).startswith("<ObjectRef ")
    assert ("%s %d %.1f" % (mode, n, acc), "train" in mode) == ("train 3 0.5", True)  # noqa: UP031
    assert mode < "u"
    assert mode != here["file"]
    assert list(range(4))[n] == 3
    with open(here["file"], "w") as written:  # noqa: PTH123 - the built-in function is the point
        written.write(mode + "!")
    assert Path(here["file"]).read_text() == "train!"
    assert here["long"] == "x" * 100_000
    assert here["losses"] != [1.0]
    assert here["model"] == here["model"]
    assert len({here["model"], here["losses"]}) == 2
    with pytest.raises(TypeError):
        open(here["losses"])  # noqa: PTH123, SIM115
    notebook.gpu.replace()
    assert settle(lambda: notebook.gpu.generation > mode.generation)
    assert (mode == "train", hash(mode) == hash("train"), str(none)) == (True, True, "None")


def test_the_attributes_of_an_object_are_where_it_is(notebook: Notebook) -> None:
    """Neither is one set on the handle, nor missed without a word."""
    notebook("class Model:\n    layers = 2\nmodel = Model()")
    model = notebook.names["model"]
    with pytest.raises(AttributeError, match=r"model\.layers is in the context: .* %%gpu"):
        model.layers = 3
    with pytest.raises(AttributeError, match=r"read model\.layers in a %%gpu cell"):
        assert model.layers
    assert not hasattr(model, "_repr_png_")
    assert notebook("model.layers") == "2"


def test_a_handle_shows_its_object_as_the_last_cell_that_used_it_has_left_it(
    notebook: Notebook,
) -> None:
    notebook("from datetime import timedelta\nlog = [1]")
    log = notebook.names["log"]
    notebook("log.append(timedelta(seconds=1))")
    assert "datetime.timedelta(seconds=1)" in repr(log)
    assert log.copy is None, "not that of before"
    notebook("log.append('x')")
    assert repr(log).endswith(", 'x']>")
    notebook("del log[1:]")
    assert (repr(log)[-5:], log.copy is None) == (" [1]>", False)


def test_a_copy_of_an_object_leaves_the_notebooks_own_class_as_it_is(notebook: Notebook) -> None:
    """What the context has of a class may be older; the other way it is brought up to date."""
    own: dict[str, Any] = {"__name__": "__main__", "scale": 1}
    exec(  # noqa: S102 - classes that no module has
        "import enum\n"
        "class Model:\n    uses = 0\n    def cost(self): return scale\n"
        "class Failed(Exception):\n    code = 1\n"
        "class Kind(enum.Enum):\n    A = 1\n",
        own,
    )
    model, failed, kind = own["Model"], own["Failed"], own["Kind"]
    notebook.names |= {"Model": model, "Kind": kind}
    notebook("model = Model()\nmodel.kind = Kind.A\nmany = [model]")
    own["scale"], model.uses, failed.code = 2, 5, 6
    copy = notebook.names["model"].get()
    assert (type(copy) is model, copy.kind is kind.A) == (True, True)
    assert (model().cost(), model.uses, copy.cost()) == (2, 5, 2)
    assert type(notebook.names["many"].get()[0]) is model
    assert type(notebook.gpu.run(model).result(60)) is model
    assert (model().cost(), model.uses) == (2, 5)

    def fails() -> None:
        raise failed

    first = notebook.gpu.run(fails)
    own["scale"], failed.code = 3, 7
    for failure in (first, notebook.gpu.run(fails)):
        with pytest.raises(UserCodeError) as caught:
            failure.result(60)
        assert type(caught.value.__cause__) is failed
    assert (model().cost(), model.uses, failed.code) == (3, 5, 7)
    assert notebook("Model.uses, Model().cost()") == "(5, 3)"

    notebook("class Own:\n    n = 1\nown = Own()")
    mine = notebook.names["own"].get()
    notebook("Own.n = 2")
    assert (type(notebook.names["own"].get()) is type(mine), mine.n) == (True, 2)
    type(mine).n = 9
    assert notebook("Own.n") == "2"


BINARY = ["+", "-", "*", "//", "%", "**", "&", "|", "^", "<<", ">>"]


@pytest.mark.parametrize("kind", ["int", "set"])
def test_an_object_has_the_operators_of_what_it_stands_for(notebook: Notebook, kind: str) -> None:
    notebook("a, b, s, t, row = 1300, 300, {1, 2}, {2, 3}, [1, 2]")
    real = {"a": 1300, "b": 300, "s": {1, 2}, "t": {2, 3}}
    ours = {name: notebook.names[name] for name in real}
    left, right = ("a", "b") if kind == "int" else ("s", "t")
    some = BINARY if kind == "int" else ["-", "&", "|", "^"]
    for text in (f"{left} {one} {right}" for one in some):
        expected = eval(text, dict(real))  # noqa: S307 - of this file
        assert eval(text, dict(ours)) == expected, text  # noqa: S307 - as above
        for half in (left, right):  # the other is of the notebook
            assert eval(text, {**ours, half: real[half]}) == expected, text  # noqa: S307 - as above
    if kind == "int":
        assert divmod(ours["a"], 5) == divmod(1300, 5)
        assert divmod(50, ours["a"]) == divmod(50, 1300)
        assert (+ours["a"], -ours["a"], ~ours["a"]) == (1300, -1300, ~1300)
    notebook("class M:\n    def __matmul__(self, other): return ('at', other)\nm = M()")
    assert notebook.names["m"] @ 3 == ("at", 3)
    with pytest.raises(TypeError, match="unsupported operand"):
        notebook.names["row"] << 2
