"""What a timeline's arrows stand for, read from the journal of a real system."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from accel_lab import System, blas
from accel_lab.views.axis.relations import Relations, relations_of
from accel_lab.views.timeline import TimelineView
from tests.views.work import Recorded, case_scene


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", name="lab") as system:
        yield system


def seqs(lab: System) -> dict[str, list[int]]:
    """Return the numbers of the messages that there are, by their names."""
    found: dict[str, list[int]] = {}
    for entry in lab.journal:
        if entry.kind == "message":
            found.setdefault(entry.name, []).append(entry.seq)
    return found


def test_makers_and_users_of_a_message_are_found(lab: System) -> None:
    cpu = lab.devices[0]
    a, b = cpu.put(np.ones((8, 8), np.float32)), cpu.put(np.ones((8, 8), np.float32))
    c = blas.gemm(a, b)
    d = blas.gemm(c, a)
    e = blas.gemm(c, c)
    cpu.get(d).result(20)
    cpu.get(e).result(20)
    uploads, gemms = seqs(lab)["Put"], seqs(lab)["Gemm"]
    first, second, third = gemms
    found = relations_of(lab.journal, "cpu0", first)
    assert found.makers == (("cpu0", uploads[0]), ("cpu0", uploads[1]))
    assert found.users == (("cpu0", second), ("cpu0", third))
    assert (found.group, found.cell, found.why) == ((), None, "")
    assert relations_of(lab.journal, "cpu0", second).makers[0] == ("cpu0", first)


def test_a_view_is_asked_and_tells_it_with_its_next_state(lab: System) -> None:
    view = TimelineView(lab)
    assert "related" not in view.sample()
    gemms = seqs(lab)["Gemm"]
    view.do_relate("cpu0", gemms[0])
    related = view.sample()["related"]
    assert related["of"] == ["cpu0", gemms[0]]
    assert related["users"] == (("cpu0", gemms[1]), ("cpu0", gemms[2]))
    view.do_relate("cpu0", 10_000_000)
    assert view.sample()["related"]["why"]


def test_where_there_is_no_journal_that_is_said() -> None:
    view = TimelineView(Recorded(scene := case_scene()))
    view.do_relate("gpu0", 2)
    assert view.fold(scene)["related"] == {
        "of": ["gpu0", 2],
        **Relations(why="there is no journal to tell")._asdict(),
    }


def part(device: str, seq: int, group: int) -> Any:
    """Return an entry of a part of a message to several devices."""
    place = SimpleNamespace(group=group)
    fields = {"kind": "message", "session": "s", "operands": (1,), "makes": {seq: None}}
    return SimpleNamespace(device=device, seq=seq, place=place, cell=7, **fields)


def test_the_other_parts_of_a_message_to_several_devices_are_found() -> None:
    entries = [part("gpu0", 3, 1), part("gpu1", 4, 1), part("gpu1", 5, 2), part("gpu2", 6, 1)]
    found = relations_of(entries, "gpu1", 4)
    assert found.group == (("gpu0", 3), ("gpu2", 6))
    assert found.cell == 7
