"""The sidebar: what each device does, who holds its memory and what went wrong, in a narrow column.

It has a button that stops what runs. JupyterLab's extension shows it beside every notebook.
"""

from collections.abc import Iterator
from typing import ClassVar, cast

from accel_lab.compute.device import Device
from accel_lab.compute.events.samples import MemorySampled
from accel_lab.compute.events.tree import Node
from accel_lab.display.counts import counted
from accel_lab.display.owners import keeper
from accel_lab.display.sizes import memory, size
from accel_lab.display.table import as_html
from accel_lab.errors import InvalidArgument, SystemClosed
from accel_lab.system import System
from accel_lab.views.lab_lines import fault_line
from accel_lab.views.scene.observer import Lab, Source, Want
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.load import busy
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show

NAMED = 5
"""How many names that hold memory are told of a device."""
RUNNING = 4
IN_USE = "(in use now)"
"""What is said instead of a name of arrays that a running message works on."""


class SidebarView(View):
    """What the devices of a system do, in a narrow column."""

    name = "sidebar"
    wants: ClassVar[frozenset[Want]] = frozenset({"memory", "work"})

    def fold(self, scene: Scene) -> State:
        """Fold a scene into the devices, each with what it runs and who holds its memory."""
        tree = scene.tree
        devices = [] if tree is None else [node for node in tree.children if node.kind == "device"]
        fault = fault_line(scene, devices)
        return {
            "lab": "" if tree is None else tree.name,
            "devices": [_device(node, scene, self.source) for node in devices],
            "faults": [fault.text, fault.tone],
            "closed": scene.closed,
        }

    def text(self, state: State) -> str:
        """Draw a paragraph a device."""
        return "\n".join(
            (_caption(state), *(f"{what + ':':<24} {text}" for what, text in _lines(state)))
        )

    def html(self, state: State) -> str:
        """Draw a row for each line."""
        return as_html(_caption(state), ("What", "Now"), list(_lines(state)))

    def do_stop(self, device: str) -> None:
        """Take back what was sent to a device and is not done, whoever sent it.

        What runs already may go on: `do_replace` ends it.

        Raises:
            InvalidArgument: no such device.
            SystemClosed: there is no system to act upon.
        """
        self._device(device).stop()

    def do_replace(self, device: str) -> None:
        """Replace a device's context, whatever it does; returns at once.

        Raises:
            InvalidArgument: no such device.
            SystemClosed: there is no system to act upon.
        """
        self._device(device).replace()

    def _device(self, name: str) -> Device:
        lab = self.source.lab
        if lab is None:
            raise SystemClosed("there is no system to act upon")
        if not isinstance(lab, System):
            raise InvalidArgument(f"{lab.name} is only looked at")
        return lab.device(name)


def sidebar(lab: Lab | Source, *, rate_hz: float = DEFAULT_HZ) -> SidebarView:
    """Return what a system's devices do in a narrow column; display it at the end of a cell.

    Of each device: its state, how busy it was in the last second, its memory and the names that
    hold most of it, what it runs and for how long, and a button that stops that. In a Jupyter
    kernel with the `lab` extra it is a widget. JupyterLab shows it in its left sidebar, too.

    Parameters:
        lab: the system, or a recording of one.
        rate_hz: how often it may update while something changes, at most 30.

    Raises:
        ValueError: the rate is not positive.
    """
    return show(SidebarView, lab, rate_hz=rate_hz)


def _device(node: Node, scene: Scene, source: Source) -> State:
    running = sorted(scene.running.get(node.name, ()), key=lambda one: one.start)
    share = None if scene.closed else busy(scene, source, node.name)
    device: State = {
        "name": node.name,
        "state": node.state,
        "detail": node.detail,
        "busy": None if share is None else round(share, 3),
        "in_flight": node.in_flight,
        "waiting": node.mailbox,
        "restarts": node.restarts,
        "running": [
            {"what": f"{one.name} #{one.seq}", "on": one.stream, "since": one.start}
            for one in running[:RUNNING]
        ],
    }
    if node.used_bytes is not None:
        device |= {"used_bytes": node.used_bytes, "total_bytes": node.total_bytes}
    if (sample := scene.memory.get(node.name)) is not None:
        device["holders"] = [list(one) for one in _holders(sample, runs=bool(running))]
    return device


def _holders(sample: MemorySampled, *, runs: bool) -> Iterator[tuple[str, int, str]]:
    """Yield the names that hold most memory: each with its bytes and what it is.

    What no name is known of goes by the message that made it. Arrays that a running message works
    on are in no block of the sample, and may be the largest: they have a row together.
    """
    held: dict[str, tuple[int, str]] = {}
    for block in sample.blocks:
        name = keeper(block.kept_by, block.owner)
        what = f"{block.dtype}[{', '.join(map(str, block.shape))}]"
        before, kind = held.get(name, (0, what))
        held[name] = before + block.nbytes, kind if not before else "several"
    unseen = sample.used_bytes - sum(block.nbytes for block in sample.blocks)
    if runs and unseen > 0 and not sample.unlisted:
        held[IN_USE] = unseen, "several"
    for name, (nbytes, what) in sorted(held.items(), key=lambda one: -one[1][0])[:NAMED]:
        yield name, nbytes, what


def _caption(state: State) -> str:
    ending = " (closed)" if state["closed"] else ""
    return f"{state['lab'] or 'sidebar'}: {counted(len(state['devices']), 'device')}{ending}"


def _lines(state: State) -> Iterator[tuple[str, str]]:
    for device in state["devices"]:
        name = device["name"]
        share = device["busy"]
        yield name, device["state"] + ("" if share is None else f", {100 * share:.0f} % busy")
        for one in device["running"]:
            yield f"{name} runs", f"{one['what']} on {one['on']}"
        if "used_bytes" in device:
            yield f"{name} memory", memory(device["used_bytes"], device["total_bytes"])
        for held, nbytes, what in device.get("holders", ()):
            yield f"{name} {held}", f"{size(nbytes)} {what}"
    yield "faults", cast("str", state["faults"][0])
