"""What a dashboard says when it is closed."""

import asyncio
import logging

import pytest

from accel_lab.views.dashboard import dashboard_of_all

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
