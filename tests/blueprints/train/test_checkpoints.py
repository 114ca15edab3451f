"""Snapshots in a folder: by content, whole or not there, and never silently damaged."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from accel_lab.actor.reply import Reply
from accel_lab.blueprints.train import Checkpoints, InMemory
from accel_lab.blueprints.train.snapshots.snapshot import Asked, Keeper
from accel_lab.errors import ContextLost, FileDamaged, FileError, InvalidArgument, OutOfMemory


def answered(value: Any = None, error: Any = None) -> Reply[Any]:
    reply: Reply[Any] = Reply()
    if error is not None:
        reply.reject(error)
    else:
        reply.resolve(value)
    return reply


def asked(step: int, **arrays: Any) -> Asked:
    replies = {name: [answered(np.asarray(x))] for name, x in arrays.items()}
    return Asked(step, {":losses": np.arange(step) / 3}, replies, {"updates": step}, first)


def first(name: str, parts: Sequence[Any]) -> Any:
    """Return the only part."""
    (part,) = parts
    return part


def contents(folder: Path) -> int:
    return len(list((folder / "contents").iterdir()))


def test_what_is_taken_is_read_bit_for_bit(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    arrays = {
        "w": random.standard_normal((3, 4)).astype("float32"),
        "turned": random.standard_normal((3, 4)).T,
        "narrow": random.standard_normal(5).astype(ml_dtypes.bfloat16),
        "none": np.zeros((0, 3)),
        "number": np.float64(np.nan),
    }
    Checkpoints(tmp_path).take(asked(7, **arrays))
    made = Checkpoints(tmp_path)
    while not made.steps:  # the one that writes is another
        pass
    found = made.newest()
    assert found is not None
    assert (found.step, found.facts) == (7, {"updates": 7})
    np.testing.assert_array_equal(found.arrays[":losses"], np.arange(7) / 3)
    for name, x in arrays.items():
        got = found.arrays[name]
        assert (got.dtype, got.shape) == (np.asarray(x).dtype, np.asarray(x).shape)
        assert got.tobytes() == np.ascontiguousarray(x).tobytes()


def test_a_content_is_there_once_and_old_ones_go(tmp_path: Path) -> None:
    made = Checkpoints(tmp_path, keep=2)
    for step in range(1, 6):
        made.take(asked(step, same=np.ones(10), other=np.full(10, step), twin=np.ones(10)))
        made.flush()
        # One for `same` and its twin; of each step kept the other, and the losses.
        assert contents(tmp_path) == 1 + 2 * min(step, 2)
    assert made.steps == [4, 5]
    with pytest.raises(InvalidArgument, match="has the steps"):
        made.load(3)


def test_a_future_that_was_given_up_goes(tmp_path: Path) -> None:
    """Who resumes an older step writes over what came of it."""
    made = Checkpoints(tmp_path)
    for step in (5, 10, 15):
        made.take(asked(step, w=np.full(3, step)))
    made.take(asked(6, w=np.full(3, 6)))
    made.flush()
    assert made.steps == [5, 6]


def test_a_snapshot_that_a_fault_took_leaves_the_one_before(tmp_path: Path) -> None:
    keepers: list[Keeper] = [Checkpoints(tmp_path), InMemory()]
    for keeper in keepers:
        keeper.take(asked(1, w=np.ones(3)))
        lost = ContextLost("gone", generation=1)
        keeper.take(Asked(2, {}, {"w": [answered(error=lost)]}, {}, first))
        found = keeper.newest()
        assert found is not None
        assert found.step == 1


def test_what_is_no_fault_is_raised(tmp_path: Path) -> None:
    keepers: list[Keeper] = [Checkpoints(tmp_path), InMemory()]
    for keeper in keepers:
        keeper.take(Asked(2, {}, {"w": [answered(error=OutOfMemory("full"))]}, {}, first))
        with pytest.raises(OutOfMemory):
            keeper.flush()
        keeper.flush()  # once


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[3] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("damage", [_cut, _flip, Path.unlink])
def test_damage_is_told_with_what_else_there_is(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    made = Checkpoints(tmp_path)
    made.take(asked(1, w=np.ones(3)))
    made.take(asked(2, w=np.full(3, 2.0)))
    made.flush()
    row = json.loads((tmp_path / "step-000000002.json").read_text())["arrays"]["w"]
    damage(tmp_path / "contents" / row["digest"])
    with pytest.raises(FileDamaged, match=r"'w' of step 2 is damaged.*other steps, \[1\]"):
        made.newest()
    np.testing.assert_array_equal(made.load(1).arrays["w"], np.ones(3))
    with pytest.raises(FileDamaged, match=r"without step-000000002\.json resume") as caught:
        made.load(2)
    assert "goes on from the newest of these" in str(caught.value)
    (tmp_path / "step-000000002.json").unlink()
    found = made.newest()
    assert found is not None
    assert found.step == 1


def test_a_step_file_that_is_none_is_told(tmp_path: Path) -> None:
    made = Checkpoints(tmp_path)
    made.take(asked(1, w=np.ones(3)))
    made.flush()
    path = tmp_path / "step-000000001.json"
    told = json.loads(path.read_text())
    _cut(path)
    with pytest.raises(FileDamaged, match="is no checkpoint"):
        made.newest()
    path.write_text(json.dumps(told | {"version": 9}))
    with pytest.raises(FileDamaged, match="of version 9"):
        made.newest()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    made = Checkpoints(tmp_path)
    (tmp_path / "contents").rmdir()
    (tmp_path / "contents").write_text("a file")
    made.take(asked(1, w=np.ones(3)))
    with pytest.raises((FileError, OSError)):
        made.flush()
    with pytest.raises(InvalidArgument, match="keep is 0"):
        Checkpoints(tmp_path, keep=0)


def test_a_step_that_is_damaged_keeps_its_contents_and_hinders_no_other(tmp_path: Path) -> None:
    made = Checkpoints(tmp_path, keep=2)
    made.take(asked(1, w=np.ones(3)))
    made.flush()
    path = tmp_path / "step-000000001.json"
    told = path.read_bytes()
    path.write_bytes(told[:-1])
    made.take(asked(2, w=np.full(3, 2.0)))
    made.flush()
    assert made.last == 2
    path.write_bytes(told)
    np.testing.assert_array_equal(made.load(1).arrays["w"], np.ones(3))
