"""What cells change in place of the notebook's own."""

import sys
from typing import Any

import numpy as np
import pytest

from accel_lab.compute.cells.captured_objects import CapturedObjects
from accel_lab.compute.cells.mutable_parts import PARTS
from accel_lab.compute.cells.workspace_registry import Workspaces
from accel_lab.compute.message.service import in_context
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
    cells = in_context(Workspaces), notebook._cells._name
    assert notebook.gpu.run(Workspaces.outcome, *cells, 0).result().returned == {}
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


def test_what_has_got_another_place_has_both(notebook: Notebook) -> None:
    """In what was lent or in something new, changed since or not; it is the same object there."""
    trainer, array = trained(notebook), np.zeros(2)
    config: dict[str, Any] = {"first": {"n": 1}, "trainer": trainer, "array": array, "log": [[0]]}
    first, log = config["first"], config["log"][0]
    notebook.names |= {"config": config, "pair": ([1], {"a": [1]})}
    notebook(
        "config['again'] = config['first']\nconfig['first']['n'] = 2\n"
        "config['groups'] = [config['first'], {'by': (config['trainer'], config['array'], 'x')}]\n"
        "config['trainer'].epoch = 3\nconfig['array'] += 1\n"
        "config['log'] = [config['log'], config['log'].pop()]\n"
        "pair[0].append(2)\npair[1]['a'].append(2)"
    )
    assert notebook.names["config"] is config
    assert config["first"] is config["again"] is config["groups"][0] is first
    assert config["groups"][1]["by"] == (trainer, array, "x")
    assert config["groups"][1]["by"][1] is array
    assert (first, trainer.epoch, array.tolist()) == ({"n": 2}, 3, [1.0, 1.0])
    assert config["log"] == [[], [0]]
    assert config["log"][1] is log
    assert notebook.names["pair"] == ([1, 2], {"a": [1, 2]})


def test_a_name_that_a_cell_binds_to_the_notebooks_own_is_the_notebooks_own(
    notebook: Notebook,
) -> None:
    losses, config = [1], {"inner": {"n": 0}}
    notebook.names |= {"losses": losses, "config": config}
    notebook("history = losses\nhistory.append(2)\nsame = config")
    assert notebook.names["history"] is losses
    assert notebook.names["same"] is config
    notebook("history.append(3)\nsame['inner']['n'] += 1")
    assert (losses, config) == ([1, 2, 3], {"inner": {"n": 1}})
    notebook("last, losses = losses, []\nlast.append(4)")
    assert notebook.names["last"] is losses
    assert losses == [1, 2, 3, 4]
    assert notebook.names["losses"].get() == []
    notebook("chosen = config\nchosen['inner']['n'] = 9", "-o chosen")
    assert config == {"inner": {"n": 1}}, "it was not asked for"
    assert notebook.names["chosen"].get() == {"inner": {"n": 9}}
    notebook("kept = config\nkept['array'] = np.ones(2)")
    for name in ("kept", "config"):
        assert isinstance(notebook.names[name], ObjectRef), "of which the context has more"
    with pytest.raises(UserCodeError):
        notebook("early = last\nearly.append(5)\n1 / 0")
    assert notebook.names["early"] is losses
    assert losses[-1] == 5


CLASSES = """
import numpy as np
class Config:
    def __init__(self):
        self.rate, self.steps = 0.5, []
class Trainer:
    def __init__(self, made=None):
        self.epoch, self.losses, self.config = 0, [], Config()
        self.counts, self.made, self.old = np.zeros(3), made, "gone"
    def step(self, loss):
        self.epoch += 1
        self.losses.append(loss)
"""


def trained(notebook: Notebook, made: Any = None) -> Any:
    """Give a notebook an instance of a class of its own."""
    notebook.names |= {"__name__": "__main__", "made": made}
    exec(f"{CLASSES}\ntrainer = Trainer(made)", notebook.names)  # noqa: S102 - as IPython does
    return notebook.names["trainer"]


def test_what_a_cell_changes_of_an_instance_of_the_notebooks_is_changed_there(
    notebook: Notebook,
) -> None:
    trainer = trained(notebook)
    losses, counts, config = trainer.losses, trainer.counts, trainer.config
    notebook(
        "for k in range(3): trainer.step(k / 2)\ntrainer.config.rate = 0.25\n"
        "trainer.config.steps.append(7)\ntrainer.counts += 1\ntrainer.new = 'here'\ndel trainer.old"
    )
    assert notebook.names["trainer"] is trainer
    assert (trainer.epoch, trainer.losses, trainer.new) == (3, [0.0, 0.5, 1.0], "here")
    assert trainer.losses is losses, "it is the list that others have, too"
    assert trainer.config is config
    assert (config.rate, config.steps) == (0.25, [7])
    assert trainer.counts is counts
    assert counts.tolist() == [1.0, 1.0, 1.0]
    assert not hasattr(trainer, "old")
    with pytest.raises(UserCodeError):
        notebook("trainer.step(9)\n1 / 0")
    assert trainer.losses[-1] == 9
    notebook("trainer.step(8)\nother = 1", "-o other")
    assert trainer.losses[-1] == 9, "it was not asked for"
    notebook("trainer.step(8)", "-o trainer")
    assert trainer.losses[-1] == 8


SLOTS = """
from dataclasses import dataclass
class Counter:
    __slots__ = ("n", "log")
    def __init__(self):
        self.n, self.log = 0, []
class Named(Counter):
    pass
@dataclass(slots=True)
class State:
    step: int
    counter: Counter
"""


def test_what_a_cell_changes_in_slots_is_changed_in_the_notebook(notebook: Notebook) -> None:
    notebook.names["__name__"] = "__main__"
    exec(f"{SLOTS}\nstate = State(0, Named())\ncounter = Counter()", notebook.names)  # noqa: S102
    state, counter = notebook.names["state"], notebook.names["counter"]
    named, log = state.counter, state.counter.log
    notebook(
        "state.step = 3\nstate.counter.n += 1\nstate.counter.log.append(7)\n"
        "state.counter.name = 'new'\ncounter.n = 2\ndel counter.log"
    )
    assert (notebook.names["state"], state.counter, named.log) == (state, named, log)
    assert (state.step, named.n, log, named.name) == (3, 1, [7], "new")
    assert counter.n == 2
    assert not hasattr(counter, "log")


TUPLES = """
from collections import namedtuple
from typing import NamedTuple
Pair = namedtuple("Pair", "log n")
class Named(NamedTuple):
    log: list
    config: dict
    def note(self, loss):
        self.log.append(loss)
class Derived(Pair):
    pass
"""


def test_what_a_cell_changes_inside_named_tuples_is_changed_in_the_notebook(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.names["__name__"] = "__main__"
    made = "pair, named, all = Pair([1], 2), Named([1], {'n': [1]}), [Derived([1], 2), Pair(3, 4)]"
    exec(f"{TUPLES}\n{made}", notebook.names)  # noqa: S102 - as IPython does
    pair, named, (derived, plain) = (notebook.names[name] for name in ("pair", "named", "all"))
    notebook(
        "pair.log.append(2)\nnamed.note(2)\nnamed.config['n'].append(2)\n"
        "all[0].log.append(2)\nall[0].label = 'new'\nall[1].n"
    )
    assert (pair, named) == (([1, 2], 2), ([1, 2], {"n": [1, 2]}))
    assert (derived.log, derived.label) == ([1, 2], "new")
    assert notebook.names["all"] == [derived, plain]
    assert capsys.readouterr().err == ""


def test_a_list_of_more_numbers_than_plain_data_has_is_changed_in_place(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    losses = notebook.names["losses"] = [k / 2 for k in range(100_000)]
    notebook("losses.append(-1.0)\nlosses[3] = 'three'\nlosses[0] = -0.0")
    assert (len(losses), losses[-1], losses[3], str(losses[0])) == (100_001, -1.0, "three", "-0.0")
    assert capsys.readouterr().err == ""
    many: dict[str, Any] = {"log": [0] * (PARTS + 1), "n": 0}
    notebook.names["many"] = many
    notebook("many['log'].append(1)\nmany['n'] = 1")
    assert (len(many["log"]), many["n"]) == (PARTS + 1, 1)
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("accel_lab: many['log'] has more parts than are compared (200,000), so")


def test_what_is_not_changed_or_is_a_handle_is_left_alone(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    array = notebook.gpu.put(np.ones(3))
    trainer = trained(notebook, made=array)
    before = dict(vars(trainer))
    notebook("trainer.made += 1\nfloat(trainer.made.sum())")
    assert notebook.names["trainer"] is trainer
    assert all(vars(trainer)[name] is value for name, value in before.items())
    assert notebook.gpu.get(array).result().tolist() == [2.0, 2.0, 2.0]
    assert "accel_lab" not in capsys.readouterr().err


def test_an_instance_that_gets_what_only_the_context_has_stays_there_and_that_is_said(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = trained(notebook, made=notebook.gpu.put(np.ones(3)))
    notebook("trainer.made = trainer.made + 1\ntrainer.epoch = 5")
    assert trainer.epoch == 5
    assert isinstance(notebook.names["trainer"], ObjectRef)
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("accel_lab: trainer.made does not come back, so trainer stays")
    assert notebook("trainer.epoch, float(trainer.made.sum())") == "(5, 6.0)"


def test_containers_of_more_than_plain_data_are_changed_in_their_plain_parts(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    array = notebook.gpu.put(np.ones(3))
    trainer = trained(notebook)
    state = {"step": 0, "losses": [], "w": array, "all": [trainer, 1, 2], "old": 1}
    notebook.names["state"] = state
    notebook(
        "state['step'] += 1\nstate['losses'].append(2.5)\nstate['w'] *= 3\nstate['new'] = {1}\n"
        "state['all'][0].epoch = 4\nstate['all'][1] = 'one'\nstate['all'].append(3)\n"
        "del state['old']"
    )
    assert notebook.names["state"] is state
    assert (state["step"], state["losses"], state["new"]) == (1, [2.5], {1})
    assert state["w"] is array
    assert state["all"] == [trainer, "one", 2, 3]
    assert trainer.epoch == 4
    assert "old" not in state
    assert capsys.readouterr().err == ""
    notebook("state['all'].pop(0)")
    assert state["all"] == ["one", 2, 3]
    notebook.names["state"] = state = {"w": array, "n": 1}
    notebook("state['w'] = state['w'] + 1\nstate['n'] = 2")
    assert state["n"] == 2
    assert "state['w'] does not come back" in capsys.readouterr().err
    assert isinstance(notebook.names["state"], ObjectRef)
    assert float(notebook("float(state['w'].sum())")) == 12.0


@pytest.mark.parametrize("on_device", [True, False])
def test_a_new_array_goes_back_where_it_is_none_of_the_devices(*, on_device: bool) -> None:
    """As NumPy's are beside CuPy's on a card."""
    state: dict[str, Any] = {"step": 0, "thing": object()}
    lent = CapturedObjects(state, frozenset(), lambda _: on_device)
    state |= {"step": 1, "new": np.ones(2)}
    ((_, values, gone, *_),), other = lent.changes()
    assert (set(values), gone, other) == (
        ({"step"}, [], [("new",)]) if on_device else ({"step", "new"}, [], [])
    )


def test_what_was_lent_may_hold_itself() -> None:
    state: dict[str, Any] = {"step": 0}
    state["self"] = state
    lent = CapturedObjects(state, frozenset(), lambda _: True)
    assert lent.changes() == ([], [])
    state["step"] = 1
    ((way, values, *_),), other = lent.changes()
    assert (way, values, other) == ((), {"step": 1}, [])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.12 has brought the statement")
def test_what_a_type_statement_of_the_notebooks_has_named_goes_along(notebook: Notebook) -> None:
    source = "type Row = list[int]\ntype Rows[T] = dict[T, Row]\ndef first(row: Row): return row[0]"
    notebook.names["__name__"] = "__main__"
    exec(source, notebook.names)  # noqa: S102 - as a notebook does
    assert notebook("first([3]), Rows[int], Row.__value__") == "(3, Rows[int], list[int])"
    back = notebook.gpu.run(lambda alias: alias, notebook.names["Row"]).result()
    assert (back.__module__, back.__value__) == ("__main__", list[int])
