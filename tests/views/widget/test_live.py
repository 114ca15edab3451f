"""The widget's Python half, without a kernel: what it would send, when, and when it ends."""

import gc
import itertools
import json
import queue
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("anywidget", reason="anywidget comes with the lab extra")

import IPython

from accel_lab import views
from accel_lab.actor.events import ActorStarted
from accel_lab.errors import ContextLost
from accel_lab.system import System
from accel_lab.views import Recording
from accel_lab.views.tree import TreeView
from accel_lab.views.widget import live
from accel_lab.views.widget.live import LiveView, widget_class
from accel_lab.views.widget.publisher import Publisher, silence_s
from tests.views.made_up import Lab, lab

WAIT_S = 10.0


class Still(Publisher):
    """A publisher whose thread never runs: the test takes every step."""

    def _run(self) -> None:
        pass


@pytest.fixture
def source() -> Lab:
    return lab(devices=1)


@pytest.fixture
def widget(source: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveView]:
    """Make a widget that is sent by hand."""
    monkeypatch.setattr(live, "PUBLISHER", Still())
    view = widget_class(TreeView)(source)
    yield view
    view.close()


@pytest.fixture
def sent(widget: LiveView) -> list[dict[str, Any]]:
    """Collect what goes to the front end."""
    messages: list[dict[str, Any]] = []
    widget.comm = SimpleNamespace(
        kernel=object(),
        comm_id="test",
        send=lambda data, buffers: messages.append({"data": data, "buffers": buffers}),
        close=lambda **_: None,
        on_msg=lambda _: None,
    )
    return messages


def state(widget: LiveView) -> Any:
    return json.loads(widget.state)


def test_a_change_is_sent_with_its_stamp_in_one_message(
    widget: LiveView, sent: list[dict[str, Any]]
) -> None:
    assert widget.publish(100.0) is True
    (message,) = sent
    assert message["data"]["state"] == {"stamp": 100.0}
    assert message["data"]["buffer_paths"] == [["state"]]
    assert bytes(message["buffers"][0]) == widget.state


def test_what_did_not_change_is_not_sent(widget: LiveView, sent: list[dict[str, Any]]) -> None:
    widget.publish(100.0)
    sent.clear()
    assert widget.publish(100.5) is False
    assert sent == []


def test_a_quiet_view_says_once_a_second_that_it_is_alive(
    widget: LiveView, sent: list[dict[str, Any]]
) -> None:
    widget.publish(100.0)
    sent.clear()
    assert widget.publish(101.0) is False
    (message,) = sent
    assert message["data"]["state"] == {"stamp": 101.0}
    assert message["buffers"] == []


@pytest.mark.parametrize(
    ("rate_hz", "silence"), [(30, 1.5), (10, 1.5), (1.25, 1.8), (1, 2.0), (0.5, 2.0), (0.1, 10.0)]
)
def test_a_view_says_how_long_it_may_be_silent(
    source: Lab, monkeypatch: pytest.MonkeyPatch, rate_hz: float, silence: float
) -> None:
    monkeypatch.setattr(live, "PUBLISHER", Still())
    view = widget_class(TreeView)(source, rate_hz=rate_hz)
    view.publish(100.0)
    assert view.silence == pytest.approx(silence)
    view.close()


def test_among_many_views_each_may_be_silent_for_longer(
    source: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "PUBLISHER", Still())
    many = [widget_class(TreeView)(source) for _ in range(150)]
    many[0].publish(100.0)
    assert many[0].silence == pytest.approx(3.0)
    for view in many:
        view.close()


@pytest.mark.parametrize("period_s", [0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 10.0])
def test_no_view_is_silent_for_longer_than_it_says(
    widget: LiveView, monkeypatch: pytest.MonkeyPatch, period_s: float
) -> None:
    stamps: list[float] = []
    widget.observe(lambda change: stamps.append(change["new"]), "stamp")
    late = 0.001  # a clock that is read a little early or late
    for turn in range(60):
        widget.publish(1000 + turn * period_s - late * (turn % 2))
    gaps = [after - before for before, after in itertools.pairwise(stamps)]
    assert max(gaps) <= silence_s(period_s) + 2 * late


def test_a_restart_reaches_the_state(widget: LiveView, source: Lab) -> None:
    widget.publish(100.0)
    assert state(widget)["root"]["children"][0]["generation"] == 1
    source.restart()
    assert widget.publish(100.1) is True
    assert state(widget)["root"]["children"][0]["generation"] == 2


def test_after_close_of_the_lab_the_last_state_stays_and_the_widget_has_ended(
    widget: LiveView, source: Lab
) -> None:
    widget.publish(100.0)
    assert widget.ended is False
    source.closed = True
    assert widget.publish(100.1) is True
    assert state(widget)["closed"] is True
    assert state(widget)["root"]["children"][0]["state"] == "stopped"
    assert widget.ended is True


def test_the_thread_ends_when_the_lab_closes(source: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher = Publisher()
    monkeypatch.setattr(live, "PUBLISHER", publisher)
    widget = widget_class(TreeView)(source)
    thread = publisher._thread
    assert thread is not None
    source.closed = True
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert publisher._thread is None
    assert widget.ended
    assert source.events._subscriptions == ()
    widget.close()


def test_an_event_of_a_restart_brings_the_next_sample_forward(
    widget: LiveView, source: Lab
) -> None:
    widget._place.nudged = False
    source.events.publish(ActorStarted(path="lab/gpu0"))
    assert widget._place.nudged


def test_the_widget_carries_text_and_a_table_for_pages_without_widgets(
    widget: LiveView,
) -> None:
    data, _ = widget._repr_mimebundle_(include=None, exclude=None)
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == widget.model_id
    assert data["text/plain"].startswith("lab: 1 device\n")
    assert data["text/html"].startswith("<table><caption>lab: 1 device</caption>")


def test_a_closed_widget_still_shows_text_and_a_table(widget: LiveView) -> None:
    widget.close()
    assert widget.ended
    data, _ = widget._repr_mimebundle_()
    assert {"text/plain", "text/html"} <= set(data)


def test_in_a_kernel_a_lab_has_one_widget_until_it_is_closed(
    source: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "PUBLISHER", Still())
    monkeypatch.setitem(sys.modules, "IPython", IPython)
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    view: Any = views.tree(source)
    assert isinstance(view, LiveView)
    assert (views.tree(source) is view) is True
    view.close()
    assert views.tree(source) is not view
    again: Any = views.tree(source)
    again.close()


def test_what_is_shown_is_kept_until_its_widget_is_closed(
    source: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "PUBLISHER", Still())
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    views.record(source, tmp_path / "session.jsonl").close()
    recording = Recording.open(tmp_path / "session.jsonl")
    views.tree(recording)
    gone = weakref.ref(recording)
    gc.collect()
    view = views.tree(recording)
    assert isinstance(view, LiveView)
    del recording
    gc.collect()
    assert gone() is view.source
    view.close()
    del view
    gc.collect()
    assert gone() is None


def test_a_real_system_is_followed_through_a_restart_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publisher = Publisher()
    monkeypatch.setattr(live, "PUBLISHER", publisher)
    with System(backend="host", devices=1, name="real") as lab:
        widget = widget_class(TreeView)(lab, rate_hz=30)
        thread = publisher._thread
        assert thread is not None
        seen = follow(widget)
        lost = lab.inject("kill")
        with pytest.raises(ContextLost):
            lost.result(timeout_s=WAIT_S)
        assert seen(lambda device: device.get("generation") == 2 and device["state"] == "running")
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert state(widget)["closed"] is True
    assert state(widget)["root"]["children"][0]["generation"] == 2
    widget.close()


def follow(widget: LiveView) -> Callable[[Callable[[dict[str, Any]], bool]], bool]:
    """Return a wait for a state of the first device."""
    arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    widget.observe(lambda change: arrived.put(change["new"]), "state")

    def seen(wanted: Callable[[dict[str, Any]], bool]) -> bool:
        while not wanted(json.loads(arrived.get(timeout=WAIT_S))["root"]["children"][0]):
            pass
        return True

    return seen


def test_a_view_is_drawn_once_when_it_is_shown(
    widget: LiveView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that does not tell is waited for once, and text and table are of one moment."""
    looks: list[TreeView] = []
    drawn = TreeView.drawn

    def noted(view: TreeView) -> dict[str, Any]:
        looks.append(view)
        return drawn(view)

    monkeypatch.setattr(TreeView, "drawn", noted)
    data, _ = widget._repr_mimebundle_()
    assert len(looks) == 1
    assert data["text/plain"] == repr(widget)
    assert "application/vnd.jupyter.widget-view+json" in data
    assert len(looks) == 2  # whoever asks for the text alone has it as it is then
