"""The lab of the first minute: a lab with a button that crashes a device, and what came of it.

`accel-lab lab` opens it beside its first notebook. The crash is a real one.
"""

import os
import signal
from typing import cast

from accel_lab.compute.actors.fault import Fault
from accel_lab.compute.device import Device
from accel_lab.compute.events.lifecycle import BuffersRebuilt
from accel_lab.compute.events.tree import Node
from accel_lab.display.counts import counted
from accel_lab.errors import InvalidArgument, SystemClosed
from accel_lab.system import System
from accel_lab.views.lab import LabView
from accel_lab.views.scene.incidents import Incident, duration, incidents
from accel_lab.views.scene.observer import Lab, Source
from accel_lab.views.scene.scene import Scene
from accel_lab.views.supervision import SupervisionView
from accel_lab.views.widget.view import State

TENTH_S = 0.095
"""From here on a recovery is told in tenths of a second."""


class FirstMinuteView(LabView):
    """A system's lab with a button that crashes a device."""

    def __init__(self, source: Lab | Source) -> None:
        super().__init__(source)
        self._told: tuple[Scene, object, State] | None = None

    def fold(self, scene: Scene) -> State:
        """Fold a scene into a lab's state, and into `crash`: `{device, outcome, said}`.

        That is the device whose crash is the newest, or would be, and what came of it in words.
        """
        return {**super().fold(scene), "crash": self._crash(scene)}

    def _crash(self, scene: Scene) -> State:
        names = () if scene.tree is None else tuple(node.name for node in _devices(scene.tree))
        mark = scene.counted, names
        if self._told is None or self._told[0] is not scene or self._told[1] != mark:
            self._told = scene, mark, crash_of(scene, names)
        return self._told[2]

    def do_crash(self) -> None:
        """Crash the device that works, else the first; does not wait for what comes of it.

        The process of a busy device is killed at once. An idle one gets an illegal address on a
        GPU, and is killed on the CPU.

        Raises:
            InvalidArgument: the system is only looked at, or has no device that runs.
            SystemClosed: there is no system to act upon.
        """
        system = self._system()
        running = [device for device in system.devices if device.state == "running"]
        if not running:
            raise InvalidArgument("no device is running: wait until one has recovered")
        busy = [device for device in running if device.in_flight]
        pid = _process(system, busy[0]) if busy else None
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            return
        supervision = cast("SupervisionView", self.parts[SupervisionView.name])
        fault: Fault = "poison" if system.backend == "cuda" else "kill"
        supervision.do_inject((busy or running)[0].name, fault)

    def _system(self) -> System:
        lab = self.source.lab
        if lab is None:
            raise SystemClosed("there is no system to act upon")
        if not isinstance(lab, System):
            raise InvalidArgument(f"{lab.name} is only looked at")
        return lab


def crash_of(scene: Scene, devices: tuple[str, ...]) -> State:
    """Return what became of the newest loss of a context that nobody had asked for."""
    found = incidents(scene.facts, devices)
    lost = [one for one in found if one.level == "fault" and one.before is not None]
    if not lost:
        return {"device": devices[0] if devices else "", "outcome": "", "said": ""}
    last = lost[-1]
    return {"device": last.device, "outcome": last.outcome, "said": _said(last, scene)}


def _said(loss: Incident, scene: Scene) -> str:
    """Say how a loss stands: `recovered in 0.2 s, 3 arrays rebuilt`."""
    if loss.outcome != "recovered" or loss.recovery_s is None:
        return f"{loss.device} crashed: {loss.name or loss.what}, {loss.outcome}"
    rebuilt = [
        fact
        for _, fact in scene.facts
        if isinstance(fact, BuffersRebuilt)
        and (fact.device, fact.generation) == (loss.device, loss.after)
    ]
    told = [f"recovered in {_seconds(loss.recovery_s)}"]
    if many := sum(fact.buffers for fact in rebuilt):
        told.append(f"{counted(many, 'array')} rebuilt")
    if many := sum(fact.lost for fact in rebuilt):
        told.append(f"{many} lost")
    return ", ".join(told)


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= TENTH_S else duration(seconds)


def _process(system: System, device: Device) -> int | None:
    """Return the process of a device's context; None while it has none."""
    node = next(one for one in _devices(system.tree()) if one.name == device.name)
    return next((child.pid for child in node.children if child.kind == "context"), None)


def _devices(tree: Node) -> list[Node]:
    return [node for node in tree.children if node.kind == "device"]
