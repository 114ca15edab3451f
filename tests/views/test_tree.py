"""The device tree without a browser."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar, get_args

from accel_lab import views
from accel_lab.actor.events import EventStream
from accel_lab.compute.events.samples import MemorySampled, WorkTraced
from accel_lab.compute.events.tree import Node, State
from accel_lab.views.tree import GLYPHS, TreeView, html, state_of, text
from accel_lab.views.widget.load import Load
from tests.views.made_up import GIB, Device, lab

ROOT = Path(__file__).parents[2]
LEAF = Node(name="blas", path="lab/gpu0/blas", kind="library", state="running")


def test_a_state_leaves_out_what_is_zero_or_absent() -> None:
    assert state_of(LEAF) == {
        "root": {"name": "blas", "kind": "library", "state": "running"},
        "closed": False,
    }


def test_a_state_keeps_every_field_that_says_something() -> None:
    node = Node(
        name="gpu0",
        path="gpu0",
        kind="device",
        state="restarting",
        generation=2,
        mailbox=3,
        in_flight=4,
        used_bytes=0,
        total_bytes=6,
        restarts=7,
        detail="H200",
        children=(LEAF,),
    )
    assert state_of(node, closed=True) == {
        "root": {
            "name": "gpu0",
            "kind": "device",
            "state": "restarting",
            "generation": 2,
            "used_bytes": 0,
            "total_bytes": 6,
            "mailbox": 3,
            "in_flight": 4,
            "restarts": 7,
            "detail": "H200",
            "children": [state_of(LEAF)["root"]],
        },
        "closed": True,
    }


def test_two_hundred_actors_fit_into_a_small_message() -> None:
    source = lab(devices=8, libraries=24)
    state = state_of(source.tree())
    assert sum(1 for _ in source.tree().walk()) == 209
    assert len(json.dumps(state, separators=(",", ":"))) < 16 * 1024


def test_text_aligns_every_column() -> None:
    source = lab(devices=2)
    source.devices[0].in_flight = 12
    source.devices[1].used_bytes = int(3.2 * GIB)
    source.devices[1].detail = "H200"
    assert text(state_of(source.tree())) == (
        """\
lab: 2 devices
Actor        State   Gen  Mailbox  In flight  Memory         Restarts
lab          ▶ busy             0          0                        0
├ gpu0       ▶ busy  g1         0         12  1.2 / 139 GiB         0
│ └ context  ▶ busy  g1         0         12                        0
│   ├ array  ○ idle             0          0                        0
│   └ blas   ▶ busy             0         12                        0
└ gpu1       ○ idle  g1         0          0  3.2 / 139 GiB         0
  └ context  ○ idle  g1         0          0                        0
    ├ array  ○ idle             0          0                        0
    └ blas   ○ idle             0          0                        0
lab: cuda
gpu0: NVIDIA H200
gpu0/context: pid 4001
gpu1: H200
gpu1/context: pid 4001"""
    )


def test_nothing_to_show_says_so() -> None:
    assert text(state_of(None, closed=True)) == "No actors (closed)"
    assert text(state_of(lab(devices=0).tree())).startswith("lab: 0 devices\n")
    assert text(state_of(lab(devices=1).tree(), closed=True)).startswith("lab: 1 device (closed)\n")


class Table(HTMLParser):
    """Checks that tags nest, and keeps what a reader of the table meets."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.rows: list[list[str]] = []
        self.feed(markup)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag in {"tr", "caption"}:
            self.rows.append([])
        if tag in {"th", "td"}:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] == "caption":
            self.rows[-1].append(data)
        else:
            self.rows[-1][-1] += data


def test_the_table_has_a_caption_a_header_a_row_and_a_group_for_each() -> None:
    table = Table(html(state_of(lab(devices=2, libraries=1).tree())))
    assert table.rows[0] == ["lab: 2 devices"]
    assert [row[0] for row in table.rows[1:]] == [
        "Actor",
        "lab",
        "gpu0",
        "gpu0/context",
        "gpu0/context/array",
        "gpu1",
        "gpu1/context",
        "gpu1/context/array",
    ]
    assert table.rows[3][1:] == [
        "○\N{NO-BREAK SPACE}idle",
        "g1",
        "0",
        "0",
        "1.2\N{NO-BREAK SPACE}/\N{NO-BREAK SPACE}139\N{NO-BREAK SPACE}GiB",
        "0",
        "NVIDIA H200",
    ]
    assert table.tags.count("tbody") == 3


def test_the_table_has_no_style_and_no_script() -> None:
    table = Table(html(state_of(lab().tree())))
    assert set(table.tags) == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert table.attributes == {"scope"}


def test_the_table_shows_names_as_text() -> None:
    source = lab(devices=1)
    source.devices[0].detail = "<script>alert(1)</script>"
    table = Table(html(state_of(source.tree())))
    assert "script" not in table.tags
    assert table.rows[3][-1] == source.devices[0].detail


def test_every_state_of_an_actor_has_a_glyph() -> None:
    assert set(GLYPHS) == {*get_args(State), "busy", "idle"}


def test_library_actors_at_rest_are_one_row_and_those_at_work_have_their_own() -> None:
    source = lab(devices=1, libraries=6)
    state = state_of(source.tree())
    assert "6 idle" in text(state)
    blas = state["root"]["children"][0]["children"][0]["children"][1]
    blas["mailbox"] = 63
    drawn = text(state)
    assert "5 idle" in drawn
    assert re.search(r"├ blas +▶ busy +63 ", drawn)
    blas |= {"mailbox": 0, "restarts": 1}
    assert re.search(r"├ blas +○ idle .* 1$", text(state), re.MULTILINE)
    table = Table(html(state))
    assert table.rows[-1][0] == "gpu0/context/5 idle"
    assert table.rows[-1][-1] == "array, library2, library3, library4, library5"


def test_of_a_moment_without_counts_nobody_is_called_idle() -> None:
    state = state_of(lab(devices=1, libraries=3).tree())
    state["unrecorded"] = {"mailbox": "a journal does not say"}
    drawn = text(state)
    assert "3 running" in drawn
    assert "idle" not in drawn


def test_the_text_fits_eighty_columns() -> None:
    source = lab(devices=2, libraries=12)
    source.devices[0] = Device(
        "gpu0-of-a-machine-with-a-long-name",
        state="circuit open",
        mailbox=123_456,
        in_flight=123,
        generation=12,
        restarts=11,
        detail="NVIDIA H200 · last loss: " + "its process ended with SIGKILL, " * 4,
    )
    lines = text(state_of(source.tree())).splitlines()
    assert max(map(len, lines)) == 80
    assert any(line.endswith("…") for line in lines)


def test_what_was_done_in_the_last_second_is_said_of_an_actor_and_all_above_it() -> None:
    loads = {("gpu0", "blas"): Load(12.4, 0.25), ("gpu0", ""): Load(12.4, 0.25)}
    state = state_of(lab(devices=2).tree(), loads=loads | {("gpu1", ""): Load(0.24, None)})
    root = state["root"]
    first, second = root["children"]
    context = first["children"][0]
    array, library = context["children"]
    assert [one["rate"] for one in (root, first, context, library)] == [13, 12, 12, 12]
    assert [one["busy"] for one in (first, context, library)] == [0.25] * 3
    assert "busy" not in root
    assert second["rate"] == 0.2
    assert "busy" not in second, "nobody knows how long that took"
    assert "rate" not in array
    assert "12 messages/s · 25 % busy · NVIDIA H200" in text(state)


def test_outside_a_kernel_the_tree_is_drawn_when_it_is_displayed() -> None:
    source = lab(devices=1)
    view = views.tree(source)
    source.restart()
    data, metadata = view._repr_mimebundle_(include=None, exclude=None)
    assert type(view) is TreeView
    assert set(data) == {"text/plain", "text/html"}
    assert "g2" in data["text/plain"]
    assert "<td>g2</td>" in data["text/html"]
    assert metadata == {}
    assert str(view) == data["text/plain"]


def test_a_closed_lab_keeps_the_last_tree_that_was_seen_with_all_stopped() -> None:
    source = lab(devices=1)
    source.devices[0].in_flight = 7
    source.restart()
    view = TreeView(source)
    view.sample()
    source.closed = True
    state = view.sample()
    assert state["closed"] is True
    assert state["root"]["children"][0] == {
        "name": "gpu0",
        "kind": "device",
        "state": "stopped",
        "generation": 2,
        "used_bytes": int(1.2 * GIB),
        "total_bytes": 139 * GIB,
        "restarts": 1,
        "detail": "NVIDIA H200 · last loss: SIGKILL",
        "children": state["root"]["children"][0]["children"],
    }
    assert view.sample() == state


def test_a_lab_that_was_stopped_before_it_was_seen_shows_that() -> None:
    stopped = TreeView(Stopped())
    assert stopped.sample()["root"]["state"] == "stopped"
    assert stopped.sample()["closed"] is True


def test_a_lab_that_is_gone_is_closed() -> None:
    source = lab(devices=0)
    view = TreeView(source)
    del source
    assert view.sample() == {"root": None, "closed": True}


class Stopped:
    """A lab whose root says that it has stopped; kept alive by the class."""

    name = "lab"
    events = EventStream()
    kept: ClassVar[list["Stopped"]] = []

    def __init__(self) -> None:
        self.kept.append(self)

    def tree(self) -> Node:
        return Node(name="lab", path="lab", kind="system", state="stopped")

    def look(self, *, memory: bool, work: bool) -> list[MemorySampled | WorkTraced]:
        raise AssertionError(f"nobody looks at what has stopped: {memory}, {work}")


def test_without_anywidget_the_tree_is_still_text_and_a_table() -> None:
    program = """
import sys
sys.modules["anywidget"] = sys.modules["ipywidgets"] = None
from accel_lab import views
from tests.views.made_up import lab
source = lab()
print(sorted(views.tree(source)._repr_mimebundle_()[0]))
assert not {"traitlets", "IPython"} & set(sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "['text/html', 'text/plain']\n"
