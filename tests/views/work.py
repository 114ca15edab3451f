"""Made-up work: scenes for the timeline, from a case that both halves of it are held to."""

import json
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from accel_lab.actor.events import Event
from accel_lab.compute.events.lifecycle import ContextLost, GenerationChanged
from accel_lab.compute.events.samples import Slice, TreeSampled, WorkTraced
from accel_lab.compute.events.tree import Node
from accel_lab.views.scene.observer import Lab, Want
from accel_lab.views.scene.scene import Scene

CASE: dict[str, Any] = json.loads((Path(__file__).parent / "timeline_case.json").read_text())


class Recorded:
    """A source with a scene and no system."""

    lab: Lab | None = None
    ended = False

    def __init__(self, scene: Scene) -> None:
        self.lock = threading.RLock()
        self.scene = scene

    def look(self) -> Scene:
        return self.scene

    def want(self, holder: object, wants: Iterable[Want]) -> None:
        """Want nothing: all is there."""

    def on_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        del callback
        return lambda: None


def tree(*devices: str, name: str = "lab") -> TreeSampled:
    """Return a look at a system of these devices."""
    nodes = tuple(
        Node(name=one, path=f"{name}/{one}", kind="device", state="running") for one in devices
    )
    root = Node(name=name, path=name, kind="system", state="running", children=nodes)
    return TreeSampled(root=root, at=1000.0)


def work(
    device: str, done: Iterable[Slice] = (), running: Iterable[Slice] = (), dropped: int = 0
) -> WorkTraced:
    """Return what a device answers."""
    return WorkTraced(
        device=device,
        generation=1,
        done=tuple(done),
        running=tuple(running),
        dropped=dropped,
        at=1000.0,
    )


def case_scene() -> Scene:
    """Return the scene of the case."""
    scene = Scene()
    for fact in CASE["facts"]:
        scene.add(_fact(**fact))
    return scene


def _fact(type: str, **fields: Any) -> Event:  # noqa: A002 - the file's word
    if type == "tree":
        return tree(*fields["devices"], name=fields["name"])
    if type == "work":
        fields["done"] = [Slice(*one) for one in fields["done"]]
        fields["running"] = [Slice(*one) for one in fields["running"]]
        return work(**fields)
    return ContextLost(in_flight=0, **fields) if type == "lost" else GenerationChanged(**fields)
