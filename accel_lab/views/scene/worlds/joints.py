"""Collective operations on the time line: each is one mark across the devices of its ranks."""

from heapq import nlargest
from typing import Any

from accel_lab.compute.events.collectives import CollectiveEnded
from accel_lab.display.sizes import size
from accel_lab.views.scene.worlds.worlds import Worlds

SHOWN = 64
"""So many of the newest are marked."""


def joints(worlds: Worlds) -> list[list[Any]]:
    """Return the newest, by their ends: [start, end, words, failed, [[device, begin], …]].

    A rank that never began has no begin: None.
    """
    every = [one for past in worlds.shown().values() for one in past.ended if one.ranks]
    newest = nlargest(SHOWN, every, key=lambda one: one.at)
    return [_joint(one) for one in reversed(newest)]


def _joint(one: CollectiveEnded) -> list[Any]:
    start = one.at - one.seconds
    ranks = [
        [device, None if waited < 0 else round(start + waited, 6)]
        for device, waited in zip(one.ranks, one.waited_s, strict=True)
    ]
    words = f"{one.call} {size(one.nbytes)}" if one.nbytes else one.call
    return [round(start, 6), round(one.at, 6), words, bool(one.failure), ranks]
