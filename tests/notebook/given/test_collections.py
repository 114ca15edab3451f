"""What cells change in place of the notebook's collections, and of its own classes of them."""

from collections import Counter, OrderedDict, defaultdict, deque
from datetime import date
from typing import Any

import numpy as np
import pytest

from accel_lab.compute.cells.captured_objects import CapturedObjects, change
from accel_lab.errors import UserCodeError
from accel_lab.notebook.object_ref import ObjectRef
from tests.notebook.cells import Notebook

CLASSES = """
from collections import OrderedDict, defaultdict, deque
class Log(list):
    def append(self, value):
        super().append(value)
        self.n = len(self)
class Table(dict):
    __slots__ = ()
    def __missing__(self, key):
        raise AssertionError(key)
class Recent(OrderedDict):
    pass
class Window(deque):
    pass
class Thing:
    n = 0
"""


@pytest.fixture
def names(notebook: Notebook) -> dict[str, Any]:
    """Return the names of a notebook that has classes of its own."""
    notebook.names["__name__"] = "__main__"
    exec(CLASSES, notebook.names)  # noqa: S102 - of this file
    return notebook.names


def test_collections_are_changed_in_place(notebook: Notebook) -> None:
    history: Any = defaultdict(list)
    window: Any = deque([1, 2], maxlen=3)
    counts, data = Counter("ab"), bytearray(b"abc")
    order = OrderedDict(a=1, b=[2], c=3)
    mine = {"h": history, "w": window, "n": counts, "d": data, "o": order}
    notebook.names |= mine
    notebook(
        "for k in range(3):\n    h['loss'].append(k / 2)\n    w.append(k)\nn['b'] += 2\n"
        "d[0] = 120\nd.extend(b'de')\no.move_to_end('a')\no['b'].append(3)"
    )
    assert all(notebook.names[name] is value for name, value in mine.items())
    assert (history, history.default_factory) == ({"loss": [0.0, 0.5, 1.0]}, list)
    assert (list(window), window.maxlen) == ([0, 1, 2], 3)
    assert counts == Counter(a=1, b=3)
    assert data == b"xbcde"
    assert list(order.items()) == [("b", [2, 3]), ("c", 3), ("a", 1)]
    with pytest.raises(UserCodeError):
        notebook("h['loss'].append(9)\nh.default_factory = None\n1 / 0")
    assert (history["loss"][-1], history.default_factory) == (9, None)


def test_they_are_changed_in_parts_where_they_hold_more_than_plain_data(
    notebook: Notebook, names: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    array = notebook.gpu.put(np.ones(2))
    history: Any = defaultdict(lambda: [0.0])
    weights, thing, other = np.zeros(2), names["Thing"](), names["Thing"]()
    window: Any = deque([thing, [1], other], maxlen=3)
    order: Any = OrderedDict(a=array, b=weights, c=deque([1], maxlen=2))
    last, inner = window[-1], order["c"]
    names |= {"h": history, "window": window, "state": {"order": order}, "n": [window]}
    history["x"].append(1.0)
    notebook(
        "h['y'].append(0.5)\nh['x'].append(2.0)\nstate['order']['b'] += 1\n"
        "state['order']['c'].extend([2, 3])\nstate['order'].move_to_end('a')\n"
        "state['order']['d'] = 4\nwindow[2].n = 7\nwindow.append(5)"
    )
    assert history == {"x": [0.0, 1.0, 2.0], "y": [0.0, 0.5]}
    assert history["z"] == [0.0]
    assert list(order) == ["b", "c", "a", "d"]
    assert (order["a"], weights.tolist()) == (array, [1.0, 1.0])
    assert order["c"] is inner
    assert (list(inner), inner.maxlen) == ([2, 3], 2)
    assert list(window) == [[1], other, 5]
    assert window[1] is last
    assert (last.n, thing.n) == (7, 0)
    assert capsys.readouterr().err == ""
    notebook("window.append(state['order']['a'] + 1)\nh['z'].append(1)")
    assert isinstance(names["window"], ObjectRef)
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("accel_lab: window[2] does not come back, so window stays")
    assert history["z"] == [0.0, 1]


def test_classes_of_the_notebooks_that_are_containers_have_items_and_attributes(
    notebook: Notebook, names: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    log, table, recent = names["Log"]([0]), names["Table"](), names["Recent"](a=[1], b=2)
    window = names["Window"]([1, 2], 2)
    weights = table["w"] = np.zeros(2)
    log.n, log.label = -1, "mine"
    names |= {"log": log, "recent": recent, "both": {"t": table}, "window": window}
    notebook(
        "log.append(5)\nlog[0] = 'zero'\nlog.label = 'theirs'\nboth['t']['new'] = {1: 2}\n"
        "both['t']['w'] += 1\nrecent.move_to_end('a')\nrecent['a'].append(3)\nrecent.hits = 1\n"
        "window.append(3)"
    )
    assert names["log"] is log
    assert (log, log.n, log.label) == (["zero", 5], 2, "theirs")
    assert table["new"] == {1: 2}
    assert table["w"] is weights
    assert weights.tolist() == [1.0, 1.0]
    assert (list(recent.items()), recent.hits) == ([("b", 2), ("a", [1, 3])], 1)
    assert list(window) == [2, 3]
    assert capsys.readouterr().err == ""
    notebook("log.clear()\ndel both['t']['new']\nrecent.popitem(last=False)")
    assert (log, list(table), list(recent)) == ([], ["w"], ["a"])
    notebook("log.append(print)")
    assert "log[0] does not come back, so log stays" in capsys.readouterr().err


def test_what_is_inside_plain_data_is_the_same_by_its_other_names(notebook: Notebook) -> None:
    cfg: Any = {"opt": {"lr": 1}, "logs": [[1]], "old": [], "nodes": {"a": {}, "b": {}}}
    runs: Any = defaultdict(list, loss=[1])
    opt, log, loss, node = cfg["opt"], cfg["logs"][0], runs["loss"], cfg["nodes"]["b"]
    notebook.names |= {"cfg": cfg, "runs": runs}
    notebook(
        "cfg['opt']['lr'] = 2\ncfg['logs'][0].append(2)\nruns['loss'].append(2)\nruns['new'] += [3]"
    )
    assert (opt, log, loss) == ({"lr": 2}, [1, 2], [1, 2])
    assert (cfg["opt"], cfg["logs"], runs) == (opt, [log], {"loss": loss, "new": [3]})
    notebook(
        "cfg['old'].append(cfg['logs'].pop())\ncfg['old'][0].append(3)\n"
        "cfg['nodes']['a']['next'] = cfg['nodes']['b']\nruns.default_factory = int"
    )
    assert cfg["old"][0] is log, "it has moved from one list to another"
    assert (cfg["logs"], log) == ([], [1, 2, 3])
    assert cfg["nodes"]["a"]["next"] is node
    assert runs.default_factory is int
    notebook("cfg['old'][0].append(xp)")
    assert isinstance(notebook.names["cfg"], ObjectRef)


def test_what_is_inside_tuples_is_changed_in_place(notebook: Notebook) -> None:
    weights, bias = np.zeros(2), np.ones(2)
    notebook.names |= {
        "params": (weights, bias),
        "t": ([1], 2, ({"k": [3]},)),
        "rows": [(weights, ([4],))],
        "fixed": tuple((n, n) for n in range(3)),
    }
    mine = dict(notebook.names)
    notebook("params[0][:] = 5\nt[0].append(5)\nt[2][0]['k'].append(6)\nfixed[1]")
    assert weights.tolist() == [5, 5]
    assert mine["t"] == ([1, 5], 2, ({"k": [3, 6]},))
    notebook("rows[0][0][0] = 7\nrows[0][1][0].append(8)")
    assert (weights.tolist(), mine["rows"][0][1]) == ([7, 5], ([4, 8],))
    notebook("t[0].append([xp])")
    assert isinstance(notebook.names["t"], ObjectRef), "a module stays there"
    assert all(notebook.names[name] is mine[name] for name in ("params", "rows", "fixed"))


def test_keys_may_be_numbers_of_numpys_dates_and_tuples(notebook: Notebook) -> None:
    keys = [np.int64(1), ("l", 0), date(2024, 5, 1), ("a", (frozenset("b"), 1j))]
    table: Any = {key: np.zeros(1) for key in keys}
    notebook.names |= {"table": table, "keys": keys}
    notebook("for key in keys:\n    table[key] += 1\ntable['l', 1] = 2")
    assert [table[key].tolist() for key in keys] == [[1.0]] * 4
    assert table["l", 1] == 2


def test_more_items_than_plain_data_has_come_back_too(notebook: Notebook) -> None:
    window = notebook.names["window"] = deque(range(70_000), maxlen=70_000)
    data = notebook.names["data"] = bytearray(100_000)
    view = np.frombuffer(data, np.uint8)
    notebook("window.append(-1)\ndata[5] = 6")
    assert (len(window), window[0], window[-1], view[5]) == (70_000, 1, -1, 6)
    notebook("data.append(1)")
    assert len(data) == 100_000, "an array is on it, so that it keeps its size"


def test_what_moves_is_the_same_object_and_what_is_new_is_not() -> None:
    """Others may have those objects by other names."""

    def made() -> Any:
        return [[1], object(), [3], {"n": 4}, [5]]

    theirs, mine = made(), made()
    one, _, three, four, five = mine
    lent = CapturedObjects(theirs, frozenset(), lambda _: True)
    theirs[3]["n"] = "four"
    theirs[1:] = [theirs[4], theirs[2], theirs[3], theirs[1], theirs[0], [7]]
    del theirs[0]
    changes, other = lent.changes()
    change(mine, changes)
    assert other == []
    assert [mine[0], mine[1], mine[2], mine[4]] == [five, three, four, one]
    assert all(a is b for a, b in zip(mine[:3], (five, three, four), strict=True))
    assert (mine[4], mine[5], four, one) == ([1], [7], {"n": "four"}, [1])
