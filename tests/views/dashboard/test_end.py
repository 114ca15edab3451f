"""What a dashboard says when it is closed, and what is left of it."""

import asyncio
import logging
import sys
import threading
from types import SimpleNamespace

import pytest

from accel_lab.errors import DashboardUnavailable
from accel_lab.views.dashboard.dashboard import Dashboard, dashboard, dashboard_of_all
from tests.views.made_up import lab

LOG = logging.getLogger("tornado.application")


def told(error: BaseException, caplog: pytest.LogCaptureFixture) -> bool:
    """Log an error as Tornado does; return whether anybody would read it."""
    caplog.clear()
    LOG.error("Uncaught exception GET /ws", exc_info=error)
    return bool(caplog.records)


def test_an_answer_that_its_end_cuts_off_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """And once it is closed others' are told again."""
    with dashboard_of_all(port=0):
        assert not told(asyncio.CancelledError(), caplog)
        assert told(ValueError(), caplog)
    assert told(asyncio.CancelledError(), caplog)


class Interrupted(threading.Event):
    """One that whoever waits for it is interrupted at, as by Ctrl-C: at once."""

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        raise KeyboardInterrupt


class InterruptedLate(Interrupted):
    """The same, when it has come to what is waited for."""

    def wait(self, timeout: float | None = None) -> bool:
        threading.Event.wait(self, timeout)
        return super().wait()


@pytest.mark.parametrize("event", [Interrupted, InterruptedLate])
def test_ctrl_c_before_it_serves_leaves_nobody_listening(
    event: type[Interrupted], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = lab(1)
    with dashboard(source) as first:
        port = first.port
    patched = SimpleNamespace(Event=event, Thread=threading.Thread)
    with monkeypatch.context() as interrupted:
        interrupted.setattr(sys.modules[Dashboard.__module__], "threading", patched)
        with pytest.raises(KeyboardInterrupt):
            dashboard(source, port=port)
    assert not any(one.name == "accel_lab dashboard" for one in threading.enumerate())
    with dashboard(source, port=port) as again:
        assert again.port == port


def test_one_that_is_not_up_in_time_says_so_and_stops_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    serve, go_on = Dashboard._serve, threading.Event()

    async def late(page: Dashboard) -> None:
        await asyncio.to_thread(go_on.wait, 60)
        await serve(page)

    with monkeypatch.context() as hasty:
        hasty.setattr(Dashboard, "_serve", late)
        hasty.setattr(sys.modules[Dashboard.__module__], "STARTS_WITHIN_S", 0.0)
        with pytest.raises(DashboardUnavailable, match="it was not up within 0 s"):
            dashboard(lab(1))
    go_on.set()
    for thread in threading.enumerate():
        if thread.name == "accel_lab dashboard":
            thread.join(60)
            assert not thread.is_alive()
