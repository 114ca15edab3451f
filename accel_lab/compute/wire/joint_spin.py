"""Reading several wires at once without sleeping, for an answer that all of them bring together."""

import os
import time
from collections.abc import Iterable
from contextlib import ExitStack

from accel_lab.actor.reply import Reply
from accel_lab.compute.machine.deferred_interrupts import UNINTERRUPTED
from accel_lab.compute.wire.link import LOOKS, YIELD_AFTER_S, Link

SPIN_S = 0.001
"""A small collective operation of two cards takes a part of this; sleeping would double it."""


def spin(links: Iterable[Link], reply: Reply[object]) -> None:
    """Read until the reply is done, for a moment at most; only where there are cores for that."""
    able = [link for link in links if link.spins]
    if not able:
        return
    with ExitStack() as every:
        takes = [every.enter_context(link.reading()) for link in able]
        began, looks = time.perf_counter(), 0
        while not reply.done:
            if any([take() for take in takes]):  # noqa: C419 - each is to be read
                continue
            looks += 1
            if looks % LOOKS:
                continue
            spun = time.perf_counter() - began
            if spun > SPIN_S or UNINTERRUPTED.late:
                return
            if spun > YIELD_AFTER_S:
                os.sched_yield()
