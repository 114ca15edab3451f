"""Which arrays inside an answer stay where they are, and which come with a library's object."""

from collections import OrderedDict, deque, namedtuple
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from accel_lab import AccelRef, Device, System
from accel_lab.errors import UserCodeError

pd: Any = import_module("pandas")

Pair = namedtuple("Pair", "left right")  # noqa: PYI024 - as people write it


class Held:
    def __init__(self, w: Any) -> None:
        self.w = w


@pytest.fixture(scope="module")
def cpu() -> Iterator[Device]:
    with System("host") as lab:
        yield lab.devices[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: pd.DataFrame({"epoch": [1, 2], "loss": [0.5, 0.25]}),
        lambda: pd.Series([1.0, 2.0]),
        lambda: pd.Index([1.0, 2.0]),
        lambda: pd.Categorical(["a", "b", "a"]),
    ],
    ids=["frame", "series", "index", "categorical"],
)
def test_an_object_of_a_library_comes_whole(cpu: Device, make: Any) -> None:
    got = cpu.run(make).result(30)
    assert got.equals(make()) if hasattr(got, "equals") else list(got) == list(make())
    (inside,) = cpu.run(lambda: [make()]).result(30)
    assert type(inside) is type(got)


def test_a_masked_array_and_a_polynomial_work_as_they_came(cpu: Device) -> None:
    masked = cpu.run(lambda: np.ma.array([1.0, 2.0], mask=[False, True], fill_value=9.0)).result(30)
    np.testing.assert_array_equal(masked.filled(), [1.0, 9.0])
    line = cpu.run(lambda: Polynomial([1.0, 2.0])).result(30)
    assert line(3.0) == 7.0


@pytest.mark.parametrize(
    "wrap",
    [
        lambda a: [a],
        lambda a: {"a": (a,)},
        lambda a: OrderedDict(a=deque([a])),
        lambda a: Pair(a, a),
        lambda a: {frozenset([Held(a)])},
        lambda a: SimpleNamespace(w=[a]),
    ],
    ids=["list", "dict", "ordered", "named", "set", "namespace"],
)
def test_arrays_in_containers_stay_there(cpu: Device, wrap: Any) -> None:
    got = cpu.run(lambda: wrap(np.ones(3))).result(30)
    while not isinstance(got, AccelRef):
        assert not isinstance(got, np.ndarray)
        inside = got if hasattr(got, "__iter__") else vars(got)
        got = next(iter(inside.values() if isinstance(inside, dict) else inside))
    np.testing.assert_array_equal(got, np.ones(3))


def test_arrays_in_instances_of_the_users_classes_stay_there(
    cpu: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "belonging_model.py").write_text(
        "import numpy as np\n"
        "class Slotted:\n    __slots__ = ('w',)\n"
        "class Model:\n    def __init__(self):\n"
        "        self.w = np.ones(2)\n        self.more = Slotted()\n"
        "        self.more.w = np.zeros(2)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(folder: str) -> Any:
        import sys

        sys.path.insert(0, folder)
        return import_module("belonging_model").Model()

    model = cpu.run(make, str(tmp_path)).result(30)
    assert isinstance(model.w, AccelRef)
    assert isinstance(model.more.w, AccelRef)
    np.testing.assert_array_equal(model.w, np.ones(2))


def test_an_object_that_reads_its_array_while_it_is_rebuilt_is_refused_at_once(cpu: Device) -> None:
    """No other answer can be read while one is."""

    class Checked:
        def __init__(self) -> None:
            self.a = np.ones(4)

        def __setstate__(self, state: dict[str, Any]) -> None:
            self.__dict__ = state
            self.total = float(np.asarray(self.a).sum())

    Checked.__module__ = "__main__"
    with pytest.raises(UserCodeError, match="reads an array that is still on"):
        cpu.run(Checked).result(10)
    assert cpu.run(int).result(30) == 0
