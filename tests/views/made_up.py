"""A made-up system: what a view needs of a lab, and devices that a test changes by hand."""

from dataclasses import dataclass, field, replace

from accel_lab.actor.events import EventStream
from accel_lab.compute.events.samples import MemorySampled, WorkTraced
from accel_lab.compute.events.tree import Node, State
from accel_lab.errors import SystemClosed

GIB = 2**30


@dataclass
class Device:
    """What a device's row shows."""

    name: str
    state: State = "running"
    generation: int = 1
    mailbox: int = 0
    in_flight: int = 0
    used_bytes: int | None = int(1.2 * GIB)
    total_bytes: int | None = 139 * GIB
    restarts: int = 0
    detail: str = "NVIDIA H200"


@dataclass(eq=False)
class Lab:
    """A lab whose tree is a context with some libraries under each of its devices."""

    devices: list[Device]
    libraries: tuple[str, ...] = ("array", "blas")
    name: str = "lab"
    closed: bool = False
    events: EventStream = field(default_factory=EventStream)
    seen: list[MemorySampled | WorkTraced] = field(default_factory=list)

    def tree(self) -> Node:
        if self.closed:
            raise SystemClosed("the system is closed")
        return Node(
            name=self.name,
            path=self.name,
            kind="system",
            state="running",
            detail="cuda",
            children=tuple(map(self._device, self.devices)),
        )

    def look(self, *, memory: bool, work: bool) -> list[MemorySampled | WorkTraced]:
        """Return what a test has left here, once; of no work a device tells as a real one does."""
        del memory
        seen, self.seen = self.seen, []
        told = {one.device for one in seen if isinstance(one, WorkTraced)}
        idle = [
            WorkTraced(device=one.name, generation=one.generation, done=(), running=())
            for one in self.devices
            if work and one.state == "running" and one.name not in told
        ]
        return [*seen, *idle]

    def restart(self, index: int = 0) -> None:
        """Give a device its next generation."""
        old = self.devices[index]
        self.devices[index] = replace(
            old,
            generation=old.generation + 1,
            restarts=old.restarts + 1,
            detail="NVIDIA H200 · last loss: SIGKILL",
        )

    def _device(self, device: Device) -> Node:
        path = f"{self.name}/{device.name}"
        libraries = tuple(
            Node(
                name=name,
                path=f"{path}/context/{name}",
                kind="library",
                state="stopped" if device.state == "circuit open" else device.state,
                in_flight=device.in_flight if name == "blas" else 0,
            )
            for name in self.libraries
        )
        context = Node(
            name="context",
            path=f"{path}/context",
            kind="context",
            state=device.state,
            generation=device.generation,
            restarts=device.restarts,
            in_flight=device.in_flight,
            detail=f"pid {4000 + device.generation}",
            children=libraries,
        )
        return Node(path=path, kind="device", children=(context,), **vars(device))


def lab(devices: int = 2, libraries: int = 2) -> Lab:
    """Return a lab with so many devices and so many libraries on each."""
    names = ("array", "blas", *(f"library{i}" for i in range(2, libraries)))[:libraries]
    return Lab(
        [Device(f"gpu{i}", used_bytes=int((1.2 + 15.9 * i) % 139 * GIB)) for i in range(devices)],
        libraries=names,
    )
