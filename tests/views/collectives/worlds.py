"""Made-up worlds: facts of four ranks, the third of which is always late."""

from collections.abc import Sequence

from accel_lab.actor.events import Event
from accel_lab.compute.events.collectives import CollectiveEnded, WorldBroken, WorldFormed
from accel_lab.compute.events.samples import TreeSampled, Underway, WorldLook, WorldsSampled
from accel_lab.compute.events.tree import Node, State
from accel_lab.views.scene.scene import Scene

DEVICES = ("gpu0", "gpu1", "gpu2", "gpu3")
AT = 1_700_000_000.0
LOST = (
    "gpu1 has lost its context: gpu1 lost its context of generation 1: its process ended with "
    "SIGKILL; the device is now at generation 2"
)
HEALED: list[Event] = [
    WorldFormed(world="world1", epoch=1, devices=DEVICES, seconds=0.12, at=AT),
    WorldBroken(world="world1", epoch=1, reason=LOST, at=AT + 10),
    WorldFormed(world="world1", epoch=2, devices=DEVICES, seconds=2.13, at=AT + 12),
]


def ended(
    group: int = 1,
    waited_s: Sequence[float] = (0.0, 0.001, 0.006, 0.002),
    *,
    bus_gb_s: float = 200.0,
    failure: str = "",
    at: float = AT + 5,
) -> CollectiveEnded:
    """Return the end of an operation that took 10 ms."""
    return CollectiveEnded(
        world="world1",
        epoch=1,
        group=group,
        call="all_reduce",
        algorithm="ring",
        dtype="float32",
        nbytes=64 << 20,
        waited_s=tuple(waited_s),
        seconds=0.01,
        bus_gb_s=0.0 if failure else bus_gb_s,
        failure=failure,
        ranks=DEVICES[: len(waited_s)],
        at=at,
    )


def flight(arrived_s: Sequence[float], ranks: Sequence[str] = DEVICES) -> Underway:
    """Return an operation that began 1.24 s before the look, if any rank did."""
    began = AT + 20 - 1.24 if max(arrived_s) >= 0 else 0.0
    what = 9, "all_reduce", "ring", "float32", 64 << 20
    return Underway(*what, tuple(ranks), tuple(arrived_s), began)


def look(*flights: Underway, state: str = "whole", name: str = "world1") -> WorldsSampled:
    """Return a look at one world with these operations under way."""
    nbytes = sum(one.nbytes for one in flights)
    one = WorldLook(name, state, 2, DEVICES, flights, 0, nbytes)
    return WorldsSampled(worlds=(one,), at=AT + 20)


def tree(**states: State) -> TreeSampled:
    """Return a look at the devices; those that are not named run."""
    nodes = tuple(
        Node(name=one, path=f"lab/{one}", kind="device", state=states.get(one, "running"))
        for one in DEVICES
    )
    root = Node(name="lab", path="lab", kind="system", state="running", children=nodes)
    return TreeSampled(root=root, at=AT + 20)


def scene_of(*facts: Event) -> Scene:
    """Return what was seen after these facts."""
    scene = Scene()
    for fact in facts:
        scene.add(fact)
    return scene
