"""What `%lab` says of a system beside its tree, in a line each."""

import time
from collections.abc import Iterator
from typing import Literal, NamedTuple

from accel_lab.compute.events.tree import Node
from accel_lab.display.counts import counted
from accel_lab.display.sizes import memory
from accel_lab.views.scene.incidents import Incident, duration, incidents
from accel_lab.views.scene.scene import Scene

Tone = Literal["ok", "busy", "warn", "bad", "off"]
NAMED = 4
FILLING, FULL = 0.8, 0.95
"""Shares of a device's memory from which on it matters."""


class Line(NamedTuple):
    """One of them: `tone` says how much it matters."""

    title: str
    text: str
    tone: Tone


def lines_of(scene: Scene, running: str = "") -> Iterator[Line]:
    """Give the lines of a scene; of its samples they need the tree.

    Parameters:
        running: what has been running for long, in words.
    """
    if scene.tree is None:
        return
    devices = [node for node in scene.tree.children if node.kind == "device"]
    if devices:
        yield _memory(devices)
        yield _work(devices, running)
    yield fault_line(scene, devices)


def _memory(devices: list[Node]) -> Line:
    told = [f"{node.name} {memory(node.used_bytes, node.total_bytes)}" for node in devices[:NAMED]]
    if len(devices) > NAMED:
        told.append(f"and {len(devices) - NAMED} more")
    shares = [
        node.used_bytes / node.total_bytes
        for node in devices
        if node.used_bytes and node.total_bytes
    ]
    fullest = max(shares, default=0.0)
    tone: Tone = "bad" if fullest > FULL else "warn" if fullest > FILLING else "ok"
    return Line("Memory", ", ".join(told), tone)


def _work(devices: list[Node], running: str) -> Line:
    in_flight = sum(node.in_flight for node in devices)
    waiting = sum(node.mailbox for node in devices)
    told = [running] if running else []
    if in_flight:
        told.append(f"{in_flight:,} in flight")
    if waiting:
        told.append(f"{waiting:,} waiting")
    return Line("Work", ", ".join(told) or "nothing in flight", "busy" if told else "off")


def fault_line(scene: Scene, devices: list[Node]) -> Line:
    """Return how many faults there were, and what the last was."""
    found = incidents(scene.facts, [node.name for node in devices])
    faults = [one for one in found if one.level == "fault"]
    if not faults:
        return Line("Supervision", "no faults", "ok")
    last = faults[-1]
    many = counted(len(faults), "fault")
    tone: Tone = "bad" if last.outcome in ("failed", "circuit open") else "warn"
    return Line("Supervision", f"{many}; the last: {_told(last)}", tone)


def _told(incident: Incident) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(incident.at))
    took = f" in {duration(incident.recovery_s)}" if incident.recovery_s is not None else ""
    return f"{incident.path} at {clock}, {incident.what}, {incident.outcome}{took}"
