"""What a fork takes along and what it refuses; forks of sessions and of notebooks."""

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accel_lab
from accel_lab import System, open_systems, rng
from accel_lab.errors import CannotKeep, ContextLost, SystemClosed
from tests.session.test_cells import notebook

A = np.arange(12.0).reshape(3, 4)


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", devices=1) as made:
        yield made


class Model:
    def __init__(self, w: Any) -> None:
        self.w = w


def test_what_cannot_be_taken_along_is_named_before_anything_is_done(lab: System) -> None:
    gpu = lab.devices[0]
    w = gpu.put(A)
    names: dict[str, Any] = {"x": w + 1, "model": Model(w), "rows": [1, {"m": Model(w)}]}
    before, sent = open_systems.running(), gpu.last_number
    with pytest.raises(CannotKeep) as caught:
        lab.fork(names)
    assert caught.value.lost.keys() == {"model", "rows"}
    assert "Model of tests.session.test_fork holds the buffer model.w" in str(caught.value)
    assert "fork(drop=True)" in caught.value.remedy
    assert open_systems.running() == before
    assert gpu.last_number == sent
    with lab.fork(names, drop=True) as other:
        assert other.lost.keys() == {"model", "rows"}
        assert other.names.keys() == {"x"}
        np.testing.assert_array_equal(other[names["x"]].get(), A + 1)


def test_objects_of_cells_are_refused_and_plain_ones_copied(tmp_path: Path) -> None:
    with notebook(tmp_path / "run.lab") as first:
        first("%%gpu\nloss = 0.5\nmodel = object()\nw = xp.ones(3)")
        with pytest.raises(CannotKeep, match=r"model: .* of %%gpu cells is in the context alone"):
            first.lab.fork()
        first("del model")
        with first.lab.fork() as other:
            assert other.names["loss"] == 0.5
            assert type(other.names["loss"]) is float
            np.testing.assert_array_equal(other[first.names["w"]].get(), 1.0)


def test_names_without_anything_of_the_system_are_left_out(lab: System) -> None:
    with System("host", devices=1) as stranger:
        mine = lab.devices[0].put(A)
        its = stranger.devices[0].put(A)
        lock = threading.Lock()
        names = {
            "n": 3,
            "text": "x",
            "lock": lock,
            "np": np,
            "its": its,
            "mixed": [its, mine, lock],
        }
        names |= {"its_rng": rng.Generator(stranger.devices[0], 1), "own": SimpleNamespace(a=1)}
        with lab.fork(names) as other:
            assert other.names.keys() == {"mixed"}
            with pytest.raises(KeyError, match="another system"):
                other[its]
            with pytest.raises(KeyError, match="no name led to it"):
                other[mine + 1]
            with pytest.raises(KeyError, match="no name led to this Generator"):
                other[rng.Generator(lab.devices[0], 1)]


def test_what_has_failed_is_absent_with_the_reason(lab: System) -> None:
    gpu = lab.devices[0]
    failed, freed, answer = gpu.run(lambda: 1 / 0), gpu.put(A), gpu.run(lambda: 5)
    freed.free()
    assert answer.result() == 5
    with pytest.raises(accel_lab.errors.UserCodeError):
        failed.result()
    names = {"answer": answer, "both": [answer], "failed": failed, "freed": freed}
    with lab.fork(names) as other:
        assert other.names == {"answer": 5, "both": [5]}
        assert "ZeroDivisionError" in other.lost["failed"]
        assert "freed" in other.lost["freed"]
        with pytest.raises(KeyError, match="freed"):
            other[freed]


def test_without_a_record_arrays_are_taken_along_and_nothing_else() -> None:
    with System("host", devices=1, recover="stale", journal=None) as lab:
        a = lab.devices[0].put(A)
        names: dict[str, Any] = {"a": a, "row": a[1]}
        with lab.fork(names) as other:
            assert other.recover == "stale"
            other[a].device.run(lambda x: x.fill(0), other[names["row"]]).result()
            assert other[a].get()[1].tolist() == [0, 0, 0, 0]
            np.testing.assert_array_equal(a.get(), A)
        names["event"] = accel_lab.event.record(lab.devices[0])
        with pytest.raises(CannotKeep, match="event: "):
            lab.fork(names)
        with lab.fork(names, drop=True) as other:
            assert other.lost.keys() == {"event"}
            assert other.names.keys() == {"a", "row"}


def test_two_devices_keep_their_places() -> None:
    with System("host", devices=2) as lab:
        x, y = (device.put(A + at) for at, device in enumerate(lab.devices))
        assert x.id == y.id
        with lab.fork({"x": x, "y": y}) as other:
            assert [other[x].device, other[y].device] == other.devices
            np.testing.assert_array_equal(other[y].get(), A + 1)
            with pytest.raises(ContextLost):
                lab.inject("kill", lab.devices[1]).result()
            assert [one.generation for one in other.devices] == [1, 1]


def test_a_session_forks_and_its_fork_is_none_of_it(tmp_path: Path) -> None:
    folder, names = tmp_path / "run.lab", dict[str, Any]()
    with accel_lab.open(folder, "host", names=names) as lab:
        names["x"] = lab.devices[0].put(A)
        names["row"] = names["x"][1]
        lab.commit()
    names.clear()
    with accel_lab.open(folder, "host", names=names) as lab:
        assert type(names["x"]).waits
        with lab.fork() as other:
            its = other[names["row"]]
            its.device.run(lambda x: x.fill(7), its).result()
            assert other.names["x"].get()[1].tolist() == [7, 7, 7, 7]
        number = lab.commit().number
    names.clear()
    with accel_lab.open(folder, "host", names=names) as lab:
        assert lab.opened.commit == number
        np.testing.assert_array_equal(names["x"].get(), A)


def test_a_closed_system_and_no_time_are_refused() -> None:
    lab = System("host", devices=1)
    x = lab.devices[0].put(A)
    before = open_systems.running()
    with pytest.raises(TimeoutError):
        lab.fork({"x": x}, timeout_s=0)
    assert open_systems.running() == before
    lab.close()
    with pytest.raises(SystemClosed):
        lab.fork({"x": x})


VIEWS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 9), st.sampled_from([1, 2, 3, -1, -2])), max_size=4
)


@settings(max_examples=3, deadline=None)
@given(views=VIEWS, written=st.integers(0, 4))
def test_views_are_views_of_the_same_elements(lab: Any, views: Any, written: int) -> None:
    """As NumPy's own views of a copy of the array."""
    indices = [slice(first, None if step < 0 else first + n, step) for first, n, step in views]
    array = np.arange(10)
    whole = lab.devices[0].put(array)
    refs = [whole, *[whole[index] for index in indices]]
    copy = array.copy()
    ours = [copy, *[copy[index] for index in indices]]
    with lab.fork({"refs": refs}) as other:
        made = other.names["refs"]
        at = written % len(refs)
        made[at].device.run(lambda x: x.fill(-1), made[at]).result()
        ours[at].fill(-1)
        for one, expected in zip(made, ours, strict=True):
            np.testing.assert_array_equal(one.get(), expected)
    np.testing.assert_array_equal(whole.get(), array)
