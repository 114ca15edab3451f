"""What a page of a dashboard looks at: the past by itself, and nothing that acts on a system."""

import gc
import weakref
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from accel_lab import System, blas
from accel_lab.compute.events.samples import SystemEnded
from accel_lab.errors import InvalidArgument
from accel_lab.views import Recording, record
from accel_lab.views.dashboard.watched import Onlooker, Watched
from accel_lab.views.feed.client import FeedSource
from accel_lab.views.feed.lines import Topic, speaker
from accel_lab.views.lab import LabView
from tests.views.feed.processes import eventually
from tests.views.made_up import lab as made_up

if find_spec("panel") is None:
    pytest.skip("panel comes with the lab extra", allow_module_level=True)

from accel_lab.views.dashboard.look import Look
from accel_lab.views.dashboard.page import Desk, Page


@pytest.fixture
def lab() -> Iterator[System]:
    with System("host", name="train") as lab:
        x = lab.devices[0].put(np.ones((8, 8), np.float32))
        for _ in range(5):
            blas.gemm(x, x).result()
        lab.flush()
        yield lab


def seen(page: Page) -> Any:
    """Return what a page shows."""
    page.update()
    assert page._front is not None
    return msgspec.json.decode(page._front.state)


def ask(page: Page, do: str, part: str = "journal", **fields: object) -> None:
    """Do what a button of a page does, as far as it is allowed."""
    assert page._front is not None
    page._front._handle_msg({"do": "part", "part": part, "message": {"do": do, **fields}})


def pages(source: Onlooker, count: int) -> list[Page]:
    desk = Desk(lambda: [source], LabView)
    return [Page(desk) for _ in range(count)]


def test_a_page_goes_back_by_itself_and_comes_forward(lab: System) -> None:
    one, other = pages(Onlooker(lab, "train"), 2)
    assert seen(one)["journal"]["live"] is True
    ask(one, "seek", position=3)
    eventually(lambda: "replay" in seen(one))
    assert seen(one)["replay"]["position"] == seen(one)["journal"]["position"] == 3
    assert seen(one)["journal"]["live"] is False
    assert "acts" not in seen(one)["supervision"], "no button acts on the system"
    assert seen(other)["journal"]["live"] is True
    assert "replay" not in seen(other)
    ask(one, "step", n=-1)
    eventually(lambda: seen(one)["replay"]["position"] == 2)
    ask(one, "live")
    eventually(lambda: "replay" not in seen(one))


def test_only_the_scrubber_of_a_page_does_something(lab: System) -> None:
    source = Onlooker(lab, "train")
    look = Look(source, LabView)
    for part, do in (("supervision", "inject"), ("tree", "restart")):
        with pytest.raises(InvalidArgument, match="cannot change a system"):
            look.do_part(part, {"do": do, "device": "cpu0", "fault": "kill"})
    assert not look.replaying
    assert lab.devices[0].generation == 1


def test_where_nothing_is_kept_there_is_no_scrubber_and_the_page_says_why() -> None:
    (page,) = pages(Onlooker(made_up(1), "lab"), 1)
    assert "journal" not in seen(page)
    listed = msgspec.json.decode(page.systems.state)
    assert listed["unkept"] == "lab: it keeps no journal"
    look = Look(Onlooker(made_up(1), "lab"), LabView)
    with pytest.raises(InvalidArgument, match="lab: it keeps no journal"):
        look.do_part("journal", {"do": "play"})


def test_a_recording_is_scrubbed_by_each_page_and_its_own_views_stay(tmp_path: Path) -> None:
    lab = made_up(1)
    record(lab, tmp_path / "session.jsonl").close()
    with Recording.open(tmp_path / "session.jsonl") as recording:
        one, other = pages(Onlooker(recording, "lab"), 2)
        count = seen(one)["replay"]["count"]
        assert seen(one)["replay"]["position"] == count == len(recording)
        ask(one, "seek", position=0)
        eventually(lambda: seen(one)["replay"]["position"] == 0)
        assert seen(other)["replay"]["position"] == count == recording.player.position
        assert "unkept" not in msgspec.json.decode(one.systems.state)


def test_a_page_follows_to_what_comes_after_and_not_to_what_was_there_beside() -> None:
    """Two runs of one script: when one ends the page stays, until that is started anew."""
    speaks = speaker()
    one, beside, again = (
        FeedSource(f"1-2-{n}", speaks, Topic(system=n, name=f"run{n}", opened=float(n)))
        for n in (1, 2, 3)
    )
    sources = [beside, one]
    page = Page(Desk(lambda: list(sources), LabView))

    def shown() -> str:
        page.update()
        return str(msgspec.json.decode(page.systems.state)["shown"])

    page.choose(one.key)
    one.hear(SystemEnded(name=one.name))
    assert shown() == one.key
    page.choose(beside.key)
    assert shown() == beside.key
    page.choose(one.key)
    assert shown() == one.key, "what has ended can be looked at while another runs"
    sources.insert(0, again)
    assert shown() == again.key


def heard() -> Watched:
    """Return a system of another process, which tells its journal."""
    return FeedSource("1-2-3", speaker(), Topic(system=3, name="train", opened=1.0, journal=True))


def own() -> Watched:
    return Onlooker(made_up(1), "lab")


@pytest.mark.parametrize("make", [heard, own])
def test_what_is_looked_at_no_more_is_not_kept(make: Callable[[], Watched]) -> None:
    desk = Desk(list, LabView)
    source = make()
    assert desk.drawing(source).state
    gone = weakref.ref(source)
    del source
    gc.collect()
    assert gone() is None
