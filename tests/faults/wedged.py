"""Contexts that live and do nothing, and such as only seem so: the test of every backend."""

import gc
import os
import signal
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.actors import digest
from accel_lab.compute.dispatcher.dispatcher import Dispatcher
from accel_lab.compute.lineage.content_store import key_of
from accel_lab.compute.supervision import context_supervisor
from accel_lab.errors import ContextLost

LIMIT_S = 5.0
WAIT_S = 60.0
DEVICES = 4


def read_no_more() -> None:
    """Have the dispatcher of this context stand still, where it is at nothing."""
    (service,) = [one for one in gc.get_objects() if type(one) is Dispatcher]
    service._turn = lambda: time.sleep(WAIT_S)  # type: ignore[method-assign]


def digest_slowly() -> None:
    """Have each digest take longer than the limit, on the thread that reads."""

    def slow(data: memoryview) -> str:
        time.sleep(2 * LIMIT_S)
        return key_of(data)

    vars(digest)["key_of"] = slow


def limit(monkeypatch: pytest.MonkeyPatch, *, rings: bool) -> None:
    """Give contexts little time, and their wires rings or only sockets; before systems open."""
    monkeypatch.setattr(context_supervisor, "HEARTBEAT_LIMIT_S", LIMIT_S)
    if not rings:
        monkeypatch.setattr("accel_lab.compute.process.spawner.ORDERED", False)


def assert_replaced(labs: Sequence[System]) -> None:
    """Wedge two of four contexts, keep two busy, and see which are replaced."""
    frozen, wedged, busy, answering = (device for lab in labs for device in lab.devices)

    def flush() -> None:
        for lab in labs:
            lab.flush()
        time.sleep(0.1)  # or that would be read together with what follows

    answering.run(digest_slowly).result(WAIT_S)
    asked_for = answering.ask(digest.Digest(answering.put(np.ones(3))))
    flush()
    works: list[Any] = [busy.run(time.sleep, 2 * LIMIT_S), asked_for]
    works += [busy.ping(), answering.ping()]
    os.kill(frozen.run(os.getpid).result(WAIT_S), signal.SIGSTOP)
    wedged.run(read_no_more)
    flush()
    asked = {"no sign of life": frozen.ping(), "although nothing ran": wedged.ping()}
    for why, reply in asked.items():
        with pytest.raises(ContextLost, match=why):
            reply.result(WAIT_S)
    for device in (frozen, wedged):
        device.ping().result(WAIT_S)
        assert device.generation == 2
    for reply in works:
        reply.result(WAIT_S)
    assert (busy.generation, answering.generation) == (1, 1)
