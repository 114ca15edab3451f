"""The panels of JupyterLab's extension from the kernel's side: a comm that is no Jupyter's."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from accel_lab.errors import InvalidArgument
from accel_lab.system import System

pytest.importorskip("comm", reason="comm comes with ipykernel")

from accel_lab.views import panels
from accel_lab.views.lab import PARTS as LAB_PARTS
from accel_lab.views.panels import Panels
from tests.project import ROOT

WAIT_S = 20.0


class Comm:
    """Keeps what is sent, and gives what the page says to whoever listens."""

    def __init__(self) -> None:
        self.sent: list[tuple[dict[str, Any], list[bytes]]] = []
        self.say: Callable[[Any], None] = lambda _: None

    def on_msg(self, callback: Callable[[Any], None]) -> None:
        self.say = callback

    def send(self, content: dict[str, Any], *, buffers: list[bytes]) -> None:
        self.sent.append((content, buffers))

    def page_says(self, **message: Any) -> None:
        self.say({"content": {"data": message}})

    def of(self, panel: str) -> list[tuple[dict[str, Any], list[bytes]]]:
        return [one for one in self.sent if one[0].get("panel") == panel]


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with System("host", name="real") as lab:
        yield lab.ready()


def until(holds: Callable[[], Any]) -> None:
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_kernel_knows_every_view_that_the_page_can_dock() -> None:
    parts = (ROOT / "widgets" / "lab" / "parts.js").read_text()
    named = re.findall(r'\{ name: "(\w+)"', parts)
    assert len(named) == len(LAB_PARTS)
    assert panels.KINDS.keys() == {"lab", "sidebar", "first_minute", *named}


def test_a_page_is_told_of_systems_and_gets_the_views_it_asks_for(system: System) -> None:
    comm = Comm()
    shown = Panels(comm)
    comm.page_says(do="systems")
    until(lambda: comm.sent)
    told = comm.sent[0][0]
    assert told["accel_lab"] == "systems"
    assert {"name": "real", "backend": "host", "session": ""} in told["systems"]
    comm.page_says(do="show", panel="p1", view="sidebar", system="real")
    until(lambda: comm.of("p1"))
    content, buffers = comm.of("p1")[0]
    assert content["news"]
    state = msgspec.json.decode(buffers[0])
    assert [one["name"] for one in state["devices"]] == ["cpu0"]
    until(lambda: any(not content["news"] for content, _ in comm.of("p1")))  # a sign of life
    assert all(not buffers for content, buffers in comm.of("p1") if not content["news"])
    shown.do_hide("p1")
    with pytest.raises(InvalidArgument, match="no panel 'p1'"):
        shown.do_command("p1", {"do": "stop", "device": "cpu0"})


@pytest.mark.parametrize("view", sorted(panels.KINDS))
def test_every_view_can_be_shown(system: System, view: str) -> None:
    comm = Comm()
    Panels(comm).do_show("p", view, "real")
    until(lambda: comm.of("p"))


def test_a_panel_that_no_page_names_any_more_is_dropped(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    comm = Comm()
    shown = Panels(comm)
    for panel in ("kept", "gone"):
        shown.do_show(panel, "tree", "real")
    shown.do_alive(["kept"])
    assert set(shown._panels) == {"kept", "gone"}
    later = time.monotonic() + panels.GONE_S + 1
    monkeypatch.setattr("time.monotonic", lambda: later)
    shown.do_alive(["kept"])
    assert set(shown._panels) == {"kept"}


def test_what_cannot_be_shown_is_refused_by_name(system: System) -> None:
    shown = Panels(Comm())
    with pytest.raises(
        InvalidArgument, match="no view 'nothing'; there are agents, collectives, f"
    ):
        shown.do_show("p", "nothing", "real")
    with pytest.raises(InvalidArgument, match="no system 'other'"):
        shown.do_show("p", "tree", "other")
