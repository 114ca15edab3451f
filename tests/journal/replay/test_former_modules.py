"""A journal that was recorded when `compute/` had no rooms: its calls name modules that moved.

`before_rooms.jsonl` was recorded by 0.1.0 on Python 3.11. It holds messages of every library, and
pure calls of a cached, a dispatching and an imported function, of a class with a cached property
and of a random generator. Functions travel as byte code, which is one minor version's.
"""

import pickle
import sys
from pathlib import Path

import pytest

from accel_lab import Journal, System
from accel_lab.compute.wire import main_classes

RECORD = Path(__file__).parent / "before_rooms.jsonl"


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="its byte code is Python 3.11's")
def test_a_journal_from_before_the_rooms_replays_with_the_same_results() -> None:
    with System("host", journal=None) as lab:
        report = Journal.from_jsonl(RECORD).replay(lab, allow_code=True)
    assert (report.run, report.compared) == (18, 16)
    assert report.ok, str(report)
    assert not report.failed


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("accel_lab.compute.wrapped", "_cached"),
        ("accel_lab.compute.wrapped", "_property"),
        ("accel_lab.compute.wrapped", "_dispatched"),
        ("accel_lab.compute.workspaces", "resident"),
        ("accel_lab.compute.execution", "Cell"),  # the old name of a module is a room's now
        ("accel_lab.compute.backend", "Peak"),
        ("accel_lab.compute.meter", "Cost"),
        ("accel_lab.compute.own_classes", "loads"),
        ("accel_lab.compute.pickler", "_aliased"),
        ("accel_lab.compute.plain", "thawed"),
        ("accel_lab.compute.tensors", "typed"),
        ("accel_lab.compute.tensors", "_with_grad"),
        ("accel_lab.compute.buffer", "AccelRef"),
    ],
)
def test_a_name_from_before_the_rooms_is_found(module: str, name: str) -> None:
    by_name = b"\x80\x04c" + f"{module}\n{name}\n".encode() + b"."  # protocol 4, GLOBAL
    with pytest.raises((ModuleNotFoundError, AttributeError)):
        pickle.loads(by_name)  # noqa: S301 - made above
    assert main_classes.loads(by_name).__name__ == name
